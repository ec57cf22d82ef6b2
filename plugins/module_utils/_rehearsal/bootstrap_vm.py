# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in bootstrap VM: pool, volumes and domain as the installer makes its own, and gone without a trace."""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from ansible_collections.nometal.ipi.plugins.module_utils._host import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt import domain_xml, firmware, vm_host

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Sequence

POOLS = Path("/var/lib/libvirt/openshift-images")
"""Where the installer has its own; it cannot be told otherwise."""
LOGS = Path("/var/log/libvirt/qemu")
CHANNEL = "org.nometal.rehearsal"
MEMORY_MIB = 384
SCRATCH_GIB = 20
POOL = """
<pool type='dir'><name>{name}</name><target><path>{path}</path></target></pool>"""
VOLUME = """
<volume><name>{name}</name><capacity unit='B'>{size}</capacity>
<target><format type='{format}'/><permissions><mode>0600</mode></permissions></target></volume>"""
DOMAIN = """
<domain type='{type}'>
  <name>{name}</name><memory unit='MiB'>{memory}</memory><vcpu>2</vcpu>
  <metadata><rehearsal xmlns='urn:nometal:ipi' owner={owner}/></metadata>
  <os{firmware}><type arch='x86_64' machine='q35'>hvm</type><boot dev='cdrom'/></os>
  <features><acpi/></features>
  <cpu mode='{cpu}'/>
  <on_reboot>destroy</on_reboot>
  <devices>
    <disk type='file' device='cdrom'>
      <driver name='qemu' type='raw'/><source file='{directory}/{name}-live-provisioner'/>
      <target dev='sda' bus='sata'/><readonly/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/><source file='{directory}/{name}-scratch'/><target dev='vda' bus='virtio'/>
    </disk>
    {nics}
    <serial type='pty'><log file='{log}'/></serial>
    <channel type='unix'><target type='virtio' name='{channel}'/></channel>
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
</domain>"""
NIC = "<interface type='bridge'><mac address='{mac}'/><source bridge={bridge}/><model type='virtio'/></interface>"


@dataclass(frozen=True)
class BootstrapVm:
    name: str
    owner: str
    domain_type: str
    uefi: bool
    macs: Sequence[str]
    bridges: Sequence[str]

    @property
    def directory(self) -> Path:
        return POOLS / self.name

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}-serial0.log"


def random_mac() -> str:
    """As the installer's, which libvirt makes up."""
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(3))


def start(connection: Any, vm: BootstrapVm, image: Path) -> str:
    """Returns the path of its channel."""
    files.make_directory(vm.directory)
    pool = connection.storagePoolDefineXML(POOL.format(name=vm.name, path=vm.directory))
    pool.create()
    pool.setAutostart(True)
    size = image.stat().st_size
    pool.createXML(VOLUME.format(name=f"{vm.name}-scratch", size=SCRATCH_GIB * 1024**3, format="qcow2"))
    medium = pool.createXML(VOLUME.format(name=f"{vm.name}-live-provisioner", size=size, format="raw"))
    shutil.copyfile(image, medium.path())
    domain = connection.defineXML(_xml(vm))
    domain.create()
    return domain_xml.parsed(domain.XMLDesc()).find("devices/channel/source").get("path")


def _xml(vm: BootstrapVm) -> str:
    found = firmware.find("uefi", "q35") if vm.uefi else None
    nics = "".join(NIC.format(mac=mac, bridge=quoteattr(bridge)) for mac, bridge in zip(vm.macs, vm.bridges))
    return DOMAIN.format(
        type=vm.domain_type,
        name=vm.name,
        owner=quoteattr(vm.owner),
        memory=MEMORY_MIB,
        firmware=" firmware='efi'" if found else "",
        cpu=domain_xml.CPU_OF_TYPE[vm.domain_type],
        directory=vm.directory,
        nics=nics,
        log=vm.log,
        channel=CHANNEL,
    )


def is_there(connection: Any, name: str) -> bool:
    return (
        name in (domain.name() for domain in connection.listAllDomains())
        or name in (pool.name() for pool in connection.listAllStoragePools())
        or (POOLS / name).exists()
    )


def macs(connection: Any, name: str) -> list[str]:
    """While it is there."""
    there = [domain for domain in connection.listAllDomains() if domain.name() == name]
    return [mac for domain in there for mac in domain_xml.macs_of(domain_xml.parsed(domain.XMLDesc()))]


def remove(connection: Any, name: str) -> None:
    """In any state, also of a rehearsal that was killed."""
    _remove_domain(connection, name)
    _remove_pool(connection, name)
    remove_files(name)


def remove_files(name: str) -> None:
    removal.remove_known(POOLS / name, [f"{name}-*"])
    files.remove_empty(POOLS)  # unless the installer's own are in there
    for log in (LOGS / f"{name}-serial0.log", LOGS / f"{name}.log"):
        log.unlink(missing_ok=True)


def _remove_domain(connection: Any, name: str) -> None:
    for domain in connection.listAllDomains():
        if domain.name() == name:
            with suppress(libvirt.libvirtError):  # it may end by itself meanwhile
                domain.destroy()
            domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)


def _remove_pool(connection: Any, name: str) -> None:
    for pool in connection.listAllStoragePools():
        if pool.name() == name:
            if pool.isActive():
                pool.destroy()
            pool.undefine()


def domain_type(connection: Any, names: Sequence[str]) -> str:
    """The nodes' own, as they were made by what really runs here."""
    own = next((domain for domain in connection.listAllDomains() if domain.name() in names), None)
    return "qemu" if own is None else domain_xml.parsed(vm_host.saved_xml(own)).get("type")
