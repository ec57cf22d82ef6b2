# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has that matters to VMs that are wanted there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal, wait
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import POOL_KINDS, Volume
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe import volume_marks
from ansible_collections.nometal.ipi.plugins.module_utils._observe.domain_xml import Mark
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_links

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Vm
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.firmware import Firmware

PATIENCE = 30.0
QCOW2_HEADER = 72
QCOW2_SIZE = slice(24, 32)


@dataclass(frozen=True)
class Domain:
    """A VM that is there, whosever it is. `root` is what is written down of it, `live` what runs."""

    name: str
    uuid: str
    mark: Mark
    macs: tuple[str, ...]
    persistent: bool = True
    root: Any = None
    live: Any = None


@dataclass(frozen=True)
class Pool:
    name: str
    directory: str
    active: bool = True
    free_bytes: int = 0
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    made_for: Mapping[str, str] = field(default_factory=dict)
    """By volume, the VM that it was made for, as far as its file can tell. It outlives the VM."""
    kind: str = "dir"
    mounted: frozenset[str] = frozenset()
    """Volumes with something mounted over them, as with `mount --bind`."""
    lost: bool = False
    """Whether its directory has been removed."""

    @property
    def usable(self) -> bool:
        return self.active and self.kind in POOL_KINDS and not self.lost


@dataclass(frozen=True)
class Capabilities:
    """Of one kind of machine under one accelerator. `refusal`: why there is none such."""

    buses: frozenset[str] = frozenset()
    cpu_modes: frozenset[str] = frozenset()
    tpm: bool = False
    most_vcpus: int = 0
    refusal: str = ""


@dataclass(frozen=True)
class Host:
    domains: Mapping[str, Domain]
    pool: Pool | None
    networks: Mapping[str, bool]
    """Whether each of them is started."""
    bridges: frozenset[str]
    memory_mib: int
    capabilities: Mapping[tuple[str, str], Capabilities] = field(default_factory=dict)
    """By machine and domain type."""
    firmware: Mapping[tuple[str, str], Firmware | None] = field(default_factory=dict)
    """By kind and machine."""
    kvm_failure: str = ""
    """Why no guest runs under KVM, where that was asked for."""

    @property
    def directory(self) -> str:
        return self.pool.directory if self.pool else ""


def domains(connection: Any, owner: str) -> dict[str, Domain]:
    running = _names(connection, libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)
    persistent = _names(connection, libvirt.VIR_CONNECT_LIST_DOMAINS_PERSISTENT)
    found = (_domain(domain, owner, running, persistent) for domain in connection.listAllDomains())
    return {domain.name: domain for domain in found}


def _names(connection: Any, flag: int) -> set[str]:
    return {domain.name() for domain in connection.listAllDomains(flag)}


def _domain(domain: Any, owner: str, running: set[str], persistent: set[str]) -> Domain:
    root, name = xml.parsed(saved_xml(domain)), domain.name()
    mark = xml.mark_of(root)
    return Domain(
        name=name,
        uuid=domain.UUIDString(),
        mark=mark,
        macs=tuple(xml.macs_of(root)),
        persistent=name in persistent,
        root=root,
        live=xml.parsed(domain.XMLDesc()) if name in running and mark.owner == owner else None,
    )


def vm_of(domain: Domain, directory: str, wanted: Vm | None) -> Vm:
    return replace(xml.vm_of(domain.root, directory, wanted), persistent=domain.persistent)


def saved_xml(domain: Any) -> str:
    """With secrets, such as the password of its console: what is left out would be lost when it is defined again."""
    return domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)


def pool_named(connection: Any, name: str | None, volumes: set[str]) -> Pool | None:
    pool = next((found for found in connection.listAllStoragePools() if found.name() == name), None)
    if pool is None:
        return None
    root = xml.parsed(pool.XMLDesc())
    directory = root.findtext("target/path", default="")
    found = Pool(
        name=pool.name(),
        directory=directory,
        active=bool(pool.isActive()),
        kind=root.get("type"),
        lost=not Path(directory).is_dir(),
    )
    if not found.usable:
        return found
    _refresh(pool)
    there = [volume for volume in pool.listAllVolumes() if volume.name() in volumes]
    mounts = removal.mount_points()
    return replace(
        found,
        free_bytes=pool.info()[3],
        volumes={volume.name(): _volume(volume) for volume in there},
        mounted=frozenset(volume.name() for volume in there if removal.is_mounted(Path(volume.path()), mounts)),
        made_for={volume.name(): volume_marks.made_for(volume.path()) for volume in there},
    )


def directory_of_pool(connection: Any, name: str) -> str:
    """Empty where there is no such pool."""
    pools = [pool for pool in connection.listAllStoragePools() if pool.name() == name]
    return next((xml.parsed(pool.XMLDesc()).findtext("target/path", default="") for pool in pools), "")


def _refresh(pool: Any) -> None:
    """What libvirt still does for a client that was killed is waited for."""
    if not wait.comes_true(lambda: _refreshed(pool), PATIENCE):
        pool.refresh()


def _refreshed(pool: Any) -> bool:
    try:
        pool.refresh()
    except libvirt.libvirtError as error:
        if "asynchronous jobs" not in error.get_error_message():
            raise
        return False
    return True


def _volume(volume: Any) -> Volume:
    root = xml.parsed(volume.XMLDesc())
    image, size = root.find("target/format").get("type"), int(root.findtext("capacity"))
    # Of an image that says 0, libvirt says how large its file is.
    told = image != "qcow2" or size != int(root.findtext("physical", default="-1"))
    return Volume(image, size if told else _size_in_header(root.findtext("target/path")))


def _size_in_header(path: str) -> int:
    with Path(path).open("rb") as file:
        return int.from_bytes(file.read(QCOW2_HEADER)[QCOW2_SIZE], "big")


def networks(connection: Any) -> dict[str, bool]:
    return {network.name(): bool(network.isActive()) for network in connection.listAllNetworks()}


def bridges() -> frozenset[str]:
    return frozenset(name for name, link in read_links().items() if link.kind == "bridge")


def memory_mib(connection: Any) -> int:
    return connection.getInfo()[1]


def capabilities(connection: Any, machine: str, domain_type: str) -> Capabilities:
    try:
        root = xml.parsed(connection.getDomainCapabilities(None, "x86_64", machine, domain_type))
    except libvirt.libvirtError as error:
        return Capabilities(refusal=error.get_error_message())
    return Capabilities(
        buses=_values(root, "devices/disk/enum[@name='bus']/value"),
        cpu_modes=frozenset(mode.get("name") for mode in root.iterfind("cpu/mode[@supported='yes']")),
        tpm="emulator" in _values(root, "devices/tpm/enum[@name='backendModel']/value"),
        most_vcpus=int(root.find("vcpu").get("max")),
    )


def _values(root: Any, path: str) -> frozenset[str]:
    return frozenset(value.text for value in root.iterfind(path))
