# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lab's BMC service, as module redfish_emulator is given it, and the paths of its files."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import ADDRESS, OPERATOR, PORT, Endpoint
from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import NETWORK
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import MOST_RESTART_SECONDS
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Section, Text, called, key
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY, Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol, PowerRestore
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.state import StoragePool

IPMI_USER = "admin"
"""ipmitool takes 16 characters at most, so VMs' names will not do."""
VM_NAME_PATTERN = "[A-Za-z0-9_][-A-Za-z0-9_.+]*"
USER_PATTERN = "[a-z_][-a-z0-9_]{0,31}"
# As a unit of systemd can name it without quotes.
PATH_PATTERN = r"(/(?!\.{1,2}(/|$))[A-Za-z0-9_.+-]+)+"
BROKER_SOCKET = "broker.sock"
LONGEST_SOCKET = 107
"""Bytes of a socket's name, says Linux."""
UNSEEN = ("/dev", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/var/tmp")  # noqa: S108 - to refuse them
"""Either hidden from the service, or gone after a reboot."""
LEAST_BYTES, MOST_BYTES = 1024**2, 16 * 1024**4
MOST_SECONDS = 24 * 60 * 60


def is_vm_name(text: str) -> bool:
    return text != OPERATOR and re.fullmatch(VM_NAME_PATTERN, text) is not None


def _vm_name(value: str) -> str:
    if not is_vm_name(value):
        raise ValueError(must_be(f"the name of a VM, and not {OPERATOR}, which is an account for people", value))
    return value


def _user(value: str) -> str:
    if value == "root" or not re.fullmatch(USER_PATTERN, value):
        raise ValueError(must_be("a system user without privileges, such as nometal-bmc", value))
    return value


def _path(value: str) -> Path:
    if not re.fullmatch(PATH_PATTERN, value):
        raise ValueError(must_be("an absolute path of letters, digits, dots, hyphens and underscores", value))
    return Path(value)


def _seen(value: str) -> str:
    hidden = [directory for directory in UNSEEN if f"{value}/".startswith(f"{directory}/")]
    if hidden:
        raise ValueError(must_be(f"outside {hidden[0]}, which the service does not see: in /var, /srv or /etc", value))
    return value


VM_NAME = Text("name", _vm_name, "demo-worker-0")
USER = Text("user", _user, "nometal-bmc")
# The software may be where only a supervisor finds it; the service must see the others.
SOFTWARE = Text("absolute path", _path, "/opt/nometal/bmc", argument="path")
HOME = Text("absolute path", lambda value: _path(_seen(value)), "/var/lib/nometal/bmc", argument="path")
SEEN_FILE = Text("file name", _seen, "/etc/pki/ca.pem", argument="path")


@dataclass(frozen=True)
class RedfishEndpoint(Endpoint):
    protocol: str = key(Choice(("tcp",)), "Redfish is by TCP; endpoints of IPMI are not listed.", default="tcp")


@dataclass(frozen=True)
class Bmc:
    protocol: str = key(Choice(tuple(BmcProtocol)), "Its protocol.", default="redfish-virtualmedia")
    address: str = key(types.TEXT, "What clients are given; empty: what follows from where it listens.", default="")


@dataclass(frozen=True)
class IpmiBmc:
    host: str = key(ADDRESS, "The address on which it listens.", required=True)
    port: int = key(PORT, "Its port.", required=True)
    protocol: str = key(Choice((BmcProtocol.IPMI,)), "Its protocol.", default="ipmi")
    address: str = key(types.TEXT, "What clients are given; empty: what follows from where it listens.", default="")


@dataclass(frozen=True)
class BmcSection:
    """Of its protocol's keys: by Redfish, a VM has no port of its own."""

    argument: ClassVar[str] = "dict"
    label: str = "mapping"
    example: str = "{}"

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        by_ipmi = isinstance(value, Mapping) and value.get("protocol") == BmcProtocol.IPMI
        return Section(IpmiBmc if by_ipmi else Bmc, ignores_others=True).parse(value, at, problems)


@dataclass(frozen=True)
class Node:
    """A VM that gets a BMC, and the address that the BMC's clients are given."""

    uuid: str = key(types.UUID, "The VM's UUID.", required=True)
    name: str = called("vm_name", key(VM_NAME, "The VM's name.", required=True))
    bmc: Bmc | IpmiBmc = key(BmcSection(), "Its BMC.", default={})

    @property
    def ipmi(self) -> Endpoint | None:
        return Endpoint(self.bmc.host, self.bmc.port) if isinstance(self.bmc, IpmiBmc) else None


@dataclass(frozen=True)
class Media:
    max_bytes: int = key(Whole(LEAST_BYTES, MOST_BYTES), "Largest image.", default=20 * 1024**3)
    timeout: int = key(Whole(1, MOST_SECONDS), "Seconds that a download may take.", default=3600)
    ca_file: str | None = key(SEEN_FILE, "Certificates to trust at image servers.")
    networks: tuple[Network, ...] = key(
        ListOf(NETWORK), "Where images may be fetched from addresses of this host itself.", default=[]
    )


@dataclass(frozen=True)
class Lab:
    """What one lab's BMC service is to be."""

    name: str = called("lab", key(types.CLUSTER_NAME, "The lab.", required=True))
    listen: tuple[Endpoint, ...] = key(
        ListOf(Section(RedfishEndpoint, ignores_others=True)), "Where it listens by Redfish.", default=[]
    )
    tls: bool = key(YesNo(), "Whether Redfish is by https.", default=True)
    names: tuple[str, ...] = key(ListOf(types.DOMAIN), "Names in the certificate beside the addresses.", default=[])
    nodes: tuple[Node, ...] = key(ListOf(Section(Node, ignores_others=True)), "The VMs that get a BMC.", default=[])
    media: Media = key(Section(Media), "What is let in as virtual media.", default={})
    restart_timeout: int = key(
        Whole(1, MOST_RESTART_SECONDS), "Seconds that a guest has for a graceful restart.", default=120
    )
    power_restore: PowerRestore = key(
        Choice(tuple(PowerRestore)), "What becomes of a VM when the host has started.", default="AlwaysOff"
    )
    user: str = key(USER, "The system user as whom it runs, without access to libvirt.", default="nometal-bmc")
    broker_user: str = key(USER, "The system user as whom its broker uses libvirt.", default="nometal-bmc-broker")
    home: Path = key(HOME, "Where each lab's service has a directory.", default="/var/lib/nometal/bmc")
    software: Path = key(SOFTWARE, "Where its software is.", default="/opt/nometal/bmc")
    libvirt_uri: str = key(types.TEXT, "Where libvirt is reached.", default="qemu:///system")
    ipmi_addresses: tuple[str, ...] = key(
        ListOf(ADDRESS), "On which IPMI BMCs listen besides the one that clients are given.", default=[]
    )

    @property
    def unit(self) -> str:
        return f"nometal-bmc-{self.name}"

    @property
    def broker_unit(self) -> str:
        """As no unit of a service is called, whatever the labs' names are."""
        return f"nometal-broker-{self.name}"

    @property
    def broker(self) -> Path:
        """The directory of its broker."""
        return self.directory / "broker"

    @property
    def broker_state(self) -> Path:
        return self.broker / "state"

    @property
    def broker_config(self) -> Path:
        return self.broker / "broker.json"

    @property
    def socket(self) -> Path:
        """Where the service asks the broker."""
        return self.broker_state / BROKER_SOCKET

    @property
    def broker_command(self) -> tuple[str, ...]:
        return (f"{self.software}/bin/python", "-m", "nometal_bmc.broker", str(self.broker_config))

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
        return credentials.ca_of(self.home, self.name)

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
        if node.bmc.address:
            return node.bmc.address
        if node.ipmi:
            return f"ipmi://{node.ipmi}"
        scheme = "https" if self.tls else "http"
        return f"{node.bmc.protocol}+{scheme}://{self.listen[0]}/redfish/v1/Systems/{node.uuid}"

    def places(self, place: Endpoint) -> tuple[Endpoint, ...]:
        """Where an IPMI BMC listens; first what clients are given."""
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
