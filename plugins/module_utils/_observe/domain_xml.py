# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt's XML of a VM says of what is declared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import AUTO, Disk, Nic, Vm

try:
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OURS = "{urn:nometal:ipi}"
CDROM = "sdz"
"""The target of the drive that is always there, and that the BMC fills and empties."""
CPU_OF_TYPE = {"kvm": "host-passthrough", "qemu": "maximum"}
KIB = {"KiB": 1, "MiB": 1024, "GiB": 1024**2}


def parsed(xml: str) -> Any:
    return etree.fromstring(xml)


@dataclass(frozen=True)
class Mark:
    """Whose the VM is, and what its owner declared last."""

    owner: str | None = None
    firmware: str = ""
    pool: str = ""
    disks: tuple[str, ...] = ()
    """All volumes that were ever made for it: those of disks that it no longer has as well."""
    macs: tuple[str, ...] = ()


def mark_of(root: Any) -> Mark:
    mark = root.find(f"metadata/{OURS}vm")
    if mark is None:
        return Mark()
    return Mark(
        owner=mark.get("owner"),
        firmware=mark.get("firmware", ""),
        pool=mark.get("pool", ""),
        disks=tuple(disk.get("name", "") for disk in mark.iterfind(f"{OURS}disk")),
        macs=tuple(nic.get("mac", "") for nic in mark.iterfind(f"{OURS}nic")),
    )


def owner_of(root: Any) -> str | None:
    """The lab, by any of our marks: the VM of a rehearsal has another one than a node, and so has a network."""
    marks = (mark.get("owner") for mark in root.iterfind(f"metadata/{OURS}*"))
    return next((owner for owner in marks if owner), None)


def macs_of(root: Any) -> list[str]:
    return [element.get("address", "").lower() for element in root.iterfind("devices/interface/mac")]


def vm_of(root: Any, directory: str, wanted: Vm | None = None) -> Vm:
    """What satisfies the declaration is read as it was declared: a versioned q35 as q35, and so on."""
    mark = mark_of(root)
    domain_type = root.get("type", "")
    return Vm(
        uuid=root.findtext("uuid", default=""),
        owner=mark.owner,
        pool=mark.pool,
        vcpus=int(root.findtext("vcpu", default="0")),
        memory_mib=_mib(root.find("memory")),
        firmware=mark.firmware,
        machine=_machine(root.find("os/type").get("machine", ""), wanted),
        domain_type=AUTO if wanted and wanted.domain_type == AUTO else domain_type,
        cpu_mode=_cpu_mode(root, CPU_OF_TYPE.get(domain_type), wanted),
        tpm=root.find("devices/tpm/backend[@type='emulator']") is not None,
        console=_console(root),
        cdrom=cdrom_of(root) is not None,
        disks=_disks(root, directory, wanted),
        nics=_nics(root, wanted),
    )


def cdrom_of(root: Any) -> Any:
    return root.find(f"devices/disk[@device='cdrom']/target[@dev='{CDROM}']")


def medium_of(root: Any) -> str:
    """The file in its CD-ROM drive; empty if there is none."""
    target = cdrom_of(root)
    source = None if target is None else target.getparent().find("source")
    return "" if source is None else source.get("file", "")


def own_disks(root: Any, directory: str, names: Iterable[str]) -> dict[str, Any]:
    """The elements of these volumes, by the volume's name."""
    wanted = set(names)
    found = ((_file_of(element), element) for element in root.iterfind("devices/disk[@device='disk']"))
    return {path.name: element for path, element in found if str(path.parent) == directory and path.name in wanted}


def own_nics(root: Any, macs: Iterable[str]) -> dict[str, Any]:
    wanted = set(macs)
    found = (
        (element.find("mac").get("address", "").lower(), element) for element in root.iterfind("devices/interface")
    )
    return {mac: element for mac, element in found if mac in wanted}


def disk_of(name: str, element: Any) -> Disk:
    target, driver = element.find("target"), element.find("driver")
    rate = target.get("rotation_rate")
    return Disk(
        name=name,
        format="" if driver is None else driver.get("type", ""),
        bus=target.get("bus", ""),
        serial=element.findtext("serial"),
        rotational=None if rate is None else rate != "1",
    )


def nic_of(mac: str, element: Any, declared: Nic | None) -> Nic:
    source, model = element.find("source"), element.find("model")
    kind = element.get("type", "")
    return Nic(
        mac=mac,
        network=source.get("network") if kind == "network" else None,
        bridge=source.get("bridge") if kind == "bridge" else None,
        model="" if model is None else model.get("type", ""),
        boot_order=declared.boot_order if declared else None,
    )


def _file_of(disk: Any) -> Path:
    source = disk.find("source")
    return Path("" if source is None else source.get("file", ""))


def _mib(memory: Any) -> int:
    return int(memory.text) * KIB[memory.get("unit", "KiB")] // KIB["MiB"]


def _machine(machine: str, wanted: Vm | None) -> str:
    return wanted.machine if wanted and machine.startswith(f"pc-{wanted.machine}-") else machine


def _cpu_mode(root: Any, usual: str | None, wanted: Vm | None) -> str:
    cpu = root.find("cpu")
    mode = "" if cpu is None else cpu.get("mode", "custom")
    return AUTO if mode == usual and wanted and wanted.cpu_mode == AUTO else mode


def _console(root: Any) -> str | None:
    log = root.find("devices/serial/log")
    return None if log is None else log.get("file")


def _disks(root: Any, directory: str, wanted: Vm | None) -> tuple[Disk, ...]:
    declared = [disk.name for disk in wanted.disks] if wanted else []
    found = own_disks(root, directory, {*mark_of(root).disks, *declared})
    return tuple(disk_of(name, found[name]) for name in _in_order(found, declared))


def _nics(root: Any, wanted: Vm | None) -> tuple[Nic, ...]:
    declared = {nic.mac: nic for nic in wanted.nics} if wanted else {}
    found = own_nics(root, {*mark_of(root).macs, *declared})
    return tuple(nic_of(mac, found[mac], declared.get(mac)) for mac in _in_order(found, list(declared)))


def _in_order(found: Iterable[str], declared: Sequence[str]) -> Iterator[str]:
    """libvirt has an order of its own, which means nothing."""
    there = list(found)
    yield from (name for name in declared if name in there)
    yield from (name for name in there if name not in declared)
