# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of a lab's service."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from pathlib import Path

    from nometal_bmc.config.passwords import HashedPassword

__all__ = [
    "ALWAYS_OFF",
    "ALWAYS_ON",
    "LAST_STATE",
    "POWER_RESTORE",
    "Account",
    "BrokerConfig",
    "Config",
    "Ipmi",
    "Listen",
    "Media",
    "Network",
    "System",
    "Tls",
]

RESTART_SECONDS = 120
ALWAYS_OFF, LAST_STATE, ALWAYS_ON = POWER_RESTORE = ("AlwaysOff", "LastState", "AlwaysOn")
"""What becomes of a VM when the host has started, as Redfish calls it."""
Network = Union[IPv4Network, IPv6Network]


@dataclass(frozen=True)
class Listen:
    """Where the service is to be found."""

    address: str
    port: int


@dataclass(frozen=True)
class Tls:
    """What it shows to clients."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class System:
    """A VM that has a BMC."""

    uuid: str
    name: str


@dataclass(frozen=True)
class Account:
    """Who may command some systems, or all of them."""

    name: str
    password: HashedPassword = field(repr=False)
    systems: frozenset[str] | None

    def commands(self, system: System) -> bool:
        return self.systems is None or system.uuid in self.systems


@dataclass(frozen=True)
class Media:
    """Where images come to and how large they may be."""

    directory: Path
    max_bytes: int
    timeout: int
    ca_file: Path | None
    networks: tuple[Network, ...] = ()
    """From which it fetches images although the address is this host's, or a loopback or link-local one."""


@dataclass(frozen=True)
class Ipmi:
    """A node's IPMI BMC."""

    uuid: str
    name: str
    addresses: tuple[str, ...]
    port: int
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class BrokerConfig:
    """The broker's configuration: the only VMs that it does anything to, and who may ask besides root and itself."""

    lab: str
    libvirt_uri: str
    socket: Path
    user: str | None
    systems: tuple[System, ...]
    media: Path | None
    restart_timeout: int = RESTART_SECONDS
    """How long a guest may take for a graceful restart before it is reset."""
    power_restore: str = ALWAYS_OFF

    @cached_property
    def names(self) -> dict[str, str]:
        """Of the VMs, by UUID."""
        return {system.uuid: system.name for system in self.systems}


@dataclass(frozen=True)
class Config:
    """All of it. UUIDs are in lower case."""

    lab: str
    broker: Path
    listen: tuple[Listen, ...]
    tls: Tls | None
    systems: tuple[System, ...]
    accounts: tuple[Account, ...]
    media: Media
    state: Path
    ipmi: tuple[Ipmi, ...] = ()

    def find(self, identity: str) -> System | None:
        """The system with this UUID, in any case, or else with this name."""
        return self._by_uuid.get(identity.lower()) or self._by_name.get(identity)

    def account(self, name: str) -> Account | None:
        return self._by_account.get(name)

    @cached_property
    def names(self) -> dict[str, str]:
        """Of the VMs, by UUID."""
        return {system.uuid: system.name for system in self.systems}

    @cached_property
    def _by_uuid(self) -> dict[str, System]:
        return {system.uuid: system for system in self.systems}

    @cached_property
    def _by_name(self) -> dict[str, System]:
        return {system.name: system for system in self.systems}

    @cached_property
    def _by_account(self) -> dict[str, Account]:
        return {account.name: account for account in self.accounts}
