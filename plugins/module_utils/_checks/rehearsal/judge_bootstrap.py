# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bootstrap VM has seen, against what the lab says. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._agent import lookups
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    BOOTSTRAP,
    Check,
    Observations,
    skipped,
    verdict,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import is_between
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

DEFAULT = "default"
MOST_NAMED = 3
CLOCK_SECONDS = 5
BOOTS = "the VM boots and tells so by its channel"


def judge(lab: Lab, observed: Observations) -> Iterator[Check]:
    if "network" not in observed.seen:
        yield _silence(observed)
        return
    yield verdict("boots", BOOTSTRAP, "", BOOTS)
    yield _address(lab, observed)
    if lab.bootstrap.mode != BootstrapAddress.STATIC:
        yield _servers(lab, observed)
    if observed.seen.get("addresses"):
        yield from _routes(lab, observed)
    for judgement in (_names, _reverse, _time, _frames, _outside, _held):
        if _topic(judgement) in observed.seen:
            yield judgement(lab, observed)


def _silence(observed: Observations) -> Check:
    if observed.hindrance and "boots" not in observed.host:
        return skipped("boots", BOOTSTRAP, f"not tried: {observed.hindrance}")
    why = observed.host.get("lost", {}).get(BOOTSTRAP, "")
    silent = f"it has not come up: {why}" if why else "it has not come up"
    return verdict("boots", BOOTSTRAP, observed.host.get("boots", silent), BOOTS, silent="boots" not in observed.host)


def _topic(judgement: Any) -> str:
    return {_names: "names", _reverse: "reverse", _time: "clocks", _frames: "frames", _outside: "outside"}.get(
        judgement, "held"
    )


def _address(lab: Lab, observed: Observations) -> Check:
    got = observed.seen.get("addresses", [])
    places = lab.bootstrap_places()
    wanted = " and ".join(start if start == end else f"{start} to {end}" for start, end in places)
    missing = [place for place in places if not any(is_between(address, *place) for address in got)]
    if missing and not got:
        return verdict("address", BOOTSTRAP, "none", wanted, addresses=[], servers=[])
    servers = foreign_servers(lab, observed.seen["network"][0])
    error = ", ".join(got) + given_by(servers) if missing else ""
    return verdict("address", BOOTSTRAP, error, wanted, ", ".join(got), addresses=[*got], servers=servers)


def foreign_servers(lab: Lab, card: Mapping[str, Any]) -> list[str]:
    """Who has given an address, if that was not the lab's own server."""
    server = (card.get("dhcp4") or {}).get("server", "")
    return [server] if server and server not in lab.gateways else []


def given_by(servers: list[str]) -> str:
    return f" from DHCP server {', '.join(servers)}" if servers else ""


def _servers(lab: Lab, observed: Observations) -> Check:
    """By IPv6 a server is known by its own link-local address, of which there may be one."""
    [card] = [card for card in observed.seen["network"] if "servers4" in card][:1] or [{"servers4": [], "servers6": []}]
    gateways4 = [gateway for gateway in lab.gateways if ":" not in gateway]
    servers4 = sorted({*card["servers4"], *observed.seen.get("servers", ())})
    strange = [server for server in servers4 if server not in gateways4]
    several6 = card["servers6"][1:]
    found = servers4 + card["servers6"]
    wanted = f"the lab's own only: {', '.join(lab.gateways)}"
    silent = not servers4 if gateways4 else not card["servers6"]
    if silent:
        return verdict("DHCP servers", BOOTSTRAP, "none has offered anything", wanted, servers=[])
    finding = f"answers of {', '.join(found)}" if strange or several6 else ""
    return verdict("DHCP servers", BOOTSTRAP, finding, wanted, ", ".join(found), servers=found)


def _routes(lab: Lab, observed: Observations) -> Iterator[Check]:
    routes = observed.seen.get("routes", [])
    told = lab.bootstrap_routes()
    missing = [route for route in told if route not in routes]
    if told:
        finding = f"lacks {_shown_routes(missing)}" if missing else ""
        yield verdict("static routes", BOOTSTRAP, finding, _shown_routes(told), missing=missing)
    if any(to == DEFAULT for to, _via in told) or not lab.has_way_out:
        return
    defaults = [route for route in routes if route[0] == DEFAULT]
    families = lab.bootstrap_families
    finding = "" if len(defaults) >= len(families) else _shown_routes(defaults) or "no default route"
    yield verdict(
        "gateway",
        BOOTSTRAP,
        finding,
        f"a default route for {' and '.join(families)}",
        _shown_routes(defaults),
        routes=defaults,
    )


def _shown_routes(routes: Sequence[Sequence[str]]) -> str:
    return ", ".join(f"{to} via {via}" for to, via in routes)


def _names(lab: Lab, observed: Observations) -> Check:
    return names_check("names", BOOTSTRAP, lab.names(), observed.seen["names"])


def names_check(check: str, who: str, wanted: dict[str, list[str]], answers: list[list[Any]]) -> Check:
    wrong = [answer for answer in answers if sorted(answer[2]) != sorted(wanted[answer[0]])]
    said = [f"{name} is {', '.join(found) or error} (asked {server})" for name, server, found, error in wrong]
    names = [name for name, *_rest in wrong]
    expected = f"{names[0]} is {', '.join(wanted[names[0]])}" if names else f"{len(wanted)} names as the lab has them"
    return verdict(check, who, few(said), expected, names=names, unanswered=_unanswered(wrong))


def _unanswered(answers: list[list[Any]]) -> bool:
    return any(error == lookups.NO_ANSWER for *_others, error in answers)


def _reverse(lab: Lab, observed: Observations) -> Check:
    wanted = lab.reverse_names()
    wrong = [answer for answer in observed.seen["reverse"] if wanted[answer[0]] not in answer[2]]
    said = [f"{address} is {', '.join(found) or error}" for address, _server, found, error in wrong]
    names = [wanted[address] for address, *_rest in wrong]
    expected = f"{len(wanted)} addresses have their names"
    return verdict("reverse names", BOOTSTRAP, few(said), expected, names=names, unanswered=_unanswered(wrong))


def _time(lab: Lab, observed: Observations) -> Check:
    if not lab.ntp_servers:
        return skipped("time", BOOTSTRAP, "the lab names no time servers")
    now = observed.host.get("clock", 0.0)
    wrong = [
        f"{server} does not answer" if clock is None else f"{server} is {clock - now:.0f} s off"
        for server, clock in observed.seen["clocks"]
        if clock is None or abs(clock - now) > CLOCK_SECONDS
    ]
    silent = [server for server, clock in observed.seen["clocks"] if clock is None]
    expected = f"{', '.join(lab.ntp_servers)} answers with the time"
    return verdict("time", BOOTSTRAP, few(wrong), expected, silent_servers=silent)


def _frames(lab: Lab, observed: Observations) -> Check:
    wrong = [f"{size} bytes to {address}: {error}" for address, size, error in observed.seen["frames"] if error]
    mtu, addresses = lab.machine_network.mtu, [address for address, _size, error in observed.seen["frames"] if error]
    return verdict("full-size frames", BOOTSTRAP, few(wrong), f"{mtu} bytes pass in one piece", addresses=addresses)


def _outside(lab: Lab, observed: Observations) -> Check:
    ways = observed.seen["outside"]
    if not ways:
        return skipped("way out", BOOTSTRAP, "nothing beyond this host answers the host itself")
    came = [f"{address} ({kind})" for kind, address, ok in ways if ok]
    if not lab.has_way_out:
        leak = f"answers of {', '.join(came)}" if came else ""
        return verdict("way out", BOOTSTRAP, leak, f"none (forward: {lab.machine_network.forward})", answers=came)
    finding = "" if came else f"no answer from {', '.join(address for _kind, address, _ok in ways)}"
    return verdict(
        "way out", BOOTSTRAP, finding, "what answers the host answers the VM as well", ", ".join(came), answers=came
    )


def _held(lab: Lab, observed: Observations) -> Check:
    held = observed.seen["held"]
    finding = f"{', '.join(held)}: already used by another host" if held else ""
    expected = f"no host uses {', '.join(lab.all_vips)}"
    return verdict("virtual addresses free", BOOTSTRAP, finding, expected, addresses=[*held])


def few(wrong: list[str]) -> str:
    more = len(wrong) - MOST_NAMED
    return "; ".join(wrong[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
