# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a lab's installation, as far as it decides what there is to do."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.outcome import WORDS
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.runner import NOT_STARTED

INFRASTRUCTURE_FAILED = 4  # the installer's exit code
EXIT_CODES = {**WORDS, NOT_STARTED: "it could not be started"}


@dataclass(frozen=True)
class Facts:
    restart: bool = False
    """Whether the operator wants what has ended without success to start over."""
    ran: bool = False
    """An installation is noted."""
    running: bool = False
    orphan: bool = False
    commands: tuple[str, ...] = ()
    current: str = ""
    exit_code: int | None = None
    signal: int | None = None
    rebooted: bool = False
    infrastructure: bool = False
    """From here on, how far the log says that it came."""
    waiting: bool = False
    """The infrastructure is made: the installer only waits."""
    bootstrapped: bool = False
    bootstrap_destroyed: bool = False
    complete: bool = False
    has_metadata: bool = False
    bootstrap_there: bool = False
    bootstrap_running: bool = False
    nodes_in_use: tuple[str, ...] = ()
    """Those that run, or whose disks are not blank."""
    release: tuple[int, int] | None = None
    """None: it is not known."""
    config_changed: bool = False
    version: str = ""
    """With which it ran."""
    other_version: str = ""
    """What is asked for, if that is not its version."""

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and self.commands[-1:] == (self.current,)


def end_of(facts: Facts) -> str:
    """How the last one ended."""
    if not facts.ran:
        return "The note of how the installer ended is gone."
    if facts.exit_code == 0:
        return "The installer ended." if facts.succeeded else f"The installer was stopped after `{facts.current}`."
    if facts.exit_code is not None:
        is_vague = facts.exit_code == 1 and facts.infrastructure  # older releases end with 1 whatever happens
        words = "" if is_vague else EXIT_CODES.get(facts.exit_code, "")
        return f"The installer ended with exit code {facts.exit_code}{words and ': '}{words}."
    if facts.rebooted:
        return "The host was started anew while the installer ran."
    if facts.signal is not None:
        return f"The installer was killed ({_signal_name(facts.signal)})."
    return "The installer was killed, and so was what had started it."


def _signal_name(number: int) -> str:
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")
