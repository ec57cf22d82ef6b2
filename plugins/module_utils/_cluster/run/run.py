# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installer's running on the host: whether it runs, how it ended, its start, its end."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import secrets as bundle_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.redact import Redactor
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import runner, running
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, processes, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import is_held
from ansible_collections.nometal.ipi.plugins.module_utils._core.program import PYTHON, Program, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

STARTING_SECONDS, STOPPING_SECONDS, KILLING_SECONDS = 15, 120, 10
SYSTEMD_SECONDS = STOPPING_SECONDS + 30
PAUSE = 0.02
LAST_LINES = 15
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""The runner's. Ansible's own may hold more than others should see."""


@dataclass(frozen=True)
class Run:
    """What runs, or else what ran last."""

    there: bool = False
    running: bool = False
    commands: tuple[str, ...] = ()
    current: str = ""
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    boot_id: str = ""
    version: str = ""
    config_digest: str = ""


@dataclass(frozen=True)
class Plan:
    """What is to run. It lies in a directory that only root reads: proxies may have passwords in the environment."""

    program: str
    commands: tuple[str, ...]
    assets: str
    environment: Mapping[str, str]
    version: str
    config_digest: str


def read(paths: Paths) -> Run:
    """In this order, for after the end of what runs its last note is there."""
    is_running = is_held(paths.lock)
    return _run_of(_noted(paths.run), running=is_running)


def is_orphan(paths: Paths) -> bool:
    """The installer runs, but its runner was killed: how it ends will not be recorded. All processes are looked at."""
    pids = list(running.holders(paths.lock))
    return bool(pids) and not any(running.runs(pid, paths.runner) for pid in pids)


def boot_id() -> str:
    return runner.BOOT_ID.read_text(encoding="ascii").strip()


def start(paths: Paths, plan: Plan) -> None:
    """Returns when it runs, or has ended already."""
    began = time.time()
    identity = secrets.token_hex(8)
    files.write_whole(paths.directory / runner.PLAN, json.dumps({**asdict(plan), "id": identity}) + "\n", 0o600)
    Program(paths.runner, text_of(runner), 0o600).install()
    by_systemd = Path("/run/systemd/system").is_dir()
    (_start_by_systemd if by_systemd else _start_detached)(paths)

    def has_begun() -> bool:
        return bool(_noted(paths.run).get("id") == identity)

    wait.comes_true(lambda: has_begun() or (by_systemd and _has_gone(paths)), STARTING_SECONDS, PAUSE)
    if not has_begun():
        raise OperatorError(f"The installer of lab {paths.lab} did not begin.\n{_last_words(paths, began)}")


def stop(paths: Paths, seconds: float = STOPPING_SECONDS) -> bool:
    """Whether anything ran. It is asked to end as by Ctrl-C, has so long for it, and is killed after that."""
    if not is_held(paths.lock):
        return False
    _ask_to_end(paths)
    if wait.comes_true(lambda: not is_held(paths.lock), seconds, PAUSE):
        return True
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in running.holders(paths.lock):
            _send(pid, number)
        if wait.comes_true(lambda: not is_held(paths.lock), KILLING_SECONDS, PAUSE):
            return True
    pids = ", ".join(map(str, running.holders(paths.lock)))
    raise OperatorError(f"The installer of lab {paths.lab} does not end, process {pids}, not even killed: see why.")


def _ask_to_end(paths: Paths) -> None:
    holders = list(running.holders(paths.lock))
    runners = [pid for pid in holders if running.runs(pid, paths.runner)]
    for pid in runners:
        _send(pid, signal.SIGTERM)  # it asks the installer, and notes how that ends
    for pid in [] if runners else holders:
        _send(pid, signal.SIGINT)


def _unit_of(paths: Paths) -> str:
    return f"nometal-install-{paths.lab}.service"


def _start_by_systemd(paths: Paths) -> None:
    unit = _unit_of(paths)
    # The unit of a run that has just ended may be there for an instant more.
    wait.comes_true(lambda: _has_gone(paths), KILLING_SECONDS, PAUSE)
    processes.run(
        *("systemd-run", "--quiet", "--collect", f"--unit={unit}", f"--description=Installation of lab {paths.lab}"),
        "--property=KillMode=process",  # an installer whose runner is killed runs on
        f"--property=TimeoutStopSec={SYSTEMD_SECONDS}",
        *(PYTHON, "-I", str(paths.runner), str(paths.directory)),
    )


def _has_gone(paths: Paths) -> bool:
    shown = processes.run("systemctl", "show", "--property=LoadState", "--value", _unit_of(paths))
    return shown.strip() == "not-found"


def _start_detached(paths: Paths) -> None:
    command = [PYTHON, "-I", str(paths.runner), str(paths.directory), runner.DETACHED]
    nothing = subprocess.DEVNULL
    # Ansible's job is over when nothing holds its output any more.
    subprocess.run(command, check=False, stdin=nothing, stdout=nothing, stderr=nothing, env=ENVIRONMENT, umask=0o077)


def _run_of(noted: Mapping[str, Any], *, running: bool) -> Run:
    known = {key: value for key, value in noted.items() if key in Run.__dataclass_fields__}
    return Run(**{**known, "commands": tuple(noted.get("commands", ())), "there": bool(noted), "running": running})


def _noted(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):  # a host that lost its power may have left an empty one
        noted = json.loads(path.read_text(encoding="utf-8"))
        return noted if isinstance(noted, dict) else {}
    return {}


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _last_words(paths: Paths, began: float) -> str:
    """Its own, and those of systemd: where it could not even begin to speak, nothing else says why."""
    lines: list[str] = []
    with suppress(OSError):
        lines = paths.output.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
    lines.append(processes.journal_of(_unit_of(paths), began, LAST_LINES))
    return Redactor(bundle_secrets.known(paths)).text("\n".join(lines).strip())
