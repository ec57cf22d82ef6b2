# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import (
    FREE,
    blocker,
    listed,
    ok,
    warning,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network as IpNetwork
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe import libvirt_files
from ansible_collections.nometal.ipi.plugins.module_utils._observe.libvirt_files import LibvirtNetwork, LibvirtObject
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link as HostLink
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import ports_of, read_links
from ansible_collections.nometal.ipi.plugins.module_utils._observe.routes import (
    Route,
    in_the_way,
    overlap,
    routes,
    widest_per_device,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.veth_entries import plugged_by_entries
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import MARK

NODE_END = "nmb-"  # of a lab's veth pair, on the bridge of its nodes
# VPNs write a default route as two halves.
DEFAULT_IN_HALVES = 1


@dataclass(frozen=True)
class Subnets:
    routes: tuple[Route, ...]
    networks: tuple[LibvirtNetwork, ...]


def measure_subnets(_needs: Needs) -> Subnets:
    return Subnets(routes(), libvirt_files.networks())


def judge_subnets(found: Subnets, needs: Needs) -> Finding:
    wanted = [subnet for network in needs.networks for subnet in network.subnets]
    measured = f"{', '.join(map(str, wanted)) or 'no subnet'} requested"
    strangers = [network for network in found.networks if not _is_own(network, needs)]
    own_links = {*needs.own_links, *needs.bridges, *(network.bridge for network in needs.networks)}
    # Bridges of any libvirt network are judged as networks; the lab's network may have had another name.
    known = own_links | {network.bridge for network in found.networks}
    foreign = [route for route in found.routes if route.device not in known]
    taken = _taken_by_networks(wanted, strangers, active=True) + _taken_by_routes(wanted, foreign)
    if taken:
        labs = [network.owner for network in strangers if _taken_by_networks(wanted, [network], active=True)]
        advice = f"Give the lab another cidr.{_or_remove(labs)}"
        return blocker(
            "subnets.taken",
            f"{measured}, but {_listed(taken)}",
            advice,
            requested=list(map(str, wanted)),
            labs=_named(labs),
        )
    shadowed = _taken_by_networks(wanted, strangers, active=False) + _shadowed_routes(wanted, foreign)
    if shadowed:
        return warning(
            "subnets.shadowed",
            f"{measured}; {_listed(shadowed)}",
            "While the lab runs, that part is unreachable; use another cidr to avoid this.",
            requested=list(map(str, wanted)),
        )
    return ok("subnets.free", f"{measured}, all free", requested=list(map(str, wanted)))


def _is_own(network: LibvirtNetwork, needs: Needs) -> bool:
    return any(network.uuid == own.uuid for own in needs.networks)


def _taken_by_networks(wanted: list[IpNetwork], networks: list[LibvirtNetwork], *, active: bool) -> list[str]:
    state = "" if active else "stopped "
    return [
        f"{subnet} is used by {state}libvirt network {network.name} ({theirs})"
        for network in networks
        for theirs in network.subnets
        for subnet in wanted
        if network.active is active and overlap(subnet, theirs)
    ]


def _taken_by_routes(wanted: list[IpNetwork], found: list[Route]) -> list[str]:
    """Conflicts with connected networks and with routes into the lab's range."""
    return [f"{subnet} is routed already: {route}" for subnet in wanted for route in in_the_way(subnet, found)]


def _shadowed_routes(wanted: list[IpNetwork], found: list[Route]) -> list[str]:
    """Wider routes over a gateway that contain the lab's range."""
    return [
        f"{subnet} is part of the route {route}"
        for subnet in wanted
        for route in widest_per_device(subnet, found)
        if route.gateway and DEFAULT_IN_HALVES < route.subnet.prefixlen < subnet.prefixlen
    ]


def _listed(findings: list[str]) -> str:
    return listed(findings, 4)


@dataclass(frozen=True)
class Link:
    name: str
    is_bridge: bool
    ports: tuple[str, ...] = ()
    taps: tuple[str, ...] = ()
    """Ports of VMs."""
    made_by_us: bool = False
    veths: tuple[str, ...] = ()
    """Ports that lead to something else on this host."""
    joined: bool = False
    """Whether an end of the lab's veth pair is on it, or will be at boot."""


@dataclass(frozen=True)
class Bridges:
    links: tuple[Link, ...]
    networks: tuple[LibvirtNetwork, ...]


def measure_bridges(needs: Needs) -> Bridges:
    wanted = {*needs.bridges, *(network.bridge for network in needs.networks)}
    joined = {
        bridge for ends in plugged_by_entries().values() for end, bridge in ends.items() if end in needs.own_links
    }
    links = read_links()
    return Bridges(
        links=tuple(_link(name, links, needs, joined) for name in sorted(wanted.intersection(links))),
        networks=libvirt_files.networks(),
    )


def _link(name: str, links: Mapping[str, HostLink], needs: Needs, joined: Collection[str | None]) -> Link:
    ports = ports_of(name, links)
    return Link(
        name=name,
        is_bridge=links[name].kind == "bridge",
        ports=tuple(ports),
        taps=tuple(port for port in ports if links[port].kind == "tun"),
        made_by_us=links[name].alias == MARK,
        veths=tuple(port for port in ports if links[port].kind == "veth"),
        joined=name in joined or not set(ports).isdisjoint(needs.own_links),
    )


def judge_bridges(found: Bridges, needs: Needs) -> Finding:
    of_networks = [network.bridge for network in needs.networks]
    wanted = list(dict.fromkeys([*of_networks, *needs.bridges]))
    owned = {network.bridge for network in found.networks if _is_own(network, needs)}
    others = {network.bridge: network.name for network in found.networks if not _is_own(network, needs)}
    plain = [link for link in found.links if link.is_bridge and link.name not in {*owned, *others}]
    in_the_way = [link for link in plain if link.name in of_networks and not link.made_by_us]
    conflicts = [
        *(f"{bridge} belongs to libvirt network {others[bridge]}" for bridge in wanted if bridge in others),
        *(f"{link.name} exists and is not a bridge" for link in found.links if not link.is_bridge),
        *(f"{link.name} exists and belongs to no libvirt network" for link in in_the_way),
        *(
            f"{link.name} is owned by another lab ({end} is on it)"
            for link in plain
            for end in _ends_of_others(link, needs)
        ),
    ]
    if conflicts:
        strangers = [network for network in found.networks if not _is_own(network, needs)]
        labs = [network.owner for network in strangers if _has_one_of(network, plain, others, wanted)]
        advice = "Remove or rename it, or use other names for the lab's bridges."
        return blocker(
            "bridges.taken",
            _listed(conflicts),
            f"{advice}{_or_remove(labs)}",
            requested=wanted,
            labs=_named(labs),
        )
    return _judge_lans([link for link in plain if link not in in_the_way], needs) or ok(
        "bridges.free",
        f"{', '.join(wanted) or 'no bridge'}: {FREE}{_shared(plain, needs)}",
        requested=wanted,
    )


def _judge_lans(plain: list[Link], needs: Needs) -> Finding | None:
    """The lab's DHCP server would serve all other machines on the bridge."""
    lans = {link: _ports_of_others(link, needs) for link in plain if link.name not in needs.shared_bridges}
    plugged_in = {
        link: [port for port in ports if port in link.veths and link.made_by_us] for link, ports in lans.items()
    }
    uplinks = {link: [port for port in ports if port not in plugged_in[link]] for link, ports in lans.items()}
    # Once the lab is on it, these include its own VMs.
    guests = [link for link in lans if link.taps and not link.made_by_us and not link.joined]
    served = [
        *(f"{link.name} has ports of others ({', '.join(ports)})" for link, ports in uplinks.items() if ports),
        *(f"{link.name} has VMs of others ({', '.join(link.taps)})" for link in guests),
    ]
    if served:
        return blocker(
            "bridges.serve-others",
            f"{_listed(served)}: the lab's DHCP server would answer machines there",
            "Use another machine_network.bridge, or remove them from it; or, to share that LAN on purpose, set "
            "machine_network.shared_lan: true.",
            ports={link.name: ports for link, ports in uplinks.items() if ports},
            vms={link.name: list(link.taps) for link in guests},
        )
    met = [f"{link.name} has links of others ({', '.join(ports)})" for link, ports in plugged_in.items() if ports]
    if met:
        return warning(
            "bridges.links-of-others",
            f"{_listed(met)}: the lab's DHCP server answers machines there",
            "Remove them, or use another machine_network.bridge, unless this is intended.",
            ports={link.name: ports for link, ports in plugged_in.items() if ports},
        )
    return None


def _ports_of_others(bridge: Link, needs: Needs) -> list[str]:
    return [port for port in bridge.ports if port not in {*bridge.taps, *needs.own_links}]


def _shared(plain: list[Link], needs: Needs) -> str:
    shared = [
        f"; {link.name} shares the LAN of {', '.join(_ports_of_others(link, needs)) or 'nothing yet'}"
        for link in plain
        if link.name in needs.shared_bridges
    ]
    return "".join(shared)


def _has_one_of(network: LibvirtNetwork, plain: list[Link], others: Mapping[str, str], wanted: list[str]) -> bool:
    """Whether it is the network of another lab whose bridges this lab would use."""
    end = Identity(network.owner).veth_ends[1]
    is_its_own = network.bridge in wanted and network.bridge in others
    return is_its_own or any(end in link.ports for link in plain)


def _or_remove(labs: list[str]) -> str:
    """After lab_spec.name was changed, the conflict is with the lab's own former name."""
    names = _named(labs)
    if not names:
        return ""
    commands = ", ".join(f"make teardown NAME={name}" for name in names)
    return f" If lab_spec.name was changed, remove the lab by its former name: {commands}"


def _named(labs: list[str]) -> list[str]:
    return sorted({lab for lab in labs if lab})


def _ends_of_others(bridge: Link, needs: Needs) -> list[str]:
    return [port for port in bridge.ports if port.startswith(NODE_END) and port not in needs.own_links]


def measure_names(_needs: Needs) -> tuple[LibvirtObject, ...]:
    return libvirt_files.objects()


def judge_names(found: tuple[LibvirtObject, ...], needs: Needs) -> Finding:
    own = {("network", network.name): network.uuid for network in needs.networks}
    own.update({("domain", vm.name): vm.uuid for vm in needs.vms})
    if needs.pool.name:
        own["pool", needs.pool.name] = needs.pool.uuid
    strange = [thing for thing in found if own.get((thing.kind, thing.name), thing.uuid) != thing.uuid]
    if strange:
        taken = [f"{thing.kind} {thing.name} ({thing.uuid})" for thing in strange]
        advice = "Choose another lab_spec.name, or remove these."
        return blocker(
            "libvirt_names.taken",
            f"used by others: {_listed(taken)}",
            advice,
            taken=[asdict(thing) for thing in strange],
        )
    return ok("libvirt_names.free", f"{len(own)} requested: {FREE}", requested=len(own))
