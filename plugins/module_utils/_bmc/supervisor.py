# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

# Made by nometal.ipi and removed with its lab. Where no service manager runs, this keeps the lab's BMC service or its
# broker running: `supervisor <directory> <user> <command>...` returns at once, and does nothing when the same one is
# running already. It needs nothing but Python's own library, for it is a program of its own, which libvirt's network
# hook starts.
import ctypes
import fcntl
import logging
import logging.handlers
import os
import pwd
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PID = "supervisor.pid"
LOG = "service.log"
PAUSE_SECONDS = 0.3
LOG_BYTES = 1024 * 1024
PR_SET_PDEATHSIG = 1
PROGRAM = "supervisor"
BEGIN = "The supervisor begins"
END = "The service has ended"


def pid(directory: Path) -> int | None:
    with suppress(OSError, ValueError):
        number = int((directory / PID).read_text(encoding="ascii"))
        # After a crash or a reboot, the number may be another program's by now.
        words = Path(f"/proc/{number}/cmdline").read_text(encoding="utf-8").split("\0")
        return number if str(directory / PROGRAM) in words else None
    return None


class Supervisor:
    """Starts the service, notes what it says, and starts it again whenever it has ended."""

    def __init__(self, directory: Path, user: str, command: list[str]) -> None:
        self._directory = directory
        self._user = pwd.getpwnam(user)
        self._command = command
        self._child: subprocess.Popen[str] | None = None
        self._stopping = False
        self._log = logging.getLogger("service")
        self._log.setLevel(logging.INFO)
        file = logging.handlers.RotatingFileHandler(directory / LOG, maxBytes=LOG_BYTES, backupCount=1)
        file.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._log.addHandler(file)

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        self._log.info(BEGIN)
        while not self._stopping:
            self._serve()
            time.sleep(0 if self._stopping else PAUSE_SECONDS)

    def _stop(self, *_signal: object) -> None:
        self._stopping = True
        if self._child:
            self._child.terminate()

    def _serve(self) -> None:
        try:
            self._child = self._start()
        except (OSError, subprocess.SubprocessError) as error:
            self._log.info("%s before it began: %s", END, error)
            return
        if self._stopping:
            self._child.terminate()
        with self._child as child:
            for line in child.stdout or ():
                self._log.info("%s", line.rstrip())
        if not self._stopping:
            self._log.info("%s with %s; it is started again", END, child.returncode)

    def _start(self) -> subprocess.Popen[str]:
        groups = os.getgrouplist(self._user.pw_name, self._user.pw_gid)
        return subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=self._directory / "state",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(self._directory / "state")},
            user=self._user.pw_uid,
            group=self._user.pw_gid,
            extra_groups=groups,
            umask=0o022,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - safe, for this program has one thread
        )


def _end_with_parent() -> None:
    """Or, were the supervisor killed, a service would be left that keeps its ports and that nothing stops."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _leave_caller() -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def main() -> None:
    directory, user, command = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.umask(0o022)  # whatever libvirt's, or that of who has run Ansible
    with (directory / PID).open("a", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if os.fork():
            return
        _leave_caller()
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        Supervisor(directory, user, command).run()


if __name__ == "__main__":
    main()
