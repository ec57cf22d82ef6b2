# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in bootstrap VM: pool, volumes and domain as the installer makes its own, and gone without a trace."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import LOGS, POOLS
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Firmware
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml, firmware, vm_host
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.directory import (
    PoolDirectory,
    remove_directory,
)

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

CHANNEL = "org.nometal.rehearsal"
MEMORY_MIB = 384
SCRATCH_GIB = 20
POOL = """
<pool type='dir'><name>{name}</name><uuid>{uuid}</uuid><target><path>{path}</path></target></pool>"""
MEDIUM, SCRATCH = "live-provisioner", "scratch"
"""What the names of its volumes end with."""
VOLUME = """
<volume><name>{name}</name><capacity unit='B'>{size}</capacity>
<target><format type='{format}'/><permissions><mode>0600</mode></permissions></target></volume>"""
DOMAIN = """
<domain type='{type}'>
  <name>{name}</name><memory unit='MiB'>{memory}</memory><vcpu>1</vcpu>
  <metadata><rehearsal xmlns='urn:nometal:ipi' owner={owner}/></metadata>
  <os{efi}>{firmware}<type arch='x86_64' machine='q35'>hvm</type><boot dev='cdrom'/></os>
  <features><acpi/>{smm}</features>
  <cpu mode='{cpu}'/>
  <on_reboot>destroy</on_reboot>
  <devices>
    <disk type='file' device='cdrom'>
      <driver name='qemu' type='raw'/><source file='{directory}/{medium}'/>
      <target dev='sda' bus='scsi'/><readonly/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/><source file='{directory}/{scratch}'/><target dev='vda' bus='virtio'/>
    </disk>
    {nics}
    <serial type='pty'><log file='{log}'/></serial>
    <channel type='unix'><target type='virtio' name='{channel}'/></channel>
    <controller type='scsi' model='virtio-scsi'/>
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
</domain>"""
MARK = f"metadata/{domain_xml.OURS}rehearsal"
"""Nodes have another one: a node may be called so that its VM has this name."""
NIC = "<interface type='bridge'><mac address='{mac}'/><source bridge={bridge}/><model type='virtio'/></interface>"


@dataclass(frozen=True)
class Paths:
    """Of one lab's bootstrap VM, and the marks by which they are known as its own."""

    name: str
    owner: str

    @property
    def pool_uuid(self) -> str:
        """Derived, as pools carry no other mark."""
        return Identity(self.owner).uuid_of("rehearsal-pool")

    @property
    def directory(self) -> PoolDirectory:
        return PoolDirectory(str(POOLS / self.name), self.name, self.pool_uuid)

    @property
    def medium(self) -> str:
        return f"{self.name}-{MEDIUM}"

    @property
    def scratch(self) -> str:
        return f"{self.name}-{SCRATCH}"

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}-serial0.log"

    @property
    def logs(self) -> tuple[Path, ...]:
        return self.log, LOGS / f"{self.name}.log"

    def is_volume(self, path: Path) -> bool:
        return path.name in (self.medium, self.scratch) and path.is_file() and not path.is_symlink()


@dataclass(frozen=True)
class BootstrapVm:
    paths: Paths
    domain_type: str
    uefi: bool
    macs: Sequence[str]
    bridges: Sequence[str]


def random_mac() -> str:
    """As the installer's, which libvirt makes up."""
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(3))


def start(connection: Any, vm: BootstrapVm, image: Path) -> str:
    """Returns the path of its channel. Each thing is marked as the lab's from the moment that it is there."""
    paths = vm.paths
    pool = connection.storagePoolDefineXML(
        POOL.format(name=paths.name, uuid=paths.pool_uuid, path=paths.directory.path)
    )
    paths.directory.make()
    pool.create()
    pool.setAutostart(True)
    size = image.stat().st_size
    pool.createXML(VOLUME.format(name=paths.scratch, size=SCRATCH_GIB * 1024**3, format="qcow2"))
    medium = pool.createXML(VOLUME.format(name=paths.medium, size=size, format="raw"))
    shutil.copyfile(image, medium.path())
    domain = connection.defineXML(xml_of(vm))
    domain.create()
    return domain_xml.parsed(domain.XMLDesc()).find("devices/channel/source").get("path")


def xml_of(vm: BootstrapVm) -> str:
    found = (firmware.find(Firmware.UEFI, "q35") if vm.uefi else None) or firmware.Firmware()
    nics = "".join(NIC.format(mac=mac, bridge=quoteattr(bridge)) for mac, bridge in zip(vm.macs, vm.bridges))
    return DOMAIN.format(
        type=vm.domain_type,
        name=vm.paths.name,
        owner=quoteattr(vm.paths.owner),
        memory=MEMORY_MIB,
        efi=" firmware='efi'" if found.efi else "",
        firmware=_firmware(found.features),
        smm="<smm state='on'/>" if found.smm else "",
        cpu=domain_xml.CPU_OF_TYPE[vm.domain_type],
        directory=vm.paths.directory.path,
        medium=vm.paths.medium,
        scratch=vm.paths.scratch,
        nics=nics,
        log=vm.paths.log,
        channel=CHANNEL,
    )


def _firmware(features: Collection[tuple[str, bool]]) -> str:
    """Left to itself, libvirt takes one that enforces secure boot, which without KVM starts in twice the time."""
    said = (f"<feature name='{name}' enabled='{'yes' if enabled else 'no'}'/>" for name, enabled in features)
    return f"<firmware>{''.join(said)}</firmware>" if features else ""


class Traces:
    """What has the name of a lab's bootstrap VM in libvirt and its directories: the lab's, and what others have."""

    def __init__(self, connection: Any, paths: Paths) -> None:
        self._connection = connection
        self._paths = paths

    @property
    def is_there(self) -> bool:
        """The lab's."""
        return bool(self._own_domain or self._own_pool or self._paths.directory.note)

    def of_others(self) -> list[str]:
        paths, path = self._paths, self._paths.directory.path
        found = []
        if self._domain and not self._own_domain:
            found.append(f"VM {paths.name}")
        if self._pool and not self._own_pool:
            found.append(f"storage pool {paths.name}")
        if os.path.lexists(path) and not paths.directory.note:
            found.append(f"directory {path}")
        return found

    def stays(self) -> list[str]:
        return [f"{other} ({removal.FOREIGN})" for other in self.of_others()]

    def refuse_others(self) -> None:
        others = self.of_others()
        if others:
            raise OperatorError(
                f"{', '.join(others)}: not made by nometal.ipi, and the rehearsal's bootstrap VM needs this name. "
                f"Nothing was rehearsed. Rename or remove it, or give lab {self._paths.owner} another name."
            )

    def macs(self) -> list[str]:
        """Of its own VM, while that is there."""
        return domain_xml.macs_of(domain_xml.parsed(self._own_domain.XMLDesc())) if self._own_domain else []

    def remove(self) -> list[str]:
        """In any state, also of a rehearsal that was killed. Returns what stays, each with the reason."""
        kept = self.stays()
        if self._own_domain:
            _remove_domain(self._own_domain, self._paths)
        if self._own_pool and self._own_pool.isActive():
            self._own_pool.destroy()
        if self._paths.directory.note:
            kept += remove_directory(self._connection, self._paths.directory, self._paths.is_volume)
        self._paths.directory.clear_drafts()
        if self._own_pool:
            self._own_pool.undefine()
        return kept

    @cached_property
    def _domain(self) -> Any:
        domains = self._connection.listAllDomains()
        return next((domain for domain in domains if domain.name() == self._paths.name), None)

    @cached_property
    def _own_domain(self) -> Any:
        found = self._domain
        mark = domain_xml.parsed(vm_host.saved_xml(found)).find(MARK) if found else None
        return found if mark is not None and mark.get("owner") == self._paths.owner else None

    @cached_property
    def _pool(self) -> Any:
        pools = self._connection.listAllStoragePools()
        return next((pool for pool in pools if pool.name() == self._paths.name), None)

    @cached_property
    def _own_pool(self) -> Any:
        return self._pool if self._pool and self._pool.UUIDString() == self._paths.pool_uuid else None


def remove_files(paths: Paths) -> list[str]:
    """Where libvirt has nothing of that name any more. Returns what stays."""
    for log in paths.logs:
        log.unlink(missing_ok=True)
    return paths.directory.remove(paths.is_volume) if paths.directory.note else paths.directory.clear_drafts()


def _remove_domain(domain: Any, paths: Paths) -> None:
    """Its logs before its definition, which says whose they are."""
    with suppress(libvirt.libvirtError):  # it may end by itself meanwhile
        domain.destroy()
    for log in paths.logs:
        log.unlink(missing_ok=True)
    domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)


def domain_type(connection: Any, names: Sequence[str]) -> str:
    """The nodes' own, as they were made by what really runs here."""
    own = next((domain for domain in connection.listAllDomains() if domain.name() in names), None)
    return "qemu" if own is None else domain_xml.parsed(vm_host.saved_xml(own)).get("type")
