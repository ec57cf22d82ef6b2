# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lab's BMC service, as it is declared, and where it has its things. Module arguments.py reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY, Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.state import StoragePool

OPERATOR = "operator"
IPMI_USER = "admin"
"""ipmitool takes 16 characters at most, so VMs' names will not do."""


@dataclass(frozen=True)
class Endpoint:
    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True)
class Node:
    """A VM that gets a BMC, and where the BMC's clients are told to find it."""

    uuid: str
    name: str
    address: str = ""
    """Empty: what follows from where the service listens."""
    ipmi: Endpoint | None = None
    protocol: str = BmcProtocol.VIRTUAL_MEDIA


@dataclass(frozen=True)
class Media:
    max_bytes: int
    timeout: int
    ca_file: str | None = None


@dataclass(frozen=True)
class Lab:
    """What one lab's BMC service is to be."""

    name: str
    listen: tuple[Endpoint, ...]
    tls: bool
    names: tuple[str, ...]
    nodes: tuple[Node, ...]
    media: Media
    user: str
    home: Path
    software: Path
    libvirt_uri: str
    ipmi_addresses: tuple[str, ...] = ()
    """On which IPMI BMCs listen besides the one that clients are told."""

    @property
    def unit(self) -> str:
        return f"nometal-bmc-{self.name}"

    @property
    def directory(self) -> Path:
        return self.home / self.name

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def config(self) -> Path:
        return self.directory / "config.json"

    @property
    def credentials(self) -> Path:
        return credentials.file_of(self.home, self.name)

    @property
    def hashes(self) -> Path:
        return credentials.hashes_of(self.home, self.name)

    @property
    def serving(self) -> Path:
        """With what the service was started last."""
        return self.directory / "serving"

    @property
    def ca(self) -> Path:
        return self.directory / "tls/ca.pem"

    @property
    def ca_key(self) -> Path:
        return self.directory / "tls/ca.key"

    @property
    def server_certificate(self) -> Path:
        return self.directory / "tls/server.pem"

    @property
    def server_key(self) -> Path:
        return self.directory / "tls/server.key"

    @property
    def command(self) -> tuple[str, ...]:
        return (f"{self.software}/bin/python", "-m", "nometal_bmc", str(self.config))

    @property
    def by_redfish(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.ipmi is None)

    @property
    def by_ipmi(self) -> tuple[tuple[Node, Endpoint], ...]:
        return tuple((node, node.ipmi) for node in self.nodes if node.ipmi)

    @property
    def with_ipmi(self) -> frozenset[str]:
        return frozenset(node.name for node, _place in self.by_ipmi)

    def address_of(self, node: Node) -> str:
        """As install-config.yaml wants it."""
        if node.address:
            return node.address
        if node.ipmi:
            return f"ipmi://{node.ipmi}"
        scheme = "https" if self.tls else "http"
        return f"{node.protocol}+{scheme}://{self.listen[0]}/redfish/v1/Systems/{node.uuid}"

    def places(self, place: Endpoint) -> tuple[Endpoint, ...]:
        """Where an IPMI BMC listens; first what clients are told."""
        addresses = dict.fromkeys([place.address, *self.ipmi_addresses])
        return tuple(Endpoint(address, place.port) for address in addresses)

    @property
    def certificate_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(endpoint.address for endpoint in self.listen), *self.names]))

    @property
    def accounts(self) -> dict[str, list[str] | None]:
        """Of Redfish, with the UUIDs of the systems that each commands; None: all of them."""
        people: dict[str, list[str] | None] = {OPERATOR: None} if self.listen else {}
        return {**people, **{node.name: [node.uuid] for node in self.by_redfish}}

    @property
    def usernames(self) -> dict[str, str]:
        """By the name under which the credentials are kept, which is the VM's."""
        return {**{name: name for name in self.accounts}, **{node.name: IPMI_USER for node, _place in self.by_ipmi}}

    @property
    def pool(self) -> StoragePool:
        identity = Identity(self.name)
        name = identity.media_pool
        return StoragePool(name=name, uuid=identity.uuid_of("media-pool"), path=f"{POOL_DIRECTORY}/{name}")
