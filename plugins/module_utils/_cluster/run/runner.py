# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

# Made by nometal.ipi and removed with the installation. It runs the installer's commands one after the other, whatever
# becomes of who started it: `runner.py <directory> [detached]`. The directory's plan.json says which.
# It needs nothing but Python's own library, for it is a program of its own.
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOCK = "lock"
RUN = "run.json"
OUTPUT = "output.log"
PLAN = "plan.json"
DETACHED = "detached"
SECRET = 0o077  # umask of what the installer writes
LOCKING_SECONDS = 5
NOT_STARTED = 127  # what a shell says of a program that cannot be started
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Runner:
    def __init__(self, directory: Path, lock: int) -> None:
        self._directory = directory
        self._lock = lock
        self._plan: dict[str, Any] = json.loads((directory / PLAN).read_text(encoding="utf-8"))
        self._child: subprocess.Popen[bytes] | None = None
        self._is_to_stop = False
        self._note: dict[str, Any] = {
            "id": self._plan["id"],
            "commands": self._plan["commands"],
            "current": "",
            "started": time.time(),
            "ended": None,
            "exit_code": None,
            "signal": None,
            "boot_id": BOOT_ID.read_text(encoding="ascii").strip(),
            "version": self._plan["version"],
            "config_digest": self._plan["config_digest"],
        }

    def run(self) -> None:
        # A handler, for what is ignored would be so in the installer, too.
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        for words in self._plan["commands"]:
            self._tell(current=words)
            result = self._call(words)
            if result != 0 or self._is_to_stop:
                break
        ended = {"signal": -result} if result < 0 else {"exit_code": result}
        self._tell(ended=time.time(), **ended)

    def _stop(self, *_signal: object) -> None:
        self._is_to_stop = True
        if self._child:
            self._child.send_signal(signal.SIGINT)  # on which the installer says what it leaves

    def _call(self, words: str) -> int:
        command = [self._plan["program"], *words.split(), "--dir", self._plan["assets"]]
        try:
            # The lock tells that something runs, and the installer keeps it even if this program is killed.
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, env=self._plan["environment"], pass_fds=[self._lock], umask=SECRET
            )
        except OSError as error:
            _say(f"{command[0]} cannot be started: {error}")
            return NOT_STARTED
        if self._is_to_stop:
            self._child.send_signal(signal.SIGINT)
        return self._child.wait()

    def _tell(self, **news: Any) -> None:
        self._note.update(news)
        draft = self._directory / f".{RUN}.new"
        draft.write_text(json.dumps(self._note) + "\n", encoding="utf-8")
        draft.replace(self._directory / RUN)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _take(lock: int) -> None:
    """Readers hold it for an instant, too."""
    deadline = time.monotonic() + LOCKING_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        if time.monotonic() > deadline:
            raise OSError("another installer of this lab is running")
        time.sleep(0.01)


def _detach() -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)


def _speak_into(file: Path) -> None:
    output = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)


def main() -> None:
    directory = Path(sys.argv[1])
    os.umask(SECRET)
    os.chdir(directory)
    _speak_into(directory / OUTPUT)
    if DETACHED in sys.argv[2:]:
        _detach()
    try:
        with (directory / LOCK).open("a", encoding="ascii") as lock:
            _take(lock.fileno())
            Runner(directory, lock.fileno()).run()
    except OSError as error:  # the disk is full
        raise SystemExit(f"Running the installer in {directory} failed: {error}") from error


if __name__ == "__main__":
    main()
