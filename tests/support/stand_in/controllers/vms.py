"""The machines that the controllers are about: VMs, found in libvirt by their MAC addresses."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt
from lxml import etree
from support.stand_in import bootstrap, disks, documents
from support.stand_in.bmc import Bmc, BmcFailed
from support.stand_in.controllers.cluster import Access
from support.stand_in.controllers.objects import Object
from support.stand_in.host import SYSTEM, driver

LOOK_SECONDS = 0.2
DUID_LL = "00:03:00:01:"


@dataclass(frozen=True)
class Vm:
    domain: str
    macs: tuple[str, ...]
    is_on: bool
    has_medium: bool
    disks: tuple[disks.Disk, ...]


class Vms:
    """`media` is where the image server is, `network` what nodes without a reservation have their addresses of."""

    def __init__(self, media: str, network: str) -> None:
        self._media = media
        self._network = ipaddress.ip_network(network)
        self._lock = threading.Lock()
        self._vms: list[Vm] = []
        self._looked = -LOOK_SECONDS
        self._systems: dict[Path, tuple[tuple[int, int], bool]] = {}

    def bmc(self, access: Access) -> Bmc:
        told = {"username": access.username, "password": access.password}
        told["disableCertificateVerification"] = "" if access.verify else "yes"
        return driver(access.address, told, access.authority)

    def medium(self, host: str) -> str:
        return f"{self._media}/images/boot-{host}.iso"

    def hardware(self, mac: str, host: str, network: str) -> Object:
        vm = self._find(mac)
        if not (vm and vm.is_on):
            raise BmcFailed("timeout reached while inspecting the node")
        static = _static(network)
        nics = [
            {"name": f"eth{number}", "mac": own, "ip": address}
            for number, own in enumerate(vm.macs)
            for address in static.get(own) or static.get(f"eth{number}") or self._reserved(own, first=number == 0)
        ]
        storage = [{"name": f"/dev/disk/{number}", "sizeBytes": disk.size} for number, disk in enumerate(vm.disks)]
        return {"hostname": host, "nics": nics, "storage": storage, "cpu": {"arch": "x86_64", "count": 1}}

    def write(self, mac: str, hints: Object) -> None:
        vm = self._find(mac)
        if vm and vm.disks:
            serial = str(hints.get("serialNumber", ""))
            chosen = [disk for disk in vm.disks if serial and disk.serial == serial] or vm.disks
            disks.write(chosen[0], SYSTEM)

    def wipe(self, mac: str) -> None:
        vm = self._find(mac)
        for disk in vm.disks if vm else ():
            disks.write(disk, b"")

    def runs(self, mac: str) -> bool:
        vm = self._find(mac)
        return bool(vm and vm.is_on and not vm.has_medium and any(self._has_system(disk) for disk in vm.disks))

    def is_on(self, mac: str) -> bool:
        vm = self._find(mac)
        return bool(vm and vm.is_on)

    def carries(self, mac: str) -> bool:
        """Whether its disk has a system, on or off."""
        vm = self._find(mac)
        return bool(vm and any(self._has_system(disk) for disk in vm.disks))

    def _find(self, mac: str) -> Vm | None:
        with self._lock:
            if time.monotonic() - self._looked >= LOOK_SECONDS:
                try:
                    with bootstrap.connection() as connection:
                        self._vms = list(_read(connection))
                except libvirt.libvirtError as error:
                    raise BmcFailed(f"libvirt does not answer: {error}") from error
                self._looked = time.monotonic()
            return next((vm for vm in self._vms if mac in vm.macs), None)

    def _has_system(self, disk: disks.Disk) -> bool:
        """It is read again only after somebody has written to it."""
        try:
            stat = disk.path.stat()
        except OSError:
            return False
        seen = (stat.st_mtime_ns, stat.st_size)
        if self._systems.get(disk.path, ((0, 0), False))[0] != seen:
            self._systems[disk.path] = (seen, disks.read(disk, len(SYSTEM)) == SYSTEM)
        return self._systems[disk.path][1]

    def _reserved(self, mac: str, *, first: bool) -> list[str]:
        """By DHCP; the first NIC has some address in any case."""
        with suppress(libvirt.libvirtError), bootstrap.connection() as connection:
            for network in connection.listAllNetworks():
                found = etree.fromstring(network.XMLDesc()).iterfind("ip/dhcp/host")
                own = [str(one.get("ip")) for one in found if mac in _ids(one)]
                if own:
                    return own
        place = int(mac.rpartition(":")[2], 16) % 200 + 20
        return [str(self._network[min(place, self._network.num_addresses - 2)])] if first else []


def _read(connection: Any) -> Iterator[Vm]:
    for domain in connection.listAllDomains():
        with suppress(libvirt.libvirtError):  # it may be gone meanwhile
            root = etree.fromstring(domain.XMLDesc())
            every = list(root.iterfind("devices/disk"))
            drives = [disk for disk in every if disk.get("device") == "cdrom" and disk.find("source") is not None]
            macs = tuple(str(mac.get("address")).lower() for mac in root.iterfind("devices/interface/mac"))
            yield Vm(domain.name(), macs, bool(domain.isActive()), bool(drives), tuple(disks.of(root)))


def _ids(reservation: Any) -> tuple[str, str]:
    return str(reservation.get("mac", "")).lower(), str(reservation.get("id", "")).lower().removeprefix(DUID_LL)


def _static(network: str) -> dict[str, list[str]]:
    """By interface, and by its MAC address, of nmstate."""
    read = documents.load(network) if network else None
    found = {}
    for one in (read or {}).get("interfaces", ()):
        families = [one.get("ipv4") or {}, one.get("ipv6") or {}]
        own = [str(address["ip"]) for family in families for address in family.get("address") or ()]
        found[str(one.get("name"))] = found[str(one.get("mac-address", "")).lower()] = own
    return found
