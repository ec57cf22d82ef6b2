# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which labs have something in libvirt, and what of a lab VMs of others use."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import owner_of_pool
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_xml

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class User:
    """A VM that may use what is not its owner's: as it is written down, and as it runs."""

    name: str
    owner: str | None
    roots: tuple[Any, ...]

    def __str__(self) -> str:
        return f"VM {self.name} ({f'lab {self.owner}' if self.owner else 'no lab'})"

    def has_volumes(self, pool: str, directory: str) -> set[str]:
        """Also below others: an image that another one is based on is as much in use."""
        sources = [source for root in self.roots for source in root.iterfind("devices/disk//source")]
        files = [Path(source.get("file")).resolve() for source in sources if source.get("file")]
        below = Path(directory).resolve()
        named = {source.get("volume", "") for source in sources if source.get("pool") == pool}
        return {str(file.relative_to(below)) for file in files if below in file.parents} | named

    def bridges(self) -> set[str]:
        sources = (source for root in self.roots for source in root.iterfind("devices/interface/source[@bridge]"))
        return {source.get("bridge") for source in sources}

    def is_plugged_into(self, network: str, bridge: str) -> bool:
        sources = [source for root in self.roots for source in root.iterfind("devices/interface/source")]
        return any(source.get("network") == network or source.get("bridge", "") == bridge != "" for source in sources)


def users(connection: Any, owner: str | None) -> list[User]:
    """All VMs but the owner's."""
    found = (_user(domain) for domain in connection.listAllDomains())
    return sorted((user for user in found if owner is None or user.owner != owner), key=lambda user: user.name)


def networks_in_use(connection: Any, owner: str) -> Iterator[str]:
    others = users(connection, owner)
    for name, (whose, bridge) in _networks(connection).items():
        for user in others if whose == owner else []:
            if user.is_plugged_into(name, bridge):
                yield f"{user} is plugged into network {name}"


def bridges_of(connection: Any, owner: str) -> set[str]:
    """Of the lab's networks, and those into which its VMs are plugged."""
    own = {bridge for whose, bridge in _networks(connection).values() if whose == owner and bridge}
    plugged = (user.bridges() for user in users(connection, None) if user.owner == owner)
    return own.union(*plugged)


def things_of_labs(connection: Any) -> Mapping[str, list[str]]:
    """By lab, what it has in libvirt. Pools carry no mark but their UUID, which follows from the lab's name."""
    found: dict[str, list[str]] = defaultdict(list)
    for user in users(connection, None):
        found[user.owner or ""].append(f"VM {user.name}")
    for name, (owner, _bridge) in _networks(connection).items():
        found[owner or ""].append(f"network {name}")
    for pool in connection.listAllStoragePools():
        found[owner_of_pool(pool.name(), pool.UUIDString())].append(f"pool {pool.name()}")
    return {lab: sorted(things) for lab, things in found.items() if lab}


def _user(domain: Any) -> User:
    texts = (domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE), domain.XMLDesc())
    roots = tuple(xml.parsed(text) for text in dict.fromkeys(texts))
    return User(domain.name(), xml.owner_of(roots[0]), roots)


def _networks(connection: Any) -> dict[str, tuple[str | None, str]]:
    """Of each its owner and its bridge."""
    found = {}
    for network in connection.listAllNetworks():
        text = network.XMLDesc(libvirt.VIR_NETWORK_XML_INACTIVE if network.isPersistent() else 0)
        found[network.name()] = (network_xml.owner_of(text), network_xml.definition_of(text).bridge)
    return found
