# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Callable, TypeVar

Answer = TypeVar("Answer")
MEMORY = Path("/proc/meminfo")
KIB = 1024


class UnmeasurableError(Exception):
    """The host did not let itself be measured: the text says what stood in the way."""


def text_of(path: str | Path) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def text_if_there(path: str | Path) -> str:
    try:
        return text_of(path).strip()
    except (FileNotFoundError, ProcessLookupError):  # what is under /proc ends at any time
        return ""


def memory() -> tuple[int, int]:
    """All of it, and what is available, in bytes."""
    kib = {words[0]: int(words[1]) for words in map(str.split, text_of(MEMORY).splitlines()) if len(words) > 1}
    return kib["MemTotal:"] * KIB, kib["MemAvailable:"] * KIB


def names_in(directory: str | Path) -> list[str]:
    """Sorted; a directory that is not there holds nothing, one that may not be read is an error."""
    try:
        return sorted(entry.name for entry in Path(directory).iterdir())
    except FileNotFoundError:
        return []


def nearest_existing(path: str) -> Path:
    """The path itself, or the directory in which it would be made."""
    wanted = Path(path)
    return next(place for place in (wanted, *wanted.parents) if place.exists())


def program(*names: str) -> str:
    """The first of the programs that is installed, also where PATH lacks sbin; empty when none is."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/libexec"])
    return next(filter(None, (shutil.which(name, path=path) for name in names)), "")


def output_of(*command: str, timeout: float = 2) -> str:
    try:
        # Every caller gives a list of words of its own making, and no shell is in between.
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise UnmeasurableError(f"{command[0]} did not end within {timeout:g} s") from error
    if done.returncode:
        raise UnmeasurableError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip() or 'failed'}")
    return done.stdout


def within(seconds: float, ask: Callable[[], Answer]) -> Answer:
    """The answer, or UnmeasurableError: C libraries that wait for a hung daemon know no time-out of their own."""
    answers: list[Answer] = []
    errors: list[Exception] = []

    def collect() -> None:
        try:
            answers.append(ask())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise UnmeasurableError(f"no answer within {seconds:g} s")
    return answers[0]
