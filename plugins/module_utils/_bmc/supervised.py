# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service and its broker where no service manager runs, each kept running by a small supervisor of its own."""

from __future__ import annotations

import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import supervisor
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.serving import Service, Serving
from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._core.program import Program, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

LAST_LINES = 15
SYSTEM_BUS = Path("/run/dbus/system_bus_socket")
STOPPING_SECONDS = 40  # the service lets running requests end
HOOK = """\
#!/bin/sh
# Made by nometal.ipi for lab {name} and removed with it: no service manager starts its BMCs at boot, so libvirt does.
[ "$2" = started ] || exit 0
{broker}
exec {service}
"""


class Supervised:
    """libvirt's network hook starts the supervisors at boot, which is when the lab's network starts."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._entry = HookEntry(f"{lab.name}.bmc")
        # libvirt asks polkit about users other than root, over the system bus; without one it would refuse them.
        user, broker_user = (lab.user, lab.broker_user) if SYSTEM_BUS.exists() else ("root", "root")
        broker = Supervision(lab.broker_unit, lab.broker, broker_user, lab.broker_command)
        self._service = Supervision(lab.unit, lab.directory, user, lab.command)
        self._both = (broker, self._service)
        self._serving = Serving(lab)

    @property
    def name(self) -> str:
        return self._lab.unit

    def definition(self) -> str:
        return self._hook() + self._service.program.text

    def is_there(self) -> bool:
        return self._entry.path.exists()

    def is_installed(self) -> bool:
        return self._entry.read() == self._hook() and all(each.program.is_installed for each in self._both)

    def is_running(self) -> bool:
        return all(each.is_running() for each in self._both)

    def read(self) -> Service:
        return Service(
            there=self.is_there(),
            installed=self.is_installed(),
            running=any(each.is_running() for each in self._both),
            serving=self._serving.digest if self.is_running() else None,
        )

    def refuse_conflicts(self) -> None:
        """None else decides it."""

    def install(self) -> None:
        for each in self._both:
            each.program.install()
        self._entry.write(self._hook())

    def restart(self) -> None:
        self._stop()
        self._serving.begin()
        run(str(self._entry.path), "", "started")
        wait.require(
            self.is_running,
            STOPPING_SECONDS,
            lambda: f"The supervisor of {self.name} does not start within {STOPPING_SECONDS} seconds.",
            0.05,
        )

    def give_up(self) -> None:
        self._entry.remove()
        self._stop()

    def remove(self) -> None:
        self.give_up()

    def deaths(self) -> int:
        return sum(deaths_in(each.log()) for each in self._both)

    def last_words(self) -> str:
        return "\n".join(line for each in self._both for line in of_last_start(each.log())[-LAST_LINES:])

    def _hook(self) -> str:
        broker, service = (shlex.join(each.start) for each in self._both)
        return HOOK.format(name=self._lab.name, broker=broker, service=service)

    def _stop(self) -> None:
        for each in reversed(self._both):
            each.stop()


class Supervision:
    """A supervisor, and the directory where it has its things."""

    def __init__(self, name: str, directory: Path, user: str, command: Sequence[str]) -> None:
        self._name = name
        self._directory = directory
        self.program = Program(directory / supervisor.PROGRAM, text_of(supervisor))
        self.start = [str(self.program.path), str(directory), user, *command]

    def is_running(self) -> bool:
        return self._pid() is not None

    def log(self) -> str:
        with suppress(FileNotFoundError):
            return (self._directory / supervisor.LOG).read_text(encoding="utf-8", errors="replace")
        return ""

    def stop(self) -> None:
        pid = self._pid()
        if pid is None:
            return
        os.kill(pid, signal.SIGTERM)
        if wait.comes_true(lambda: not self.is_running(), STOPPING_SECONDS, 0.05):
            return
        os.kill(pid, signal.SIGKILL)  # and the kernel ends the service with it
        complaint = f"The supervisor of {self._name} (process {pid}) does not end within {STOPPING_SECONDS} seconds."
        wait.require(lambda: not self.is_running(), STOPPING_SECONDS, lambda: complaint, 0.05)

    def _pid(self) -> int | None:
        """Also of one whose directory was removed with all that is known of it."""
        return supervisor.pid(self._directory) or next(_processes_of(self.program.path), None)


def since_begin(log: str) -> list[str]:
    lines = log[: log.rfind("\n") + 1].splitlines()  # the last one may be being written
    begun = max((at for at, line in enumerate(lines) if supervisor.BEGIN in line), default=-1)
    return lines[begun + 1 :]


def _processes_of(program: Path) -> Iterator[int]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            is_it = os.fsencode(program) in file.read_bytes().split(b"\0")
            if is_it and (file.parent / "root").samefile("/"):  # and not in a container
                yield int(file.parent.name)


def deaths_in(log: str) -> int:
    return len([line for line in since_begin(log) if supervisor.END in line])


def of_last_start(log: str) -> list[str]:
    """What the service has said when it last ran to its end since the supervisor began, or if it runs on, all."""
    lines = since_begin(log)
    ends = [at + 1 for at, line in enumerate(lines) if supervisor.END in line]
    if not ends:
        return lines
    return lines[ends[-2] if len(ends) > 1 else 0 : ends[-1]]
