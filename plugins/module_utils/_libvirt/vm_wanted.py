# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the arguments of bmh_vm to the VMs that are wanted, and what is wrong with them on any host."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm import Disk, Fleet, Nic, Vm, Volume

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Arguments = Mapping[str, Any]

CONSOLES = "/var/log/libvirt/qemu"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LONGEST_NAME = 200  # of the files that are called after it, with their endings
SERIAL = re.compile(r"[-A-Za-z0-9_]{1,20}")  # more does not fit into what a virtio or SATA disk can say
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
MULTICAST = 0x01
MACHINE = re.compile(r"q35|pc-q35-[A-Za-z0-9._]+")
ROTATING_BUSES = ("scsi", "sata")
MOST_DISKS = 15
SECTOR = 512
NEEDED = ("uuid", "vcpus", "memory_mib")


@dataclass(frozen=True)
class Problem:
    vm: str
    """Empty: it is not one VM's."""
    text: str
    may_pass: bool = False
    """In check mode: what is missing is made by an earlier stage, which in check mode has made nothing."""

    def __str__(self) -> str:
        return f"{self.vm}: {self.text}" if self.vm else self.text


def fleet_from(items: Iterable[Arguments], owner: str, pool: str) -> Fleet:
    """Also of what is wrong, as far as it can be read: so all problems are found in one go."""
    given = list(items)
    return Fleet(
        vms={item["vm_name"]: _vm(item, owner, pool) for item in given},
        volumes={
            _disk_name(item, number): Volume(disk["format"], disk["size_bytes"])
            for item in given
            for number, disk in enumerate(item["disks"])
        },
    )


def console_of(name: str) -> str:
    return f"{CONSOLES}/{name}-console.log"


def boot_mac(item: Arguments) -> str | None:
    """Declared, or that of the NIC that boots first."""
    first = next(iter(_nics(item)), None)
    return item["boot_mac"] or (first.mac if first else None)


def root_device_hints(item: Arguments) -> Mapping[str, Any]:
    """Declared, or the serial number of the first disk."""
    serial = item["disks"][0]["serial"] if item["disks"] else None
    return item["root_device_hints"] or ({"serialNumber": serial} if serial else {})


def _vm(item: Arguments, owner: str, pool: str) -> Vm:
    return Vm(
        uuid=_plain_uuid(item["uuid"]),
        owner=owner,
        pool=pool,
        vcpus=item["vcpus"] or 0,
        memory_mib=item["memory_mib"] or 0,
        firmware=item["firmware"],
        machine=item["machine"],
        domain_type=item["domain_type"],
        cpu_mode=item["cpu_mode"],
        tpm=item["tpm"],
        console=console_of(item["vm_name"]),
        disks=tuple(_disk(item, number) for number in range(len(item["disks"]))),
        nics=_nics(item),
    )


def _disk(item: Arguments, number: int) -> Disk:
    disk = item["disks"][number]
    taken = {key: disk[key] for key in ("format", "bus", "serial", "rotational")}
    return Disk(name=_disk_name(item, number), **taken)


def _disk_name(item: Arguments, number: int) -> str:
    disk = item["disks"][number]
    return disk["name"] or f"{item['vm_name']}-{number}.{disk['format']}"


def _nics(item: Arguments) -> tuple[Nic, ...]:
    nics = [
        Nic(nic["mac"].lower(), nic["network"], nic["bridge"], nic["model"], nic["boot_order"]) for nic in item["nics"]
    ]
    return tuple(sorted(nics, key=lambda nic: (nic.boot_order is None, nic.boot_order)))


def _plain_uuid(text: str | None) -> str:
    return str(UUID(text)) if text and _is_uuid(text) else text or ""


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def problems_of(items: Sequence[Arguments], pool: str | None) -> list[Problem]:
    found = [problem for item in items for problem in _problems_of_one(item)]
    if not pool and any(item["disks"] for item in items):
        found.append(Problem("", "pool is missing: name the storage pool that the disks are to lie in"))
    return [*found, *_duplicates(items)]


def _problems_of_one(item: Arguments) -> Iterator[Problem]:
    name = item["vm_name"]
    texts = [*_about_itself(item), *_about_disks(item), *_about_nics(item)]
    yield from (Problem(name, text) for text in texts)


def _about_itself(item: Arguments) -> Iterator[str]:
    if not NAME.fullmatch(item["vm_name"]) or len(item["vm_name"]) > LONGEST_NAME:
        yield f"vm_name: up to {LONGEST_NAME} letters, digits, dots, hyphens and underscores are right"
    yield from (f"{key} is missing" for key in NEEDED if item[key] is None)
    yield from (
        f"{key}: 1 or more is right" for key in ("vcpus", "memory_mib") if item[key] is not None and item[key] < 1
    )
    if item["uuid"] is not None and not _is_uuid(item["uuid"]):
        yield f"uuid: {item['uuid']} is no UUID"
    if not MACHINE.fullmatch(item["machine"]):
        yield f"machine: {item['machine']} has no SATA drive for the BMC's media; q35, or a version of it, is right"
    if item["domain_type"] == "qemu" and item["cpu_mode"] == "host-passthrough":
        yield "cpu_mode: host-passthrough needs KVM; maximum is right for domain_type qemu"


def _about_disks(item: Arguments) -> Iterator[str]:
    if len(item["disks"]) > MOST_DISKS:
        yield f"disks: {len(item['disks'])} are too many; {MOST_DISKS} at most are right"
    for number, disk in enumerate(item["disks"]):
        at, name = f"disks[{number}]", _disk_name(item, number)
        if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            yield f"{at}.name: {name} is no name of a volume; letters, digits, dots, hyphens and underscores are right"
        if disk["size_bytes"] <= 0 or disk["size_bytes"] % SECTOR:
            yield f"{at}.size_bytes: {disk['size_bytes']} is no multiple of {SECTOR} bytes"
        if disk["serial"] is not None and not SERIAL.fullmatch(disk["serial"]):
            yield f"{at}.serial: 1 to 20 letters, digits, hyphens and underscores are right"
        if disk["rotational"] is not None and disk["bus"] not in ROTATING_BUSES:
            yield f"{at}.rotational cannot be shown by the bus {disk['bus']}; scsi or sata is right"


def _about_nics(item: Arguments) -> Iterator[str]:
    for number, nic in enumerate(item["nics"]):
        at, mac = f"nics[{number}]", nic["mac"].lower()
        if not MAC.fullmatch(mac):
            yield f"{at}.mac: {nic['mac']} is no MAC address such as 52:54:00:2c:a0:17"
        elif int(mac[:2], 16) & MULTICAST:
            yield f"{at}.mac: {nic['mac']} is a multicast address, which no machine may have"
        if bool(nic["network"]) == bool(nic["bridge"]):
            yield f"{at}: either network or bridge is right"
        if nic["boot_order"] is not None and nic["boot_order"] < 1:
            yield f"{at}.boot_order: 1 or more is right"
    orders = Counter(nic["boot_order"] for nic in item["nics"] if nic["boot_order"] is not None)
    yield from (f"nics: two have boot_order {order}" for order, times in orders.items() if times > 1)
    if item["boot_mac"] and item["boot_mac"].lower() not in [nic["mac"].lower() for nic in item["nics"]]:
        yield f"boot_mac: no NIC has {item['boot_mac']}"


def _duplicates(items: Sequence[Arguments]) -> Iterator[Problem]:
    """Each is told of all VMs that share it, and of one that has it twice."""
    described = {
        "the name": [(item["vm_name"], item["vm_name"]) for item in items],
        "uuid": [(_plain_uuid(item["uuid"]), item["vm_name"]) for item in items if item["uuid"]],
        "MAC": [(nic["mac"].lower(), item["vm_name"]) for item in items for nic in item["nics"]],
        "disk": [(_disk_name(item, at), item["vm_name"]) for item in items for at in range(len(item["disks"]))],
        "serial": [(disk["serial"], item["vm_name"]) for item in items for disk in item["disks"] if disk["serial"]],
    }
    for what, pairs in described.items():
        times = Counter(value for value, _name in pairs)
        for value in (value for value, number in times.items() if number > 1):
            names = ", ".join(dict.fromkeys(name for own, name in pairs if own == value))
            yield Problem(names, f"{what} {value} is there {times[value]} times; once is right")
