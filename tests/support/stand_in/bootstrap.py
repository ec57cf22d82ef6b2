"""The bootstrap VM as libvirt is told of it: a pool, volumes, a domain; and what is left when it is destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import libvirt
from lxml import etree
from support.stand_in import release
from support.stand_in.lab import Lab

POOLS = Path("/var/lib/libvirt/openshift-images")
LOGS = Path("/var/log/libvirt/qemu")
GIB = 1 << 30
MEMORY_MIB = 192  # there is no system in it
POOL = "<pool type='dir'><name>{name}</name><target><path>{path}</path></target></pool>"
VOLUME = """
<volume><name>{name}</name><capacity unit='B'>{size}</capacity>
<target><format type='{form}'/><permissions><mode>0600</mode></permissions></target>{backing}</volume>"""
BACKING = "<backingStore><path>{path}</path><format type='qcow2'/></backingStore>"
DOMAIN = """
<domain type='{type}'>
  <name>{name}</name><memory unit='MiB'>{memory}</memory><vcpu>1</vcpu>
  {os}
  <features><acpi/></features>
  <devices>
    {disks}
    {nics}
    {serial}
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
</domain>"""
BIOS = "<os><type arch='x86_64'>hvm</type><boot dev='hd'/><boot dev='network'/></os>"
UEFI = """<os firmware='efi'><type arch='x86_64' machine='q35'>hvm</type>
<firmware><feature enabled='no' name='secure-boot'/></firmware><boot dev='cdrom'/><boot dev='network'/></os>"""
DISK = """<disk type='file' device='disk'><driver name='qemu' type='{form}'/><source file='{path}'/>
<target dev='{target}' bus='virtio'/></disk>"""
CDROM = """<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file='{path}'/>
<target dev='sda' bus='sata'/><readonly/></disk>"""
NIC = "<interface type='bridge'>{mac}<source bridge={bridge}/><model type='virtio'/></interface>"
SERIAL = "<serial type='pty'><log file='{path}' append='on'/></serial>"


@contextmanager
def connection() -> Iterator[Any]:
    libvirt.registerErrorHandler(lambda *_: None, None)  # or it prints what is raised as well
    opened = libvirt.open("qemu:///system")
    try:
        yield opened
    finally:
        opened.close()


def make_storage(to: Any, lab: Lab, image: Path, ignition: Path) -> None:
    """Fails as libvirt does where one of that name is there."""
    name = lab.bootstrap
    pool = to.storagePoolDefineXML(POOL.format(name=name, path=POOLS / name))
    pool.build(0)
    pool.create()
    pool.setAutostart(True)
    if lab.release >= release.LIVE_ISO:
        _fill(_volume(pool, f"{name}-live-provisioner", image.stat().st_size), image)
        _volume(pool, f"{name}-scratch", 20 * GIB, "qcow2")
        return
    base = _volume(pool, f"{name}-base", GIB, "qcow2")
    _volume(pool, name, 32 * GIB, "qcow2", BACKING.format(path=base.path()))
    _fill(_volume(pool, f"{name}.ign", ignition.stat().st_size), ignition)


def _volume(pool: Any, name: str, size: int, form: str = "raw", backing: str = "") -> Any:
    return pool.createXML(VOLUME.format(name=name, size=size, form=form, backing=backing))


def _fill(volume: Any, source: Path) -> None:
    with source.open("rb") as origin, Path(volume.path()).open("r+b") as target:
        target.write(origin.read())


def start(to: Any, lab: Lab) -> None:
    to.defineXML(_xml(to, lab)).create()


def _xml(to: Any, lab: Lab) -> str:
    name, place = lab.bootstrap, POOLS / lab.bootstrap
    macs = [lab.platform.get(key) for key in ("externalMACAddress", "provisioningMACAddress")]
    given = [f"<mac address={quoteattr(mac)}/>" if mac else "" for mac in macs]
    nics = [NIC.format(mac=mac, bridge=quoteattr(bridge)) for mac, bridge in zip(given, lab.bridges)]
    live = lab.release >= release.LIVE_ISO
    if live:
        scratch = DISK.format(form="qcow2", path=place / f"{name}-scratch", target="vda")
        disks = CDROM.format(path=place / f"{name}-live-provisioner") + scratch
    else:
        ignition = DISK.format(form="raw", path=place / f"{name}.ign", target="vdb")
        disks = DISK.format(form="qcow2", path=place / name, target="vda") + ignition
    return DOMAIN.format(
        type=_type_of_the_nodes(to, lab),
        name=name,
        memory=MEMORY_MIB,
        os=UEFI if live else BIOS,
        disks=disks,
        nics="".join(nics),
        serial=SERIAL.format(path=LOGS / f"{name}-serial0.log") if live else "<serial type='pty'/>",
    )


def _type_of_the_nodes(to: Any, lab: Lab) -> str:
    """What really runs here: whoever made them knows."""
    known = nodes(to, lab.platform["hosts"]).values()
    return next((etree.fromstring(node.XMLDesc()).get("type", "qemu") for node in known), "qemu")


def nodes(to: Any, hosts: list[dict[str, Any]]) -> dict[str, Any]:
    """By host, the VMs with its boot MAC address."""
    wanted = {str(host["bootMACAddress"]).lower(): str(host["name"]) for host in hosts}
    found = {}
    for domain in to.listAllDomains():
        with suppress(libvirt.libvirtError):  # it may be gone meanwhile
            for mac in etree.fromstring(domain.XMLDesc()).iterfind("devices/interface/mac"):
                name = wanted.get(str(mac.get("address")).lower())
                if name:
                    found[name] = domain
    return found


def destroy(to: Any, lab: Lab) -> None:
    """As the installer: what stays is the pool's definition, inactive and with autostart on.

    Terraform takes the domain as it finds it. Without it, one that is off or gone is an error.
    """
    alike = [domain for domain in to.listAllDomains() if domain.name() == lab.bootstrap]
    for domain in alike if lab.terraform else [to.lookupByName(lab.bootstrap)]:
        if domain.isActive() or not lab.terraform:
            domain.destroy()
        domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)
    empty_pool(to, lab)


def empty_pool(to: Any, lab: Lab) -> None:
    for pool in to.listAllStoragePools(libvirt.VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE):
        if pool.name() == lab.bootstrap:
            for volume in pool.listAllVolumes():
                volume.delete()
            pool.destroy()


def undefine_pool(to: Any, lab: Lab) -> None:
    for pool in to.listAllStoragePools():
        if pool.name() == lab.bootstrap:
            pool.undefine()


def is_running(to: Any, lab: Lab) -> bool:
    return any(domain.name() == lab.bootstrap for domain in to.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE))
