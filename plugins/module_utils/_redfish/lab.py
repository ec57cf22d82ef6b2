# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab import kinds
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY, Identity
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.storage_pool import StoragePool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

OPERATOR = "operator"
IPMI_USER = "admin"
"""ipmitool takes 16 characters at most, so VMs' names will not do."""
VM_NAME_PATTERN = "[A-Za-z0-9_][-A-Za-z0-9_.+]*"
LAST_PORT = 65535


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
    address: str
    ipmi: Endpoint | None = None


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
        return self.directory / "credentials.json"

    @property
    def hashes(self) -> Path:
        return self.directory / "hashes.json"

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
        name = f"{identity.prefix}-media"
        return StoragePool(name=name, uuid=identity.uuid_of("media-pool"), path=f"{POOL_DIRECTORY}/{name}")


def lab_from(params: dict[str, Any]) -> Lab:
    """All that is wrong is said at once. To remove a lab's service, its name is enough."""
    problems: list[str] = []
    lab = Lab(
        name=_read(kinds.cluster_name, params["lab"], "lab", problems),
        listen=tuple(_endpoint(entry, f"listen[{at}]", problems) for at, entry in enumerate(params["listen"])),
        tls=params["tls"],
        names=tuple(_read(kinds.domain_name, name, "names", problems) for name in params["names"]),
        nodes=tuple(_nodes(params, problems)),
        media=Media(**params["media"]),
        user=params["user"],
        home=Path(params["home"]),
        software=Path(params["software"]),
        libvirt_uri=params["libvirt_uri"],
    )
    if params["state"] == "present":
        problems += _contradictions(lab)
    if problems:
        raise OperatorError("\n".join(problems))
    return lab


def _read(convert: Callable[[str], str], value: str, where: str, problems: list[str]) -> str:
    try:
        return convert(value)
    except ValueError as error:
        problems.append(f"{where} {error}.")
        return value


def _endpoint(entry: dict[str, Any], where: str, problems: list[str]) -> Endpoint:
    address, port = _read(_address, str(entry.get("address", "")), f"{where}.address", problems), entry.get("port")
    if not isinstance(port, int) or not 0 < port <= LAST_PORT:
        problems.append(f"{where}.port is {port!r}; 1 to {LAST_PORT} are right.")
        port = LAST_PORT
    return Endpoint(address, port)


def _address(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"is {text!r}; an IP address of the lab's host is right") from None
    if address.is_unspecified or address.is_multicast:
        raise ValueError(f"is {text}, where the whole world would be served; one address of the lab is right")
    return str(address)


def _nodes(params: dict[str, Any], problems: list[str]) -> Iterator[Node]:
    for at, given in enumerate(params["nodes"]):
        where, bmc = f"nodes[{at}]", given.get("bmc") or {}
        by_ipmi = bmc.get("protocol") == "ipmi"
        place = {"address": bmc.get("host"), "port": bmc.get("port")}
        yield Node(
            uuid=_read(kinds.uuid_text, str(given.get("uuid", "")), f"{where}.uuid", problems),
            name=_read(_vm_name, str(given.get("vm_name", "")), f"{where}.vm_name", problems),
            address=bmc.get("address", ""),
            ipmi=_endpoint(place, f"{where}.bmc", problems) if by_ipmi else None,
        )


def _vm_name(text: str) -> str:
    if text == OPERATOR or not re.fullmatch(VM_NAME_PATTERN, text):
        raise ValueError(f"is {text!r}; the name of a VM is right, and not {OPERATOR}, which is an account for people")
    return text


def _contradictions(lab: Lab) -> Iterator[str]:
    yield from (f"{where} {value} is there twice." for where, value in _duplicates(lab))
    if lab.by_redfish and not lab.listen:
        names = ", ".join(node.name for node in lab.by_redfish)
        yield f"listen is empty, and {names} would be commanded by Redfish: give an address and a port."
    if not lab.nodes and not lab.listen:
        yield "Neither nodes nor listen say what to serve."
    yield from (f"{path} is no absolute path." for path in (lab.home, lab.software) if not path.is_absolute())


def _duplicates(lab: Lab) -> Iterator[tuple[str, str]]:
    kinds_of: dict[str, Iterable[str]] = {
        "UUID": (node.uuid for node in lab.nodes),
        "vm_name": (node.name for node in lab.nodes),
        "listen": map(str, lab.listen),
        "IPMI address": (str(place) for _node, place in lab.by_ipmi),
    }
    for kind, values in kinds_of.items():
        seen: set[str] = set()
        for value in values:
            if value in seen:
                yield kind, value
            seen.add(value)


def labs_in(home: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(home) if entry.is_dir()) if home.is_dir() else []
