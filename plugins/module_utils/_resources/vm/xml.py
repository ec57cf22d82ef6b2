# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The XML of a VM made to say what is declared. Owned elements are edited in place; what others added stays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, product
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import DiskBus
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import AUTO
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml

try:
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Disk, Nic, Vm
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.firmware import Firmware

PREFIXES = {"nometal": xml.OURS[1:-1]}
TARGETS: Mapping[str, str] = {DiskBus.VIRTIO: "vd", DiskBus.SCSI: "sd", DiskBus.SATA: "sd"}
ROTATION = {True: "7200", False: "1"}
# Its natural place is the sixth port of the first SATA controller, where older VMs have their CD-ROM drive.
KEPT_FREE = "sdf"
CDROM_TARGET = "1"  # disks are units of target 0


@dataclass(frozen=True)
class Choices:
    """What was left to us, or to the host."""

    directory: str
    """Of the pool."""
    domain_type: str
    firmware: Firmware


def new(name: str, vm: Vm, choices: Choices) -> Any:
    """What only a new VM gets; the rest comes by editing."""
    root = etree.Element("domain", type=choices.domain_type)
    etree.SubElement(root, "name").text = name
    etree.SubElement(root, "uuid").text = vm.uuid
    etree.SubElement(etree.SubElement(root, "os"), "type", arch="x86_64").text = "hvm"
    etree.SubElement(root, "memory", unit="MiB").text = str(vm.memory_mib)
    features = etree.SubElement(root, "features")
    for feature in ("acpi", "apic"):
        etree.SubElement(features, feature)
    rng = etree.SubElement(etree.SubElement(root, "devices"), "rng", model="virtio")
    etree.SubElement(rng, "backend", model="random").text = "/dev/urandom"
    return root


def edit(root: Any, vm: Vm, choices: Choices) -> str:
    mark = xml.mark_of(root)
    _edit_machine(root, vm, choices)
    if mark.firmware != vm.firmware:
        _edit_firmware(root, choices.firmware)
    devices = root.find("devices")
    _edit_disks(root, devices, vm, choices.directory)
    _edit_nics(root, devices, vm)
    _edit_cdrom(root, devices)
    _edit_tpm(devices, vm.tpm)
    _edit_console(devices, vm.console)
    _mark(root, vm)
    etree.cleanup_namespaces(root, top_nsmap=PREFIXES)
    return etree.tostring(root, encoding="unicode")


def _edit_machine(root: Any, vm: Vm, choices: Choices) -> None:
    root.set("type", choices.domain_type)
    read = xml.vm_of(root, choices.directory, vm)
    _set_text(root, "vcpu", str(vm.vcpus)).attrib.pop("current", None)
    if read.memory_mib != vm.memory_mib:
        for tag in ("memory", "currentMemory"):
            _set_text(root, tag, str(vm.memory_mib)).set("unit", "MiB")
    if read.machine != vm.machine:
        root.find("os/type").set("machine", vm.machine)
    if read.cpu_mode != vm.cpu_mode:
        _remove(root, "cpu")
        mode = xml.CPU_OF_TYPE[choices.domain_type] if vm.cpu_mode == AUTO else vm.cpu_mode
        etree.SubElement(root, "cpu", mode=mode)


def _edit_firmware(root: Any, firmware: Firmware) -> None:
    """Afresh, as what was there may be what the BMC made of the former one."""
    os = root.find("os")
    os.attrib.pop("firmware", None)
    for tag in ("firmware", "loader", "nvram"):
        _remove(os, tag)
    _remove(root.find("features"), "smm")
    if firmware.efi:
        os.set("firmware", "efi")
        element = etree.SubElement(os, "firmware")
        for name, enabled in firmware.features:
            etree.SubElement(element, "feature", name=name, enabled="yes" if enabled else "no")
    if firmware.smm:
        etree.SubElement(root.find("features"), "smm", state="on")


def _edit_disks(root: Any, devices: Any, vm: Vm, directory: str) -> None:
    there = xml.own_disks(root, directory, {*xml.mark_of(root).disks, *(disk.name for disk in vm.disks)})
    kept = {disk.name: there.pop(disk.name) for disk in vm.disks if disk.name in there}
    for element in there.values():
        devices.remove(element)
    for disk in vm.disks:
        _edit_disk(root, disk, kept.get(disk.name), directory)
    if any(disk.bus == DiskBus.SCSI for disk in vm.disks):
        _have_scsi(devices)


def _have_scsi(devices: Any) -> None:
    if devices.find("controller[@type='scsi']") is None:
        etree.SubElement(devices, "controller", type="scsi", index="0", model="virtio-scsi")


def _edit_disk(root: Any, disk: Disk, there: Any, directory: str) -> None:
    devices = root.find("devices")
    if there is not None and xml.disk_of(disk.name, there) == disk:
        return
    order, target = _next_boot_order(root), ""
    if there is not None:
        order = _boot_order_of(there)
        target = there.find("target").get("dev") if there.find("target").get("bus") == disk.bus else ""
        devices.remove(there)
    devices.append(_disk_element(disk, f"{directory}/{disk.name}", target or _free_target(devices, disk.bus), order))


def _disk_element(disk: Disk, path: str, target: str, order: str) -> Any:
    element = etree.Element("disk", type="file", device="disk")
    # A disk gives back what the guest erases, or fills with zeros when a node is cleaned: it stays thin.
    etree.SubElement(element, "driver", name="qemu", type=disk.format, discard="unmap", detect_zeroes="unmap")
    etree.SubElement(element, "source", file=path)
    seen_as = etree.SubElement(element, "target", dev=target, bus=disk.bus)
    if disk.rotational is not None:
        seen_as.set("rotation_rate", ROTATION[disk.rotational])
    if disk.serial:
        etree.SubElement(element, "serial").text = disk.serial
    _set_boot_order(element, order)
    return element


def _free_target(devices: Any, bus: str) -> str:
    used = {xml.CDROM, *(target.get("dev") for target in devices.iterfind("disk/target"))}
    if bus == DiskBus.SATA:
        used.add(KEPT_FREE)
    return next(name for name in _targets(bus) if name not in used)


def _targets(bus: str) -> Iterator[str]:
    if bus == DiskBus.NVME:
        return (f"nvme{number}n1" for number in count())
    return (TARGETS[bus] + "".join(letters) for many in (1, 2) for letters in product(ascii_lowercase, repeat=many))


def _edit_nics(root: Any, devices: Any, vm: Vm) -> None:
    there = xml.own_nics(root, {*xml.mark_of(root).macs, *(nic.mac for nic in vm.nics)})
    kept = {nic.mac: there.pop(nic.mac) for nic in vm.nics if nic.mac in there}
    for element in there.values():
        devices.remove(element)
    for nic in vm.nics:
        if nic.mac not in kept:
            _add_nic(root, devices, nic)
        elif xml.nic_of(nic.mac, kept[nic.mac], nic) != nic:
            _edit_nic(kept[nic.mac], nic)


def _add_nic(root: Any, devices: Any, nic: Nic) -> None:
    element = etree.SubElement(devices, "interface")
    etree.SubElement(element, "mac", address=nic.mac)
    _edit_nic(element, nic)
    if nic.boot_order is not None:
        _set_boot_order(element, _next_boot_order(root))


def _edit_nic(element: Any, nic: Nic) -> None:
    kind, name = ("network", nic.network) if nic.network else ("bridge", nic.bridge or "")
    for tag in ("source", "model", "portgroup", "target"):
        _remove(element, tag)
    element.set("type", kind)
    etree.SubElement(element, "source", {kind: name})
    etree.SubElement(element, "model", type=nic.model)


def _edit_cdrom(root: Any, devices: Any) -> None:
    """Firmware reads this bus much faster than SATA. A drive that is there stays where it is."""
    if xml.cdrom_of(root) is not None:
        return
    _have_scsi(devices)
    element = etree.SubElement(devices, "disk", type="file", device="cdrom")
    etree.SubElement(element, "target", dev=xml.CDROM, bus="scsi")
    etree.SubElement(element, "readonly")
    _set_boot_order(element, _next_boot_order(root))
    etree.SubElement(element, "address", type="drive", controller="0", bus="0", target=CDROM_TARGET, unit="0")


def _edit_tpm(devices: Any, wanted: bool) -> None:
    if not wanted:
        _remove(devices, "tpm")
    elif devices.find("tpm/backend[@type='emulator']") is None:
        tpm = etree.SubElement(devices, "tpm", model="tpm-crb")
        etree.SubElement(tpm, "backend", type="emulator", version="2.0")


def _edit_console(devices: Any, path: str | None) -> None:
    serial = _child(devices, "serial")
    serial.set("type", serial.get("type", "pty"))
    log = _child(serial, "log")
    log.set("file", path)
    log.set("append", "on")
    # libvirt derives it from the first serial port, and would keep the former log in it.
    for console in devices.findall("console"):
        if console.find("target").get("type") == "serial":
            devices.remove(console)


def _mark(root: Any, vm: Vm) -> None:
    former = xml.mark_of(root)
    mark = _child(_child(root, "metadata"), f"{xml.OURS}vm")
    mark.clear()
    mark.attrib.update({"owner": vm.owner or "", "firmware": vm.firmware, "pool": vm.pool})
    for name in dict.fromkeys([*(disk.name for disk in vm.disks), *former.disks]):
        etree.SubElement(mark, f"{xml.OURS}disk", name=name)
    for nic in vm.nics:
        etree.SubElement(mark, f"{xml.OURS}nic", mac=nic.mac)


def _next_boot_order(root: Any) -> str:
    """Empty where it is said in the other way: libvirt takes no mixture."""
    if root.find("os/boot") is not None:
        return ""
    taken = [int(boot.get("order")) for boot in root.iterfind("devices/*/boot[@order]")]
    return str(max(taken, default=0) + 1)


def _boot_order_of(element: Any) -> str:
    boot = element.find("boot")
    return "" if boot is None else boot.get("order", "")


def _set_boot_order(element: Any, order: str) -> None:
    if order:
        etree.SubElement(element, "boot", order=order)


def _set_text(parent: Any, tag: str, text: str) -> Any:
    element = _child(parent, tag)
    element.text = text
    return element


def _child(parent: Any, tag: str) -> Any:
    found = parent.find(tag)
    return etree.SubElement(parent, tag) if found is None else found


def _remove(parent: Any, tag: str) -> None:
    for element in parent.findall(tag):
        parent.remove(element)
