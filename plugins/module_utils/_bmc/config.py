# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file by which the service learns what it is to do. Only here are its keys named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Hashes, Login
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import Endpoint
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab, Node


def text_of(lab: Lab, logins: dict[str, Login], hashes: Hashes) -> str:
    config = _config(lab, lambda name: hashes.of(logins[name]), lambda name: logins[name].password)
    return json.dumps(config, indent=2) + "\n"


def broker_text(lab: Lab) -> str:
    """Of the service's broker; only root may change it."""
    return json.dumps(broker(lab), indent=2) + "\n"


def broker(lab: Lab) -> dict[str, Any]:
    return {
        "lab": lab.name,
        "libvirt_uri": lab.libvirt_uri,
        "socket": str(lab.socket),
        "user": lab.user,
        "systems": _systems(lab),
        "media": lab.pool.path if lab.listen else None,
        "restart_timeout": lab.restart_timeout,
        "power_restore": lab.power_restore,
    }


def broker_told(text: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):  # there is none, or it was edited
        return None


def declared(lab: Lab) -> dict[str, Any]:
    """As `told` shows it when all passwords are those of the credentials."""
    return _config(lab, _known, _known)


def told(text: str, logins: dict[str, Login], hashes: Hashes) -> dict[str, Any] | None:
    """What a file says, but of passwords only whether they are those of the credentials."""
    try:
        config = dict(json.loads(text))
        for account in config["accounts"]:
            account["password"] = _verdict(account, logins, hashes.of)
        for bmc in config.get("ipmi", []):
            bmc["password"] = _verdict(bmc, logins, lambda login: login.password)
    except (ValueError, KeyError, TypeError, AttributeError):  # it was edited
        return None
    return config


def text_in(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def vm_names(text: str) -> list[str]:
    """Which VMs a service of this file serves."""
    try:
        return [str(system["name"]) for system in json.loads(text)["systems"]]
    except (ValueError, KeyError, TypeError):  # there is none, or it was edited
        return []


def ports(text: str) -> list[Port]:
    """Where a service of this file listens."""
    try:
        config = json.loads(text)
        by_redfish = [Port(place["address"], place["port"], "tcp") for place in config["listen"]]
        by_ipmi = [(address, bmc["port"]) for bmc in config.get("ipmi", []) for address in bmc["addresses"]]
    except (ValueError, KeyError, TypeError):  # there is none, or it was edited
        return []
    return [*by_redfish, *(Port(address, port, "udp") for address, port in by_ipmi)]


def ipmi_ports(text: str) -> dict[str, int]:
    """Where a service of this file listens for each VM, by UUID."""
    try:
        return {bmc["uuid"]: int(bmc["port"]) for bmc in json.loads(text).get("ipmi", [])}
    except (ValueError, KeyError, TypeError, AttributeError):  # as above
        return {}


def _known(name: str) -> str:
    return f"that of {name}"


def _verdict(entry: dict[str, Any], logins: dict[str, Login], of: Callable[[Login], str | None]) -> str:
    login = logins.get(entry["name"])
    return _known(entry["name"]) if login and of(login) == entry["password"] else "another"


def _config(lab: Lab, hashed: Callable[[str], str | None], clear: Callable[[str], str]) -> dict[str, Any]:
    ipmi = [_ipmi(lab, node, place, clear) for node, place in lab.by_ipmi]
    accounts = lab.accounts.items()
    return {
        "lab": lab.name,
        "broker": str(lab.socket),
        "listen": [{"address": endpoint.address, "port": endpoint.port} for endpoint in lab.listen],
        "tls": {"certificate": str(lab.server_certificate), "key": str(lab.server_key)} if lab.tls else None,
        "systems": _systems(lab),
        "accounts": [{"name": name, "password": hashed(name), "systems": systems} for name, systems in accounts],
        "media": {
            "directory": lab.pool.path,
            "max_bytes": lab.media.max_bytes,
            "timeout": lab.media.timeout,
            "ca_file": lab.media.ca_file,
            "networks": [str(network) for network in lab.media.networks],
        },
        "state": str(lab.state),
        **({"ipmi": ipmi} if ipmi else {}),
    }


def _systems(lab: Lab) -> list[dict[str, str]]:
    return [{"uuid": node.uuid, "name": node.name} for node in lab.nodes]


def _ipmi(lab: Lab, node: Node, place: Endpoint, clear: Callable[[str], str]) -> dict[str, Any]:
    return {
        "uuid": node.uuid,
        "name": node.name,
        "addresses": [endpoint.address for endpoint in lab.places(place)],
        "port": place.port,
        "username": lab.usernames[node.name],
        "password": clear(node.name),
    }
