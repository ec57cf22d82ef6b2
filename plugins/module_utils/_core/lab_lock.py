# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run of playbooks has a lab on this host, and whether that run can still be there."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import LOCKS, ROOT_ALONE, alone

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
GUARD = ".labs"  # no lab's name begins with a dot
# A run that changes its connection, or has not used it for a while, is back by then.
GRACE = 60.0
MINUTE = 60

TAKEN, RENEWED, HELD, WAITING, RELEASED, NOT_OURS = "taken", "renewed", "held", "waiting", "released", "not ours"


@dataclass(frozen=True)
class Process:
    pid: int
    started: str
    """As the kernel says it: it tells a process from a later one of the same number."""


@dataclass(frozen=True)
class Controller:
    """A run: the process ansible-playbook, and on which machine that number is its own."""

    name: str
    machine: str
    boot: str
    pid_namespace: str
    process: Process

    def numbers_processes_as(self, other: Controller) -> bool:
        """Whether each sees the processes of the other."""
        if self.boot and self.pid_namespace:
            return (self.boot, self.pid_namespace) == (other.boot, other.pid_namespace)
        return self.name == other.name and not other.pid_namespace

    def is_before_reboot_of(self, other: Controller) -> bool:
        same = bool(self.machine) and (self.name, self.machine) == (other.name, other.machine)
        return same and bool(self.boot) and bool(other.boot) and self.boot != other.boot


@dataclass(frozen=True)
class Record:
    controller: Controller
    user: str
    playbook: str
    connection: Process | None
    """The process on the host that ends when the run's connection does; None if there is none to go by."""
    host_boot: str
    taken: float
    """By the clock on the wall, to be shown."""
    renewed: float
    """By a clock that is never set."""


@dataclass(frozen=True)
class Seen:
    """What the host says at the moment."""

    boot: str
    now: float
    has_connection: bool
    ended: Controller | None = None
    """A run of which its own controller says that it has ended."""


@dataclass(frozen=True)
class Verdict:
    """`gone` says why the run that had the lab cannot be there any more; `wait` after how long that will be known."""

    gone: str = ""
    wait: float = 0


def judge(record: Record, run: Controller, seen: Seen, grace: float = GRACE) -> Verdict:
    if record.host_boot != seen.boot:
        return Verdict("the host was restarted since")
    if record.controller == seen.ended:
        return Verdict("its process is no longer there")
    if record.controller.is_before_reboot_of(run):
        return Verdict("its controller was restarted since")
    # While its own controller can see it, nothing else counts.
    if record.connection is None or seen.has_connection or record.controller.numbers_processes_as(run):
        return Verdict()
    left = grace - (seen.now - record.renewed)
    return Verdict(wait=left) if left > 0 else Verdict("its connection to the host has ended")


def described(record: Record, now: float) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(record.taken))
    who = f"{record.user}@{record.controller.name}, {record.playbook} (process {record.controller.process.pid})"
    return f"{who}, since {when}, {_ago(now - record.taken)}"


def _ago(seconds: float) -> str:
    whole = max(int(seconds), 0)
    return f"{whole} s ago" if whole < 2 * MINUTE else f"{whole // MINUTE} min ago"


class LabLock:
    """The record of one lab, gone with the next boot. Without a word of its run it is judged by what the host shows."""

    def __init__(self, lab: str, directory: Path = LOCKS) -> None:
        self._path = directory / lab
        self._guard = directory / GUARD

    def look(self) -> Record | None:
        try:
            return record_from(json.loads(self._path.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, KeyError, TypeError):  # what is damaged says nothing of anybody
            return None

    def take(
        self, wanted: Record, see: Callable[[Record], Seen], *, by_force: bool, check_mode: bool = False
    ) -> tuple[str, Record | None, Verdict]:
        """What became of it, who had the lab before, and why that one has it no longer."""
        with nullcontext() if check_mode else alone(self._guard):
            record = self.look()
            renews = record is not None and record.controller == wanted.controller
            verdict = judge(record, wanted.controller, see(record)) if record and not renews else Verdict("free")
            if by_force and not verdict.gone:
                verdict = Verdict("lab_lock_take_over is set")
            if not verdict.gone:
                return WAITING if verdict.wait else HELD, record, verdict
            if not check_mode:
                self._write(replace(wanted, taken=record.taken) if record and renews else wanted)
            return (RENEWED, None, verdict) if renews else (TAKEN, record, verdict)

    def release(self, run: Controller, *, check_mode: bool = False) -> str:
        with nullcontext() if check_mode else alone(self._guard):
            record = self.look()
            if record is None or record.controller != run:
                return NOT_OURS
            if not check_mode:
                files.remove(self._path)
            return RELEASED

    def _write(self, record: Record) -> None:
        files.make_directory(self._path.parent, ROOT_ALONE)
        files.write_whole(self._path, json.dumps(asdict(record), indent=2) + "\n", 0o600)


def record_from(data: dict[str, Any]) -> Record:
    connection = data["connection"]
    return Record(
        **{
            **data,
            "controller": controller_from(data["controller"]),
            "connection": Process(**connection) if connection else None,
        }
    )


def controller_from(data: dict[str, Any]) -> Controller:
    return Controller(**{**data, "process": Process(**data["process"])})
