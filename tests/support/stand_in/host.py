"""One bare metal host as metal3 brings it up: inspected from a medium, written to, and started from its disk."""

from __future__ import annotations

import threading
from typing import Any, Callable

from lxml import etree
from support.stand_in import bootstrap, disks
from support.stand_in.bmc import Bmc, BmcFailed, has_drive
from support.stand_in.ipmi import Ipmi
from support.stand_in.redfish import Redfish

SYSTEM = b"STAND-IN SYSTEM\n"
"""What is on the disk of a node that is installed."""
UNINITIALIZED, REGISTERING, INSPECTING, PREPARING = "uninitialized", "registering", "inspecting", "preparing"
AVAILABLE, PROVISIONING, PROVISIONED = "available", "provisioning", "provisioned"


class Host(threading.Thread):
    """`wait(steps)` takes its time; `hold(host)` does not return while the scenario has it stay where it is."""

    def __init__(
        self,
        told: dict[str, Any],
        authority: str,
        medium: str,
        wait: Callable[[float], None],
        hold: Callable[[Host], None],
    ) -> None:
        super().__init__(name=told["name"], daemon=True)
        self.told = told
        self.state = ""
        self.error: tuple[str, str] | None = None
        """Its kind, and what the BMC had against it, or the scenario."""
        self.deploy = threading.Event()
        """Until it is set, the host stays available."""
        self._bmc = driver(told["bmc"]["address"], told["bmc"], authority)
        self._medium = medium
        self._wait = wait
        self._hold = hold

    def run(self) -> None:
        self.state = UNINITIALIZED
        self._wait(1)
        self._do(REGISTERING, "registration error", self._register)
        self._do(INSPECTING, "inspection error", self._inspect)
        self.state = PREPARING
        self._wait(1)
        self.state = AVAILABLE
        self.deploy.wait()
        self._wait(1)
        self._do(PROVISIONING, "provisioning error", self._provision)
        self.state = PROVISIONED

    def _do(self, state: str, kind: str, deed: Callable[[], None]) -> None:
        """Again and again: metal3 does not give up."""
        self.state = state
        while True:
            self._wait(2)
            try:
                deed()
            except BmcFailed as error:
                self.error = (kind, str(error))
                self._wait(3)
            else:
                self.error = None
                return

    def _register(self) -> None:
        self._bmc.power()

    def _inspect(self) -> None:
        self._bmc.switch("Off")
        if has_drive(self.told):
            self._bmc.insert(self._medium)
        self._bmc.boot("Cd" if has_drive(self.told) else "Pxe", "Once")
        self._bmc.switch("On")
        self._wait(4)
        self._hold(self)

    def _provision(self) -> None:
        self._wait(4)
        self._bmc.switch("Off")
        self._bmc.eject()
        write_system(self.told)
        self._bmc.boot("Hdd", "Continuous")
        self._bmc.switch("On")


def driver(address: str, bmc: dict[str, Any], authority: str) -> Bmc:
    return Ipmi(address, bmc) if address.startswith("ipmi:") else Redfish(address, bmc, authority)


def write_system(told: dict[str, Any]) -> None:
    """From outside, while it is off."""
    with bootstrap.connection() as connection:
        found = bootstrap.nodes(connection, [told]).values()
        own = [disk for node in found for disk in disks.of(etree.fromstring(node.XMLDesc()))]
    serial = str(told.get("rootDeviceHints", {}).get("serialNumber", ""))
    chosen = [disk for disk in own if serial and disk.serial == serial] or own
    if chosen:
        disks.write(chosen[0], SYSTEM)
