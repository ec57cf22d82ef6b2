# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the arguments of redfish_emulator to the service that is wanted, and what is wrong with them on any host."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import (
    OPERATOR,
    Endpoint,
    Lab,
    Media,
    Node,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core import types as kinds
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import HIGHEST_PORT, LOWEST_UNPRIVILEGED_PORT
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    Value = TypeVar("Value")

VM_NAME_PATTERN = "[A-Za-z0-9_][-A-Za-z0-9_.+]*"
USER_PATTERN = "[a-z_][-a-z0-9_]{0,31}"
# As a unit of systemd can name it without quotes.
PATH_PATTERN = r"(/(?!\.{1,2}(/|$))[A-Za-z0-9_.+-]+)+"
UNSEEN = ("/dev", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/var/tmp")  # noqa: S108 - to refuse them
"""Either hidden from the service, or gone after a reboot."""
LEAST_BYTES, MOST_BYTES = 1024**2, 16 * 1024**4
MOST_SECONDS = 24 * 60 * 60


def lab_from(params: Mapping[str, Any]) -> tuple[Lab, list[str]]:
    """Also of what is wrong, as far as it can be read: so all that is wrong can be said at once."""
    wrong: list[str] = []
    media = params["media"]
    lab = Lab(
        name=_read(kinds.cluster_name, params["lab"], "lab", wrong, params["lab"]),
        listen=_several(params["listen"], "listen", lambda entry, where: _listening(entry, where, wrong)),
        tls=params["tls"] and bool(params["listen"]),
        names=_several(params["names"], "names", lambda name, where: _read(kinds.domain_name, name, where, wrong)),
        nodes=_several(params["nodes"], "nodes", lambda node, where: _node(node, where, wrong)),
        media=Media(media["max_bytes"], media["timeout"], media.get("ca_file")),
        user=params["user"],
        home=Path(params["home"]),
        software=Path(params["software"]),
        libvirt_uri=params["libvirt_uri"],
        ipmi_addresses=_several(
            params["ipmi_addresses"], "ipmi_addresses", lambda text, where: _read(_address, text, where, wrong)
        ),
    )
    wrong += _about_paths(params)
    # To remove a lab's service, its name is enough.
    if params["state"] == "present":
        wrong += [*_about_limits(lab), *_contradictions(lab, params)]
    return lab, wrong


def _several(given: Iterable[Any], where: str, read: Callable[[Any, str], Value | None]) -> tuple[Value, ...]:
    """Of a list those that can be read."""
    values = (read(entry, f"{where}[{at}]") for at, entry in enumerate(given))
    return tuple(value for value in values if value is not None)


def _read(convert: Callable[[Any], Value], value: Any, where: str, wrong: list[str], instead: Any = None) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        wrong.append(f"{where} {error}.")
        return instead


def _listening(entry: Mapping[str, Any], where: str, wrong: list[str]) -> Endpoint | None:
    if entry.get("protocol", "tcp") != "tcp":
        wrong.append(f"{where}.protocol is {entry['protocol']!r}; Redfish is by tcp, and IPMI not listed here.")
    return _endpoint(entry, ("address", "port"), where, wrong)


def _endpoint(entry: Mapping[str, Any], keys: tuple[str, str], where: str, wrong: list[str]) -> Endpoint | None:
    address = _read(_address, entry.get(keys[0]), f"{where}.{keys[0]}", wrong)
    port = _read(_port, entry.get(keys[1]), f"{where}.{keys[1]}", wrong)
    return None if address is None or port is None else Endpoint(address, port)


def _address(value: object) -> str:
    try:
        address = ipaddress.ip_address(str(value))
    except ValueError:
        given = "missing" if value in (None, "") else repr(value)
        raise ValueError(f"is {given}; an IP address of the lab's host is right") from None
    if address.is_unspecified or address.is_multicast:
        raise ValueError(f"is {address}, where the whole world would be served; one address of the lab is right")
    if address.is_link_local:
        raise ValueError(f"is {address}, which each link may have; an address of the lab is right")
    return str(address)


def _port(value: object) -> int:
    """Digits in a text count too, for older Ansible's templates hand over text."""
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,5}", value) else value
    right = f"{LOWEST_UNPRIVILEGED_PORT} to {HIGHEST_PORT} are right, which need no privileges"
    if (
        not isinstance(number, int)
        or isinstance(number, bool)
        or not LOWEST_UNPRIVILEGED_PORT <= number <= HIGHEST_PORT
    ):
        raise ValueError(f"is {'missing' if value is None else repr(value)}; {right}")
    return number


def _node(given: Mapping[str, Any], where: str, wrong: list[str]) -> Node | None:
    before = len(wrong)
    bmc = _read(_section, given.get("bmc"), f"{where}.bmc", wrong, {})
    protocol = _read(_protocol, bmc.get("protocol"), f"{where}.bmc.protocol", wrong)
    uuid = _read(kinds.uuid_text, str(given.get("uuid", "")), f"{where}.uuid", wrong)
    name = _read(_vm_name, str(given.get("vm_name", "")), f"{where}.vm_name", wrong)
    ipmi = _endpoint(bmc, ("host", "port"), f"{where}.bmc", wrong) if protocol == BmcProtocol.IPMI else None
    return None if len(wrong) > before else Node(uuid, name, str(bmc.get("address") or ""), ipmi, protocol)


def _section(value: object) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"is {value!r}; a mapping with protocol, address, host and port is right")
    return value or {}


def _protocol(value: object) -> str:
    if value is not None and value not in tuple(BmcProtocol):
        raise ValueError(f"is {value!r}; {', '.join(BmcProtocol)} are right")
    return str(value or BmcProtocol.VIRTUAL_MEDIA)


def is_vm_name(text: str) -> bool:
    return text != OPERATOR and re.fullmatch(VM_NAME_PATTERN, text) is not None


def _vm_name(text: str) -> str:
    if not is_vm_name(text):
        raise ValueError(f"is {text!r}; the name of a VM is right, and not {OPERATOR}, which is an account for people")
    return text


def _about_paths(params: Mapping[str, Any]) -> Iterator[str]:
    for key in ("home", "software"):
        if not re.fullmatch(PATH_PATTERN, params[key]):
            right = "an absolute path of letters, digits, dots, hyphens and underscores is right"
            yield f"{key} is {params[key]!r}; {right}."
    # The software may lie where only a supervisor finds it, so only of what the service is given this is told.
    for key, path in (("home", params["home"]), ("media.ca_file", params["media"].get("ca_file"))):
        hidden = [directory for directory in UNSEEN if f"{path}/".startswith(f"{directory}/")]
        if hidden:
            yield f"{key} is {path}, and the service does not see what is in {hidden[0]}; /var, /srv or /etc is right."


def _about_limits(lab: Lab) -> Iterator[str]:
    media = lab.media
    if not LEAST_BYTES <= media.max_bytes <= MOST_BYTES:
        yield f"media.max_bytes is {media.max_bytes}; {LEAST_BYTES} (1 MiB) to {MOST_BYTES} (16 TiB) are right."
    if not 0 < media.timeout <= MOST_SECONDS:
        yield f"media.timeout is {media.timeout}; 1 to {MOST_SECONDS} seconds (a day) are right."
    if lab.user == "root" or not re.fullmatch(USER_PATTERN, lab.user):
        yield f"user is {lab.user!r}; a system user without privileges is right, such as nometal-bmc."


def _contradictions(lab: Lab, params: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{where} {value} is there twice." for where, value in _duplicates(lab))
    if lab.by_redfish and not params["listen"]:
        names = ", ".join(node.name for node in lab.by_redfish)
        yield f"listen is empty, and {names} would be commanded by Redfish: give an address and a port."
    if not params["nodes"] and not params["listen"]:
        yield "Neither nodes nor listen say what to serve."


def _duplicates(lab: Lab) -> Iterator[tuple[str, str]]:
    kinds_of: dict[str, Iterable[str]] = {
        "UUID": (node.uuid for node in lab.nodes),
        "vm_name": (node.name for node in lab.nodes),
        "listen": map(str, lab.listen),
        "IPMI address": (str(place) for _node, first in lab.by_ipmi for place in lab.places(first)),
    }
    for kind, values in kinds_of.items():
        seen: set[str] = set()
        for value in values:
            if value in seen:
                yield kind, value
            seen.add(value)
