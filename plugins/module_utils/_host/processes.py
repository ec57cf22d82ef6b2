# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError

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
        done = subprocess.run(command, check=True, capture_output=True, text=True)
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
