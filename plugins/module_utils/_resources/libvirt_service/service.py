# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import re
import signal
import socket
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, files, network_hook, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import pid_file_of, pid_of, run
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._observe import labs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import (
    connect,
    lists_interfaces,
    missing_bindings,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import ports_of, read_links

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
HOOK_STEPS = {"install": network_hook.install, "remove": network_hook.uninstall}
PATIENCE = 30.0
TOPIC = "libvirt_service"
SHIPPED = "default"


@dataclass(frozen=True)
class LibvirtService:
    """What of libvirt is running: sockets of systemd, or daemons. And what there is to start it at boot for us."""

    running: frozenset[str]
    at_boot: frozenset[str] = frozenset()
    # What there is of the hook that libvirt calls for its networks.
    hook: frozenset[str] = frozenset()
    # Daemons that were started before the interface driver or the hook was there: they look for them at their start.
    stale: frozenset[str] = frozenset()


def plan(current: LibvirtService, desired: LibvirtService) -> Sequence[Step]:
    return [
        *([Step("install", str(network_hook.DISPATCHER))] if desired.hook - current.hook else []),
        *(Step("start", name) for name in sorted(desired.running - current.running)),
        *([Step("enable", Systemd.TARGET)] if desired.at_boot - current.at_boot else []),
        *([Step("disable", Systemd.TARGET)] if current.at_boot - desired.at_boot else []),
        *(Step("restart", name) for name in sorted(current.stale - desired.stale)),
        *(Step("stop", name) for name in sorted(current.running - desired.running)),
        *([Step("remove", str(network_hook.DISPATCHER))] if current.hook - desired.hook else []),
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
            hook=frozenset(network_hook.parts()),
            stale=_stale_daemons() if self._layout == "monolithic" else network_hook.deaf_daemons(),
        )

    def wanted(self) -> LibvirtService:
        return LibvirtService(
            running=frozenset(SYSTEMD_SOCKETS[self._layout]), at_boot=self.BOOT, hook=network_hook.WHOLE
        )

    def apply(self, step: Step) -> None:
        if step.verb == "enable":
            files.write_whole(self.UNIT, self._unit_text(), 0o644)
            run("systemctl", "daemon-reload")
            run("systemctl", "enable", self.TARGET)
        elif step.verb == "disable":
            run("systemctl", "disable", "--now", self.TARGET)
            self.UNIT.unlink()
            run("systemctl", "daemon-reload")
        elif step.verb == "stop":
            run("systemctl", "stop", step.target, _service_of(step.target))
        elif step.verb == "restart":
            run("systemctl", "restart", f"{step.target}.service")
        elif step.verb == "start":
            run("systemctl", "start", step.target)
        else:
            HOOK_STEPS[step.verb]()

    def _boot_parts(self) -> Iterator[str]:
        if self.UNIT.exists():
            yield "unit file"
            if self.UNIT.read_text(encoding="utf-8") == self._unit_text() and files.has_access(self.UNIT, 0o644):
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
        running = frozenset(name for name in DAEMONS if pid_of(name))
        return LibvirtService(running, hook=frozenset(network_hook.parts()), stale=_stale_daemons())

    def wanted(self) -> LibvirtService:
        return LibvirtService(running=frozenset(DAEMONS), hook=network_hook.WHOLE)

    def apply(self, step: Step) -> None:
        if step.verb in ("stop", "restart"):
            self._stop(step.target)
        if step.verb in ("start", "restart"):
            run(step.target, "--daemon")
        if step.verb in HOOK_STEPS:
            HOOK_STEPS[step.verb]()

    def _stop(self, daemon: str) -> None:
        pid = pid_of(daemon)
        if pid:
            os.kill(pid, signal.SIGTERM)
            _wait_for(lambda: not pid_of(daemon), f"{daemon} (process {pid}) does not stop")
        if not pid_of(daemon):
            pid_file_of(daemon).unlink(missing_ok=True)  # the daemon leaves it behind


def wait_until_it_answers() -> None:
    _wait_for(_answers, f"libvirt was started, but nothing answers at {SOCKET}: see its log (journalctl -u 'virt*')")


def _answers() -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(SOCKET)) == 0


def _stale_daemons() -> frozenset[str]:
    lacking = frozenset({"libvirtd"}) if _lacks_driver() else frozenset()
    return lacking | network_hook.deaf_daemons()  # last, for to ask for the driver may have started the daemon


def _lacks_driver() -> bool:
    installed = any(any(Path("/usr").glob(directory + INTERFACE_DRIVER)) for directory in ("lib*/", "lib/*/"))
    return installed and not missing_bindings() and _answers() and not lists_interfaces("qemu:///system")


def _wait_for(condition: Callable[[], bool], complaint: str) -> None:
    wait.require(condition, PATIENCE, lambda: f"{complaint} after {PATIENCE:.0f} seconds.")


def _service_of(unit: str) -> str:
    return unit.replace(".socket", ".service")


def _unit_properties(units: Sequence[str]) -> dict[str, tuple[str, str]]:
    shown = run("systemctl", "show", "--property=Id,ActiveState,UnitFileState", *units)
    blocks = re.findall(r"^Id=(.*)\nActiveState=(.*)\nUnitFileState=(.*)$", shown, re.MULTILINE)
    return {unit: (active, enabled) for unit, active, enabled in blocks}


class HostLibvirt(Resource[LibvirtService, "Systemd | Daemons"]):
    alone = partial(one_at_a_time, "libvirt_service")

    @property
    def is_wanted(self) -> bool:
        return self.params["state"] == "started"

    def desired(self) -> LibvirtService:
        # Where systemd is in charge, and not merely installed, it keeps this directory.
        self.port = Systemd(self.params["layout"]) if Path("/run/systemd/system").is_dir() else Daemons()
        self._memory = HostMemory(Path(self.params["memory"]))
        current = self.port.read()
        if self.is_wanted:
            wanted = self.port.wanted()
            self._starting = wanted.running - current.running
            return replace(wanted, running=current.running | wanted.running)
        started_by_us = current.running & set(self._memory.recall().get(TOPIC, {}))
        self._in_use = _things_of_others()
        vms = self._in_use["VM"]
        self._kept_for = vms if started_by_us else []
        return LibvirtService(current.running - (set() if vms else started_by_us), stale=current.stale)

    @contextmanager
    def open(self) -> Iterator[Systemd | Daemons]:
        if self.is_wanted and not self.check_mode:
            self._memory.note({TOPIC: dict.fromkeys(self._starting, "stopped")})
            directories.note([network_hook.DISPATCHER.parent], self._memory)
        yield self.port

    def plan(self, current: LibvirtService, desired: LibvirtService) -> Sequence[Step]:
        return plan(current, desired)

    def finish(self, _steps: Sequence[Step]) -> None:
        if self.is_wanted:
            wait_until_it_answers()
        else:
            directories.remove(self._memory)

    def result(self) -> dict[str, Any]:
        if self.is_wanted:
            return {}
        listed = [f"{kind} {name}" for kind, names in self._in_use.items() for name in names]
        return {"in_use": listed, "kept_for": self._kept_for}


def _things_of_others() -> dict[str, list[str]]:
    """All that are left: the last lab has removed its own before it lets go of libvirt."""
    try:
        with connect("qemu:///system") as connection:
            return {
                "VM": sorted(domain.name() for domain in connection.listAllDomains()),
                "network": sorted(each.name() for each in connection.listAllNetworks() if _is_of_others(each)),
                "storage pool": sorted(pool.name() for pool in connection.listAllStoragePools()),
            }
    except NotThereYetError:  # or this Python lacks its bindings: they are there for the others all the same
        return {"VM": labs.defined("domain")}


def _is_of_others(network: Any) -> bool:
    if network.name() != SHIPPED:
        return True
    return bool(network.isActive()) and bool(ports_of(network.bridgeName(), read_links()))
