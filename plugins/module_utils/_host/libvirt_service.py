# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.connection import lists_interfaces
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SOCKET = Path("/run/libvirt/libvirt-sock")
SYSTEMD_SOCKETS = {
    "monolithic": ("libvirtd.socket", "virtlogd.socket"),
    "modular": (
        "virtinterfaced.socket",
        "virtlogd.socket",
        "virtnetworkd.socket",
        "virtnodedevd.socket",
        "virtnwfilterd.socket",
        "virtproxyd.socket",  # what the installer dials: without it, libvirt is not there for it
        "virtqemud.socket",
        "virtsecretd.socket",
        "virtstoraged.socket",
    ),
}
# These start what is marked for autostart: networks, pools, VMs.
SYSTEMD_BOOT_SERVICES = {
    "monolithic": ("libvirtd.service",),
    "modular": ("virtnetworkd.service", "virtqemud.service", "virtstoraged.service"),
}
INTERFACE_DRIVER = "libvirt/connection-driver/libvirt_driver_interface.so"
DAEMONS = ("virtlogd", "libvirtd")
PATIENCE = 30.0


@dataclass(frozen=True)
class LibvirtService:
    """What of libvirt is running: sockets of systemd, or daemons. And what there is to start it at boot for us."""

    running: frozenset[str]
    at_boot: frozenset[str] = frozenset()
    # The daemon was started before its interface driver was installed, and has not loaded it.
    lacks_driver: bool = False


def plan(current: LibvirtService, desired: LibvirtService) -> Sequence[Step]:
    return [
        *(Step("start", name) for name in sorted(desired.running - current.running)),
        *([Step("enable", Systemd.TARGET)] if desired.at_boot - current.at_boot else []),
        *([Step("disable", Systemd.TARGET)] if current.at_boot - desired.at_boot else []),
        *([Step("restart", "libvirtd")] if current.lacks_driver and not desired.lacks_driver else []),
        *(Step("stop", name) for name in sorted(current.running - desired.running)),
    ]


class Systemd:
    """libvirt under systemd. Boot is taken care of by a target of our own: how its units are enabled stays as it is."""

    TARGET = "nometal-libvirt.target"
    UNIT = Path("/etc/systemd/system") / TARGET
    BOOT = frozenset({"unit file", "unit file up to date", "link"})

    def __init__(self, usual_layout: str) -> None:
        # One who has kept, or gone back to, the single daemon keeps it.
        single = _unit_properties(["libvirtd.socket", "libvirtd.service"])
        in_use = any("active" in states or "enabled" in states for states in single.values())
        self._layout = "monolithic" if in_use else usual_layout

    def read(self) -> LibvirtService:
        sockets = SYSTEMD_SOCKETS[self._layout]
        # A service that runs without its socket unit has made the socket itself.
        states = _unit_properties([*sockets, *map(_service_of, sockets)])
        running = (name for name in sockets if "active" in states[name] + states[_service_of(name)])
        return LibvirtService(
            running=frozenset(running),
            at_boot=frozenset(self._boot_parts()),
            lacks_driver=self._layout == "monolithic" and _lacks_driver(),
        )

    def wanted(self) -> LibvirtService:
        return LibvirtService(running=frozenset(SYSTEMD_SOCKETS[self._layout]), at_boot=self.BOOT)

    def apply(self, step: Step) -> None:
        if step.verb == "enable":
            self.UNIT.write_text(self._unit_text(), encoding="utf-8")
            _run("systemctl", "daemon-reload")
            _run("systemctl", "enable", self.TARGET)
        elif step.verb == "disable":
            _run("systemctl", "disable", "--now", self.TARGET)
            self.UNIT.unlink()
            _run("systemctl", "daemon-reload")
        elif step.verb == "stop":
            _run("systemctl", "stop", step.target, _service_of(step.target))
        elif step.verb == "restart":
            _run("systemctl", "restart", f"{step.target}.service")
        else:
            _run("systemctl", "start", step.target)

    def _boot_parts(self) -> Iterator[str]:
        if self.UNIT.exists():
            yield "unit file"
            if self.UNIT.read_text(encoding="utf-8") == self._unit_text():
                yield "unit file up to date"
        if "enabled" in _unit_properties([self.TARGET])[self.TARGET]:
            yield "link"

    def _unit_text(self) -> str:
        units = " ".join(SYSTEMD_SOCKETS[self._layout] + SYSTEMD_BOOT_SERVICES[self._layout])
        return (
            "# Made by nometal.ipi and removed with the last lab.\n"
            "[Unit]\nDescription=libvirt for the labs of nometal.ipi\n"
            f"Wants={units}\n\n[Install]\nWantedBy=multi-user.target\n"
        )


class Daemons:
    """libvirt where no service manager runs, as in containers: nothing starts it at boot, each run of ours does."""

    def read(self) -> LibvirtService:
        running = frozenset(name for name in DAEMONS if _pid_of(name))
        return LibvirtService(running=running, lacks_driver=_lacks_driver())

    def wanted(self) -> LibvirtService:
        return LibvirtService(running=frozenset(DAEMONS))

    def apply(self, step: Step) -> None:
        if step.verb in ("stop", "restart"):
            self._stop(step.target)
        if step.verb in ("start", "restart"):
            _run(step.target, "--daemon")

    def _stop(self, daemon: str) -> None:
        pid = _pid_of(daemon)
        if pid:
            os.kill(pid, signal.SIGTERM)
            _wait_for(lambda: not _pid_of(daemon), f"{daemon} (process {pid}) does not stop")


def wait_until_it_answers() -> None:
    _wait_for(_answers, f"libvirt was started, but nothing answers at {SOCKET}: see its log (journalctl -u 'virt*')")


def _answers() -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(SOCKET)) == 0


def _lacks_driver() -> bool:
    installed = any(any(Path("/usr").glob(directory + INTERFACE_DRIVER)) for directory in ("lib*/", "lib/*/"))
    return installed and _answers() and not lists_interfaces("qemu:///system")


def _wait_for(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise OperatorError(f"{complaint} after {PATIENCE:.0f} seconds.")
        time.sleep(0.1)


def _pid_of(daemon: str) -> int | None:
    try:
        pid = int(Path(f"/run/{daemon}.pid").read_text(encoding="ascii"))
        command = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    # After a crash, the number in the file may be another program's by now.
    return pid if command == daemon else None


def _service_of(unit: str) -> str:
    return unit.replace(".socket", ".service")


def _unit_properties(units: Sequence[str]) -> dict[str, tuple[str, str]]:
    shown = _run("systemctl", "show", "--property=Id,ActiveState,UnitFileState", *units)
    blocks = re.findall(r"^Id=(.*)\nActiveState=(.*)\nUnitFileState=(.*)$", shown, re.MULTILINE)
    return {unit: (active, enabled) for unit, active, enabled in blocks}


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise OperatorError(f"{command[0]} is not installed: role nometal.ipi.host_prep installs it.") from error
    except subprocess.CalledProcessError as error:
        raise OperatorError(f"`{' '.join(command)}` failed: {error.stderr.strip()}") from error
    return done.stdout
