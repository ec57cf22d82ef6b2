# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service, kept running by systemd or, where no service manager runs, by a small supervisor of its own."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shlex
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host import files
from ansible_collections.nometal.ipi.plugins.module_utils._host.network_hook import HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._host.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._redfish import supervisor
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.unit import unit_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from ansible_collections.nometal.ipi.plugins.module_utils._redfish.lab import Lab

LAST_LINES = 15
PROCESS_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
"""systemd's MESSAGE_ID for the end of a service's process."""
SYSTEM_BUS = Path("/run/dbus/system_bus_socket")
STOPPING_SECONDS = 40  # the service lets running requests end
HOOK = """\
#!/bin/sh
# Made by nometal.ipi for lab {name} and removed with it: no service manager starts its BMCs at boot, so libvirt does.
[ "$2" = started ] || exit 0
exec {command}
"""


@dataclass(frozen=True)
class Service:
    """Installed: what starts it at boot is as it should be. Serving: a digest of what it cannot learn while it runs."""

    there: bool = False
    installed: bool = False
    running: bool = False
    serving: str | None = None


class Systemd:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._unit = f"{lab.unit}.service"
        self._file = Path("/etc/systemd/system") / self._unit

    @property
    def name(self) -> str:
        return self._unit

    def definition(self) -> str:
        return unit_text(self._lab)

    def is_there(self) -> bool:
        return self._file.exists()

    def is_installed(self) -> bool:
        return files_say(self._file, self.definition()) and self._property("UnitFileState") == "enabled"

    def is_running(self) -> bool:
        return self._property("ActiveState") in ("active", "activating")

    def install(self) -> None:
        files.write_whole(self._file, self.definition(), 0o644)
        run("systemctl", "enable", "--quiet", self._unit)  # has systemd read the file, too

    def restart(self) -> None:
        if self._property("NeedDaemonReload") == "yes":  # a run killed just before may have written the file
            run("systemctl", "daemon-reload")
        run("systemctl", "restart", self._unit)

    def remove(self) -> None:
        run("systemctl", "disable", "--quiet", "--now", self._unit)
        files.remove(self._file)
        run("systemctl", "daemon-reload")

    def last_words(self) -> str:
        said, ended = f"_SYSTEMD_UNIT={self._unit}", (f"UNIT={self._unit}", f"MESSAGE_ID={PROCESS_EXIT}")
        options = ["--quiet", "--no-pager", "--output=cat", "--since=-1min", f"--lines={LAST_LINES}"]
        return run("journalctl", *options, said, "+", *ended)

    def _property(self, name: str) -> str:
        return run("systemctl", "show", f"--property={name}", "--value", self._unit).strip()


class Supervised:
    """libvirt's network hook starts the supervisor at boot, which is when the lab's network starts."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._entry = HookEntry(f"{lab.name}.bmc")
        self._program = lab.directory / supervisor.PROGRAM

    @property
    def name(self) -> str:
        return self._lab.unit

    def definition(self) -> str:
        return self._hook() + _program()

    def is_there(self) -> bool:
        return self._entry.path.exists()

    def is_installed(self) -> bool:
        return self._entry.read() == self._hook() and files_say(self._program, _program())

    def is_running(self) -> bool:
        return supervisor.pid(self._lab.directory) is not None

    def install(self) -> None:
        files.write_whole(self._program, _program(), 0o755)
        self._entry.write(self._hook())

    def restart(self) -> None:
        self._stop()
        run(str(self._entry.path), "", "started")
        _wait_until(self.is_running, f"The supervisor of {self.name} does not start")

    def remove(self) -> None:
        self._entry.remove()
        self._stop()

    def last_words(self) -> str:
        with suppress(FileNotFoundError):
            text = (self._lab.directory / supervisor.LOG).read_text(encoding="utf-8", errors="replace")
            return "\n".join(text.splitlines()[-LAST_LINES:])
        return ""

    def _hook(self) -> str:
        # libvirt asks polkit about users other than root, over the system bus; without one it would refuse them.
        user = self._lab.user if SYSTEM_BUS.exists() else "root"
        command = [str(self._program), str(self._lab.directory), user, *self._lab.command]
        return HOOK.format(name=self._lab.name, command=shlex.join(command))

    def _stop(self) -> None:
        pid = supervisor.pid(self._lab.directory)
        if pid is None:
            return
        os.kill(pid, signal.SIGTERM)
        with suppress(OperatorError):
            _wait_until(lambda: not self.is_running(), "")
            return
        os.kill(pid, signal.SIGKILL)  # and the kernel ends the service with it
        _wait_until(lambda: not self.is_running(), f"The supervisor of {self.name} (process {pid}) does not end")


def service_of(lab: Lab) -> Systemd | Supervised:
    # Where systemd is in charge, and not merely installed, it keeps this directory.
    return Systemd(lab) if Path("/run/systemd/system").is_dir() else Supervised(lab)


def fingerprint(lab: Lab) -> str:
    """Of what only a restart changes."""
    parts = {
        "listen": [asdict(endpoint) for endpoint in lab.listen],
        "tls": lab.tls,
        "software": software_of(lab),
        "definition": service_of(lab).definition(),
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def software_of(lab: Lab) -> str | None:
    """Which release of the software is installed: the role writes this last."""
    with suppress(FileNotFoundError):
        return (lab.software / "digest").read_text(encoding="utf-8").strip() or None
    return None


def files_say(path: Path, text: str) -> bool:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8") == text
    return False


def _program() -> str:
    return f"#!/usr/bin/python3\n{inspect.getsource(supervisor)}"


def _wait_until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + STOPPING_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise OperatorError(f"{complaint} within {STOPPING_SECONDS} seconds.")
        time.sleep(0.05)
