# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an installation ended, in words."""

from __future__ import annotations

import re
import signal as signals
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import WITH_BOOTSTRAP
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import DOING, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.run import Run

INSTALLED, FAILED, INTERRUPTED, NOTHING, RUNNING = "installed", "failed", "interrupted", "nothing", "running"
ASKED_TO_END = 8
BEFORE_ANYTHING = "it was refused before anything was made: the log says why"
WORDS = {
    0: "installed",
    1: "a fatal error, as of the checks before anything is made: the log says which",
    3: "the install-config is wrong",
    4: "the bootstrap VM, or what belongs to it, could not be made",
    5: "the API did not come up in time, or bootstrapping did not complete",
    6: "the cluster did not initialize in time",
    7: "the cluster is initialized, but operators did not settle in time",
    8: "it was asked to end; the bootstrap VM stays",
}
BOOTSTRAP_CODE = 5
FIRST_WITH_CODES = (4, 11)
BY_STAGE = {
    Stage.PREPARE: BEFORE_ANYTHING,
    Stage.INFRASTRUCTURE: WORDS[4],
    Stage.CONTROL_PLANE: "the control plane could not be provisioned",
    Stage.API: "the API did not come up in time",
    Stage.BOOTSTRAP: "bootstrapping did not complete",
    Stage.ETCD: "bootstrapping did not complete",
    Stage.DESTROY_BOOTSTRAP: "the bootstrap VM could not be removed",
    Stage.INITIALIZE: WORDS[6],
    Stage.OPERATORS: WORDS[7],
    Stage.CONSOLE: "the console did not come up",
}

GATHERING = re.compile(r"Attempted to gather |Cluster operator \S+ ")
DECISIVE = re.compile(r"failed to initialize the cluster: |Error checking cluster operator ")
"""What operators say comes before it."""
ASSET = re.compile(r'failed to (?:fetch|generate|load)(?: dependency of| asset)* (?:"(?P<quoted>[^"]+)"|[A-Z][\w ]+): ')
PROVISIONING_CHECK = "Platform Provisioning Check"


def state_of(run: Run, progress: Progress, *, completed: bool) -> str:
    """Completed: whether this run has said so. One whose runner was killed has noted nothing."""
    if not run.there:
        return NOTHING
    if run.running:
        return RUNNING
    # One that was stopped between two commands has ended well, but not with the last of them.
    succeeded = run.exit_code == 0 and run.commands[-1:] == (run.current,)
    if succeeded or completed or (run.ended is None and run.exit_code is None and progress.complete):
        return INSTALLED
    if run.ended is None or run.signal or run.exit_code in (None, 0, ASKED_TO_END):
        return INTERRUPTED
    return FAILED


def words(run: Run, progress: Progress, state: str) -> str:
    if state == NOTHING:
        return "nothing was ever installed here"
    if state in (RUNNING, INSTALLED):
        return state if state == INSTALLED else f"{run.current or 'the installer'} runs"
    if run.signal:
        return f"it was killed by {_signal(run.signal)}: the host ran out of memory, or a user or program killed it"
    if state == INTERRUPTED and run.exit_code == 0:
        return f"it was ended after `{run.current}`"
    if run.exit_code is None:
        return f"it ended without a word while it {doing(progress)}: the host went down, or it was killed"
    return of_code(run.exit_code, progress, run.version)


def of_code(code: int, progress: Progress, version: str = "") -> str:
    """Releases before 4.11 end with 1 whatever happens: the log knows more."""
    release = _release(version or progress.version)
    vague = code == 1 and progress.stage is not None
    if vague and (release and release < FIRST_WITH_CODES):
        return BY_STAGE.get(progress.stage or Stage.PREPARE, WORDS[1])
    if code == BOOTSTRAP_CODE and progress.stage in WITH_BOOTSTRAP:
        return BY_STAGE[progress.stage]
    if vague and progress.stage is Stage.PREPARE:
        return BEFORE_ANYTHING
    if vague and progress.stage is not None and progress.bootstrap_made:
        return BY_STAGE.get(progress.stage, WORDS[1])
    return WORDS.get(code, f"it ended with exit code {code}, which no release is known to use")


def failure(errors: Sequence[str]) -> str:
    """The first error of a failure, as a sentence. Those that follow are about what was gathered because of it."""
    own = [error for error in errors if not GATHERING.match(error)]
    decisive = [error for error in own if DECISIVE.match(error)]
    text = " ".join(_without_assets(next(iter([*decisive, *own]), "")).split())
    return f"{text.rstrip('.')}." if text else ""


def _without_assets(error: str) -> str:
    """Without the chain of what the installer was about to make, but for the check whose name tells something."""
    name = ""
    while found := ASSET.match(error):
        error, name = error[found.end() :], found["quoted"] or ""
    return f"{name}: {error}" if name == PROVISIONING_CHECK else error


def doing(progress: Progress) -> str:
    return DOING[progress.stage] if progress.stage else "prepared the installation"


def _release(version: str) -> tuple[int, int] | None:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def _signal(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
