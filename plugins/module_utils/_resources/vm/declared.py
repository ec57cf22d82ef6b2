# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the arguments of bmh_vm on any host. Pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Callable
from uuid import UUID

from ansible_collections.nometal.ipi.plugins.module_utils._core import types as kinds
from ansible_collections.nometal.ipi.plugins.module_utils._core.key_types import WORDS
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import (
    DISK_SECTOR,
    HIGHEST_PORT,
    LEAST_DISK,
    LEAST_MEMORY_MIB,
    LONGEST_VM_NAME,
    MOST_DISK,
    MOST_DISKS,
    MOST_MEMORY_MIB,
    MOST_NICS,
    MOST_VCPUS,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import describe, nearest, show, show_key
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Section
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.root_device_hints import RootDeviceHints
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import ROTATING_BUSES
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import disk_name, finding, plain_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

    Arguments = Mapping[str, Any]
    Wrong = Iterator[tuple[str, str]]
    """A key, and what is wrong with it."""
    Check = Callable[[Any], object]
    """Its ValueError says what is wrong and what would be right."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
POOL = re.compile(r"(?!\.)[^/\x00-\x1f]{1,200}")
NETWORK = re.compile(r"[^/\x00-\x1f]{1,200}")
MACHINE = re.compile(r"q35|pc-q35-[A-Za-z0-9._]+")
URL = re.compile(r"[a-z][-+.a-z0-9]*://[!-~]+")


def problems_of(items: Sequence[Arguments], pool: str | None) -> list[Finding]:
    found = [*names_of(items), *_problems_of_each(items)]
    if pool is not None:
        found += [finding("argument.invalid", "", *wrong) for wrong in _wrong("pool", pool, pool_name)]
    elif any(item["disks"] for item in items):
        found.append(
            finding(
                "argument.missing", "", "pool", "is missing; the storage pool that the disks are to lie in is right"
            )
        )
    return [*found, *_duplicates(items)]


def problems_of_owner(owner: str) -> list[Finding]:
    return [finding("argument.invalid", "", *wrong) for wrong in _wrong("owner", owner, kinds.cluster_name)]


def names_of(items: Sequence[Arguments]) -> Iterator[Finding]:
    """All that matters of VMs that are to be gone."""
    for number, item in enumerate(items):
        yield from (
            finding("argument.invalid", f"vms[{number}]", *wrong)
            for wrong in _wrong("vm_name", item["vm_name"], file_name)
        )


def _problems_of_each(items: Sequence[Arguments]) -> Iterator[Finding]:
    for number, item in enumerate(items):
        label = f"vms[{number}]" if is_wrong(item["vm_name"], file_name) else item["vm_name"]
        for about in (_about_itself, _about_disks, _about_nics, _about_its_host):
            yield from (finding("argument.invalid", label, *wrong) for wrong in about(item))


def _wrong(key: str, value: Any, check: Check) -> Wrong:
    try:
        check(value)
    except ValueError as error:
        yield key, str(error)


def is_wrong(value: Any, check: Check) -> bool:
    return any(_wrong("", value, check))


def file_name(value: str) -> None:
    if not NAME.fullmatch(value) or len(value) > LONGEST_VM_NAME:
        right = f"up to {LONGEST_VM_NAME} letters, digits, dots, hyphens and underscores are right"
        raise ValueError(f"is {show(value)}; {right}, the first a letter or digit")


def pool_name(value: str) -> None:
    if not POOL.fullmatch(value):
        raise ValueError(f"is {show(value)}; the name of a storage pool is right, such as nometal-demo")


def network_name(value: str) -> None:
    if not NETWORK.fullmatch(value):
        raise ValueError(f"is {show(value)}; the name of a libvirt network is right, such as nometal-demo")


def _machine(value: str) -> None:
    if not MACHINE.fullmatch(value):
        right = "q35 is right, or a version of it such as pc-q35-7.2"
        raise ValueError(f"is {show(value)}, which has no SATA drive for the BMC's media; {right}")


def _uuid(value: str) -> None:
    if not UUID(kinds.uuid_text(value)).int:
        raise ValueError("is all zeros, which is nobody's; a UUID is right that no other machine has")


def _url(value: Any) -> None:
    if not isinstance(value, str) or not URL.fullmatch(value):
        raise ValueError(f"is {describe(value)}; a URL is right, such as ipmi://192.168.126.1:6230")


def _words(value: Any) -> None:
    if not (isinstance(value, str) and WORDS.accepts(value)):
        raise ValueError(f"is {describe(value)}; one line of printable text is right")


def _disk_size(value: int) -> None:
    between(LEAST_DISK, MOST_DISK)(value)
    if value % DISK_SECTOR:
        raise ValueError(f"is {value}; a multiple of {DISK_SECTOR} is right, which a sector has")


def between(least: int, most: int) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"is {show(value)}; {least} to {most} are right")

    return check


OF_A_VM: Mapping[str, Check] = {
    "name": kinds.domain_name,
    "uuid": _uuid,
    "vcpus": between(1, MOST_VCPUS),
    "memory_mib": between(LEAST_MEMORY_MIB, MOST_MEMORY_MIB),
    "machine": _machine,
}
OF_A_DISK: Mapping[str, Check] = {"name": file_name, "size_bytes": _disk_size, "serial": kinds.serial}
OF_A_NIC: Mapping[str, Check] = {
    "mac": kinds.mac_address,
    "network": network_name,
    "bridge": kinds.interface_name,
    "boot_order": between(1, MOST_NICS),
}
OF_A_BMC: Mapping[str, Check] = {
    "protocol": _words,
    "host": _words,
    "port": between(1, HIGHEST_PORT),
    "address": _url,
}
NEEDED = ("uuid", "vcpus", "memory_mib")


def _checked(given: Arguments, checks: Mapping[str, Check], below: str = "") -> Wrong:
    for key, check in checks.items():
        if given.get(key) is not None:
            yield from _wrong(below + key, given[key], check)


def _about_itself(item: Arguments) -> Wrong:
    yield from ((key, "is missing") for key in NEEDED if item[key] is None)
    yield from _checked(item, OF_A_VM)
    if item["domain_type"] == "qemu" and item["cpu_mode"] == "host-passthrough":
        yield "cpu_mode", "is host-passthrough, which needs KVM; maximum is right for domain_type qemu"


def _about_disks(item: Arguments) -> Wrong:
    if len(item["disks"]) > MOST_DISKS:
        yield "disks", f"are {len(item['disks'])}; {MOST_DISKS} at most are right"
    for number, disk in enumerate(item["disks"]):
        below = f"disks[{number}]."
        yield from _checked(disk, OF_A_DISK, below)
        if disk["rotational"] is not None and disk["bus"] not in ROTATING_BUSES:
            yield f"{below}rotational", f"cannot be shown by the bus {disk['bus']}; scsi or sata is right"


def _about_nics(item: Arguments) -> Wrong:
    if len(item["nics"]) > MOST_NICS:
        yield "nics", f"are {len(item['nics'])}; {MOST_NICS} at most are right"
    for number, nic in enumerate(item["nics"]):
        yield from _checked(nic, OF_A_NIC, f"nics[{number}].")
        given = [key for key in ("network", "bridge") if nic[key] is not None]
        if len(given) != 1:
            yield f"nics[{number}]", f"has {'both' if given else 'neither'} of network and bridge; one is right"
    orders = Counter(nic["boot_order"] for nic in item["nics"] if nic["boot_order"] is not None)
    yield from (("nics", f"two have boot_order {order}; one is right") for order, times in orders.items() if times > 1)
    if item["boot_mac"] is not None and item["boot_mac"].lower() not in [nic["mac"].lower() for nic in item["nics"]]:
        yield "boot_mac", f"is {show(item['boot_mac'])}; the MAC of one of its nics is right"


def _about_its_host(item: Arguments) -> Wrong:
    """What is told to the installer, as it is."""
    bmc = item["bmc"] or {}
    yield from (_unknown(f"bmc.{key}", key, OF_A_BMC) for key in bmc if key not in OF_A_BMC)
    yield from _checked(bmc, OF_A_BMC, "bmc.")
    if item["root_device_hints"]:
        problems = Problems.none()
        Section(RootDeviceHints).parse(item["root_device_hints"], "root_device_hints", problems)
        yield from ((found.subject, found.message) for found in problems.found)


def _unknown(at: str, key: str, known: Mapping[str, Check]) -> tuple[str, str]:
    close = nearest(key, known)
    return at, f"is no known key; {f'did you mean {close}?' if close else 'known here: ' + ', '.join(known)}"


def _duplicates(items: Sequence[Arguments]) -> Iterator[Finding]:
    """Each is told of all VMs that share it, and of one that has it twice."""
    described = {
        ("vm_name", ""): [(item["vm_name"], item["vm_name"]) for item in items],
        ("uuid", ""): [(plain_uuid(item["uuid"]), item["vm_name"]) for item in items if item["uuid"]],
        ("nics", "MAC "): [(nic["mac"].lower(), item["vm_name"]) for item in items for nic in item["nics"]],
        ("disks", ""): [(disk_name(item, at), item["vm_name"]) for item in items for at in range(len(item["disks"]))],
        ("disks", "serial "): [
            (disk["serial"], item["vm_name"]) for item in items for disk in item["disks"] if disk["serial"]
        ],
    }
    for (key, what), pairs in described.items():
        times = Counter(value for value, _name in pairs)
        for value in (value for value, number in times.items() if number > 1):
            names = ", ".join(dict.fromkeys(show_key(name) for own, name in pairs if own == value))
            yield finding(
                "argument.duplicate", names, key, f"{what}{value} is there {times[value]} times; once is right"
            )
