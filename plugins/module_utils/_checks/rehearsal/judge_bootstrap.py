# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bootstrap VM has seen, against what the lab says. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    BOOTSTRAP,
    GIVEN_BY,
    Check,
    Story,
    skipped,
    verdict,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import is_between
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

MOST_NAMED = 3
CLOCK_SECONDS = 5
BOOTS = "the VM boots and tells so by its channel"


def judge(lab: Lab, story: Story) -> Iterator[Check]:
    if "network" not in story.seen:
        yield _silence(story)
        return
    yield verdict("boots", BOOTSTRAP, "", BOOTS)
    yield _address(lab, story)
    if lab.bootstrap["mode"] != BootstrapAddress.STATIC:
        yield _servers(lab, story)
    if story.seen.get("addresses"):
        yield from _routes(lab, story)
    for judgement in (_names, _reverse, _time, _frames, _outside, _held):
        if _topic(judgement) in story.seen:
            yield judgement(lab, story)


def _silence(story: Story) -> Check:
    if story.hindrance and "boots" not in story.host:
        return skipped("boots", BOOTSTRAP, f"not tried: {story.hindrance}")
    why = story.host.get("lost", {}).get(BOOTSTRAP, "")
    silent = f"it has not come up: {why}" if why else "it has not come up"
    return verdict("boots", BOOTSTRAP, story.host.get("boots", silent), BOOTS)


def _topic(judgement: Any) -> str:
    return {_names: "names", _reverse: "reverse", _time: "clocks", _frames: "frames", _outside: "outside"}.get(
        judgement, "held"
    )


def _address(lab: Lab, story: Story) -> Check:
    got = story.seen.get("addresses", [])
    places = lab.bootstrap_places()
    wanted = " and ".join(start if start == end else f"{start} to {end}" for start, end in places)
    missing = [place for place in places if not any(is_between(address, *place) for address in got)]
    if missing and not got:
        return verdict("address", BOOTSTRAP, "none", wanted)
    giver = foreign_giver(lab, story.seen["network"][0])
    return verdict("address", BOOTSTRAP, ", ".join(got) + giver if missing else "", wanted, ", ".join(got))


def foreign_giver(lab: Lab, card: Mapping[str, Any]) -> str:
    server = (card.get("dhcp4") or {}).get("server", "")
    return f"{GIVEN_BY}{server}" if server and server not in lab.gateways else ""


def _servers(lab: Lab, story: Story) -> Check:
    """By IPv6 a server is known by its own link-local address, of which there may be one."""
    [card] = [card for card in story.seen["network"] if "servers4" in card][:1] or [{"servers4": [], "servers6": []}]
    gateways4 = [gateway for gateway in lab.gateways if ":" not in gateway]
    servers4 = sorted({*card["servers4"], *story.seen.get("servers", ())})
    strange = [server for server in servers4 if server not in gateways4]
    several6 = card["servers6"][1:]
    found = servers4 + card["servers6"]
    wanted = f"the lab's own only: {', '.join(lab.gateways)}"
    silent = not servers4 if gateways4 else not card["servers6"]
    if silent:
        return verdict("DHCP servers", BOOTSTRAP, "none has offered anything", wanted)
    trouble = f"answers of {', '.join(found)}" if strange or several6 else ""
    return verdict("DHCP servers", BOOTSTRAP, trouble, wanted, ", ".join(found))


def _routes(lab: Lab, story: Story) -> Iterator[Check]:
    routes = story.seen.get("routes", [])
    told = lab.bootstrap_routes()
    missing = [route for route in told if route not in routes]
    if told:
        trouble = f"lacks {', '.join(missing)}" if missing else ""
        yield verdict("static routes", BOOTSTRAP, trouble, ", ".join(told))
    if any(route.startswith("default via") for route in told) or not lab.has_way_out:
        return
    defaults = [route for route in routes if route.startswith("default via")]
    families = lab.bootstrap_families
    trouble = "" if len(defaults) >= len(families) else f"{', '.join(defaults) or 'no default route'}"
    yield verdict("gateway", BOOTSTRAP, trouble, f"a default route for {' and '.join(families)}", ", ".join(defaults))


def _names(lab: Lab, story: Story) -> Check:
    return names_check("names", BOOTSTRAP, lab.names(), story.seen["names"])


def names_check(check: str, who: str, wanted: dict[str, list[str]], answers: list[list[Any]]) -> Check:
    wrong = [
        f"{name} is {', '.join(found) or trouble} (asked {server})"
        for name, server, found, trouble in answers
        if sorted(found) != sorted(wanted[name])
    ]
    told = next(
        (
            f"{name} is {', '.join(wanted[name])}"
            for name, *_rest in answers
            if wrong and wrong[0].startswith(f"{name} ")
        ),
        "",
    )
    return verdict(check, who, few(wrong), told or f"{len(wanted)} names as the lab has them")


def _reverse(lab: Lab, story: Story) -> Check:
    wanted = lab.reverse_names()
    wrong = [
        f"{address} is {', '.join(found) or trouble}"
        for address, _server, found, trouble in story.seen["reverse"]
        if wanted[address] not in found
    ]
    return verdict("reverse names", BOOTSTRAP, few(wrong), f"{len(wanted)} addresses have their names")


def _time(lab: Lab, story: Story) -> Check:
    if not lab.ntp_servers:
        return skipped("time", BOOTSTRAP, "the lab names no time servers")
    now = story.host.get("clock", 0.0)
    wrong = [
        f"{server} does not answer" if clock is None else f"{server} is {clock - now:.0f} s off"
        for server, clock in story.seen["clocks"]
        if clock is None or abs(clock - now) > CLOCK_SECONDS
    ]
    return verdict("time", BOOTSTRAP, few(wrong), f"{', '.join(lab.ntp_servers)} answers with the time")


def _frames(lab: Lab, story: Story) -> Check:
    wrong = [f"{size} bytes to {address}: {trouble}" for address, size, trouble in story.seen["frames"] if trouble]
    mtu = lab.machine_network["mtu"]
    return verdict("full-size frames", BOOTSTRAP, few(wrong), f"{mtu} bytes pass in one piece")


def _outside(lab: Lab, story: Story) -> Check:
    ways = story.seen["outside"]
    if not ways:
        return skipped("way out", BOOTSTRAP, "nothing beyond this host answers the host itself")
    came = [f"{address} ({kind})" for kind, address, ok in ways if ok]
    if not lab.has_way_out:
        leak = f"answers of {', '.join(came)}" if came else ""
        return verdict("way out", BOOTSTRAP, leak, f"none (forward: {lab.machine_network['forward']})")
    trouble = "" if came else f"no answer from {', '.join(address for _kind, address, _ok in ways)}"
    return verdict("way out", BOOTSTRAP, trouble, "what answers the host answers the VM as well", ", ".join(came))


def _held(lab: Lab, story: Story) -> Check:
    held = story.seen["held"]
    trouble = f"{', '.join(held)}: somebody has it already" if held else ""
    return verdict("virtual addresses free", BOOTSTRAP, trouble, f"nobody has {', '.join(lab.all_vips)}")


def few(wrong: list[str]) -> str:
    more = len(wrong) - MOST_NAMED
    return "; ".join(wrong[:MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
