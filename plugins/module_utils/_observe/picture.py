# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a lab is really there on its host, now. What is missing is reported as missing; nothing here fails."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs, Port
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Network, VethPair
from ansible_collections.nometal.ipi.plugins.module_utils._observe import picture_links as kernel
from ansible_collections.nometal.ipi.plugins.module_utils._observe.domain_xml import parsed
from ansible_collections.nometal.ipi.plugins.module_utils._observe.network_health import health_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.network_xml import definition_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.ports import measure_ports

MISSING, ACTIVE, INACTIVE = "missing", "active", "inactive"
RUNNING, OFF, UNKNOWN = "running", "off", "unknown"
# libvirt's numbers of states; what is not named here is unusual enough to be told as such.
STATES = {1: RUNNING, 2: RUNNING, 3: "paused", 4: "shutting down", 5: OFF, 6: "crashed", 7: "suspended"}
FAILURES = (OperatorError, OSError, ValueError, LookupError, *([libvirt.libvirtError] if libvirt else []))


@dataclass(frozen=True)
class Scene:
    """What to look at, all in the words of the lab model; `vms` has the VM's name of each node and of the bootstrap."""

    networks: Sequence[Network]
    bridges: Sequence[str]
    veth_pairs: Sequence[VethPair] = ()
    vms: Mapping[str, str] = field(default_factory=dict)
    endpoints: Sequence[Port] = ()


class Unread(list[str]):
    """What could not be read, and why."""

    def guard(self, what: str, ask: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return ask()
        except FAILURES as error:
            self.append(f"{what}: {error}")
            return otherwise


def read(connection: Any, scene: Scene) -> dict[str, Any]:
    unread = Unread()
    networks = [_network(connection, wanted, unread) for wanted in scene.networks]
    bridge_of = {network["name"]: network["bridge"] for network in networks}
    vms = {who: _vm(connection, name, bridge_of, unread) for who, name in scene.vms.items()}
    links = unread.guard("links", kernel.shown_links, {})
    uplinks = unread.guard("default routes", kernel.shown_uplinks, [])
    named = {*bridge_of.values(), *scene.bridges, *_ends(scene), *_taps(vms), *(each["device"] for each in uplinks)}
    return {
        "host": os.uname().nodename,
        "uplinks": uplinks,
        "links": kernel.concerning(links, named),
        "networks": networks,
        "bridges": list(scene.bridges),
        "veth_pairs": [_veth_pair(pair) for pair in scene.veth_pairs],
        "vms": vms,
        "bmc": _bmc(scene.endpoints, unread),
        "unread": list(unread),
    }


def _ends(scene: Scene) -> list[str]:
    return [end.name for pair in scene.veth_pairs for end in pair.ends]


def _taps(vms: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [nic["tap"] for vm in vms.values() for nic in vm["nics"] if nic["tap"]]


def _veth_pair(pair: VethPair) -> dict[str, Any]:
    """As it should be: what there is of it is among the links."""
    ends = [{"name": end.name, "bridge": end.bridge} for end in pair.ends]
    return {"name": pair.name, "mtu": pair.mtu, "ends": ends}


def _network(connection: Any, wanted: Network, unread: Unread) -> dict[str, Any]:
    found = {
        "name": wanted.name,
        "role": wanted.role,
        "state": MISSING,
        "bridge": wanted.bridge,
        "forward": str(wanted.forward),
        "routes_ipv6": False,
        "mtu": wanted.mtu,
        "addresses": [f"{each.gateway}/{each.prefix}" for each in wanted.addresses if each.gateway],
        "missing_addresses": [],
        "dnsmasq": None,
    }
    seen = unread.guard(f"network {wanted.name}", lambda: _seen_of_network(connection, wanted.name), {})
    return {**found, **seen}


def _seen_of_network(connection: Any, name: str) -> dict[str, Any]:
    network = _looked_up(connection.listAllNetworks(), name)
    if network is None:
        return {}
    text = network.XMLDesc()
    definition = definition_of(text)
    seen = {
        "state": INACTIVE,
        "bridge": definition.bridge,
        "forward": definition.forward,
        "routes_ipv6": definition.routes_ipv6,
    }
    if not network.isActive():
        return seen
    health = health_of(name, text)
    missing = [] if health.bridge == "gone" else list(health.missing_addresses)
    return {**seen, "state": ACTIVE, "missing_addresses": missing, "dnsmasq": health.dnsmasq}


def _vm(connection: Any, name: str, bridge_of: Mapping[str, str], unread: Unread) -> dict[str, Any]:
    # It may be gone between two questions: then it is just that.
    seen = unread.guard(f"VM {name}", lambda: _seen_of_vm(connection, name, bridge_of), {"state": UNKNOWN})
    return {"name": name, "state": MISSING, "nics": [], **seen}


def _seen_of_vm(connection: Any, name: str, bridge_of: Mapping[str, str]) -> dict[str, Any]:
    domain = _looked_up(connection.listAllDomains(), name)
    if domain is None:
        return {}
    number = domain.state()[0]
    root = parsed(domain.XMLDesc())
    nics = [_nic(element, bridge_of) for element in root.iterfind("devices/interface")]
    return {"state": STATES.get(number, UNKNOWN), "nics": nics}


def _nic(element: Any, bridge_of: Mapping[str, str]) -> dict[str, Any]:
    network = _attribute(element, "source", "network")
    return {
        "mac": _attribute(element, "mac", "address"),
        "network": network,
        "bridge": _attribute(element, "source", "bridge") or bridge_of.get(network or ""),
        "tap": _attribute(element, "target", "dev"),
        "unplugged": _attribute(element, "link", "state") == "down",
    }


def _attribute(element: Any, path: str, name: str) -> str | None:
    child = element.find(path)
    return None if child is None else child.get(name)


def _looked_up(things: Sequence[Any], name: str) -> Any:
    """Asking libvirt by name would print an error when there is none."""
    return next((thing for thing in things if thing.name() == name), None)


def _bmc(ports: Sequence[Port], unread: Unread) -> list[dict[str, Any]]:
    taken = unread.guard("BMC ports", lambda: measure_ports(Needs(ports=tuple(ports))), None)
    held = None if taken is None else {busy.port: [str(holder) for holder in busy.holders] for busy in taken}
    return [_endpoint(port, held) for port in ports]


def _endpoint(port: Port, held: Mapping[Port, list[str]] | None) -> dict[str, Any]:
    return {
        "address": port.address,
        "port": port.number,
        "protocol": port.protocol,
        "listening": None if held is None else port in held,
        "by": [] if held is None else held.get(port, []),
    }
