# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import UMASK

if TYPE_CHECKING:
    from collections.abc import Iterator

LAST_LINES = 5


def pid_file_of(daemon: str) -> Path:
    return Path(f"/run/{daemon}.pid")


def pid_of(daemon: str) -> int | None:
    try:
        pid = int(pid_file_of(daemon).read_text(encoding="ascii"))
        command = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    # After a crash, the number in the file may be another program's by now.
    return pid if command == daemon else None


def journal_of(unit: str, since: float, lines: int) -> str:
    """What it and systemd have said of it: why it did not start, which systemd-run does not say."""
    sync = ["journalctl", "--sync"]
    ask = ["journalctl", "--quiet", "--no-pager", "--output=cat", f"--lines={lines}", f"--since=@{int(since)}"]
    try:
        subprocess.run(sync, check=False, capture_output=True)
        return subprocess.run([*ask, f"--unit={unit}"], check=False, capture_output=True, text=True).stdout.strip()
    except OSError:  # there is none
        return ""


def run(*command: str) -> str:
    began = time.time()
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, umask=UMASK)
    except FileNotFoundError as error:
        raise OperatorError(f"{command[0]} is not installed: role nometal.ipi.host_prep installs it.") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip() or error.stdout.strip() or f"it ended with {error.returncode}"
        text = f"`{' '.join(command)}` failed: {reason}\n{_said_of_service(command, began)}"
        raise OperatorError(text.strip()) from error
    return done.stdout


def _said_of_service(command: tuple[str, ...], began: float) -> str:
    """systemctl only says that it did not start."""
    starts = command[0] == "systemctl" and command[1] in ("start", "restart")
    return journal_of(command[-1], began, LAST_LINES) if starts else ""


def started(pid: int) -> str:
    """When a process was started, as the kernel says it, which tells it from a later one; empty when it has ended."""
    try:
        state, _parent, *rest = _stat(pid)
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _started_without_proc(pid)
    return "" if state in ("Z", "X") else rest[17]


def has_ended(pid: int, since: str) -> bool:
    """Whether the process that was started then is there no longer. One that may not be looked at is there."""
    now = started(pid)
    if now:
        return now != since
    try:
        os.kill(pid, 0)
    except PermissionError:
        return False
    except ProcessLookupError:
        pass
    return True


def ancestors(pid: int) -> Iterator[tuple[int, str]]:
    """The processes above one, with their names, the nearest first."""
    with suppress(OSError):
        while pid > 1:
            pid = int(_stat(pid)[1])
            if pid:
                yield pid, Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()


def boot_id() -> str:
    """Another one for each boot. Empty where the kernel has none, as on macOS."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def pid_namespace() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""


def _stat(pid: int) -> list[str]:
    """Behind the name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _started_without_proc(pid: int) -> str:
    with suppress(OperatorError):  # there is no such process
        state, _space, when = run("ps", "-o", "state=,lstart=", "-p", str(pid)).strip().partition(" ")
        return "" if state.startswith("Z") else when.strip()
    return ""
