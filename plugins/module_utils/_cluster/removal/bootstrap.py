# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bootstrap VM as libvirt and the host know it: what there is of it under a name, and its end."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories as host_directories
from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import LOGS, POOLS
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml, vm_files, vm_host
from ansible_collections.nometal.ipi.plugins.module_utils._observe.infra import SUFFIX, Named
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import leases
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import leftovers as vm_leftovers

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

NVRAM_NAME = re.compile(rf"(.+{SUFFIX})_VARS\.(fd|qcow2)")
LOG_NAME = re.compile(rf"(.+{SUFFIX})(-serial[0-9]+)?\.log(\.[0-9]+)?")
"""virtlogd keeps older ones beside it, with a number."""


def all_named(connection: Any) -> list[Named]:
    """Everything on this host that is called as bootstrap VMs are."""
    plugged = {name: _bridges(connection, name) for name in domains(connection)}
    paths = [*_matching(vm_files.NVRAM, NVRAM_NAME), *_matching(LOGS, LOG_NAME)]
    names = {*plugged, *pools(connection), *(name for name, _path in paths)}
    names |= {path.name for path in _entries(POOLS) if path.name.endswith(SUFFIX)}
    return [Named(name, plugged.get(name)) for name in sorted(names)]


def domains(connection: Any) -> list[str]:
    if connection is None:
        return []
    return sorted(name for domain in connection.listAllDomains() if (name := domain.name()).endswith(SUFFIX))


def pools(connection: Any) -> list[str]:
    if connection is None:
        return []
    return sorted(name for pool in connection.listAllStoragePools() if (name := pool.name()).endswith(SUFFIX))


def directories(names: Collection[str]) -> list[Path]:
    """Theirs, and the one that holds them when it was made for them and has no other."""
    entries = list(_entries(POOLS))
    own = [path for path in entries if path.name in names and removal.has_known(path, _volumes(path))]
    return [*own, *([POOLS] if POOLS.is_dir() and own == entries and host_directories.is_noted(POOLS) else [])]


def logs(names: Collection[str]) -> list[Path]:
    return [path for name, path in _matching(LOGS, LOG_NAME) if name in names]


def nvram(names: Collection[str]) -> list[Path]:
    return [path for name, path in _matching(vm_files.NVRAM, NVRAM_NAME) if name in names]


def macs(connection: Any, name: str) -> list[str]:
    """In the order of its cards."""
    root = _root(connection, name)
    return [] if root is None else domain_xml.macs_of(root)


def remove_domain(connection: Any, name: str) -> None:
    """The definition goes last: as long as it is there, it tells what else is to go."""
    domain = connection.lookupByName(name)
    addresses, persistent = macs(connection, name), domain.isPersistent()
    with suppress(libvirt.libvirtError):  # it is off, or goes off by itself meanwhile
        domain.destroy()
    for network in connection.listAllNetworks():
        leases.release(connection, network.name(), addresses)
    vm_leftovers.forget_runs(name, connection.listDomainsID)
    if persistent:
        domain.undefineFlags(
            libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
            | libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
            | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
            | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
        )


def remove_pool(connection: Any, name: str) -> None:
    """Its volumes are files, and go with the directory."""
    pool = connection.storagePoolLookupByName(name)
    if pool.isActive():
        pool.destroy()
    pool.undefine()


def is_dangling(connection: Any, name: str) -> bool:
    """Whether a pool serves nothing any more. One whose directory is still there starts with the host."""
    if name in domains(connection) or any(_entries(POOLS / name)):
        return False
    return name in pools(connection)


def remove_path(path: Path) -> list[str]:
    """Returns what stays."""
    if path == POOLS:
        host_directories.unmake(path)  # unless another installation has begun meanwhile
        return []
    if path.parent == POOLS:
        return removal.remove_known(path, _volumes(path))
    return removal.remove_tree(path)


def _volumes(directory: Path) -> list[str]:
    """The installer calls them like their pool."""
    return [f"{directory.name}*"]


def _root(connection: Any, name: str) -> Any:
    with suppress(libvirt.libvirtError):  # it has gone meanwhile
        domain = connection.lookupByName(name)
        return domain_xml.parsed(domain.XMLDesc() if domain.isActive() else vm_host.saved_xml(domain))
    return None


def _bridges(connection: Any, name: str) -> frozenset[str]:
    root = _root(connection, name)
    sources = () if root is None else root.iterfind("devices/interface/source[@bridge]")
    return frozenset(source.get("bridge") for source in sources)


def _entries(directory: Path) -> Iterator[Path]:
    return iter(sorted(directory.iterdir()) if directory.is_dir() else ())


def _matching(directory: Path, pattern: re.Pattern[str]) -> list[tuple[str, Path]]:
    found = ((pattern.fullmatch(path.name), path) for path in _entries(directory))
    return [(match[1], path) for match, path in found if match]
