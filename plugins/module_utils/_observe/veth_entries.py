# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import USUAL_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import ENTRIES, HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import MARK, Plug, Wiring

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDS = 2
HEAD = """\
#!/bin/sh
# Made by nometal.ipi and removed with veth pair {name}, which this brings back when a libvirt network has started.
{owner}[ "$2" = started ] || exit 0
there() {{ [ -e "/sys/class/net/$1" ]; }}
"""
OWNER = "# Lab: {}\n"
BRIDGE_OF_OTHERS = """
# Not ours to make. When it comes later, this is called again.
there {bridge} || exit 0
"""
ALONE_ON = """
# Nor is it joined once there is more on it than VMs: machines behind that would be served by the lab.
for port in /sys/class/net/{bridge}/brif/*; do
  case "${{port##*/}}" in '*' | {a} | {b}) continue ;; esac
  [ -e "/sys/class/net/${{port##*/}}/tun_flags" ] || exit 0
done
"""
WITHOUT_UPLINK = """
# Nor is it joined once it has an uplink: machines behind that would be served by the lab.
for port in /sys/class/net/{bridge}/brif/*; do
  port=${{port##*/}}
  case "$port" in '*' | {a} | {b}) continue ;; esac
  [ -e "/sys/class/net/$port/tun_flags" ] || [ -n "$(ip link show dev "$port" type veth)" ] || exit 0
done
"""
OUR_BRIDGE = """
if ! there {bridge}; then
  ip link add {bridge} type bridge forward_delay 0
  ip link set {bridge} alias {mark} mtu {mtu}
  for silencing in ipv6/conf/{bridge}/disable_ipv6 ipv4/conf/{bridge}/arp_ignore; do
    [ ! -e "/proc/sys/net/$silencing" ] || echo 1 >"/proc/sys/net/$silencing"
  done
  ip link set {bridge} up
fi
# One of this name that others have made meanwhile is not joined.
[ "$(cat /sys/class/net/{bridge}/ifalias)" = {mark} ] || exit 0
"""
PAIR = """
there {a} || ip link add {a} mtu {mtu} type veth peer name {b} mtu {mtu}
"""
OWNED = re.compile(r"^# Lab: (\S+)$", re.MULTILINE)
MADE = re.compile(r"^  ip link add (\S+) type bridge ", re.MULTILINE)
PLUGGED = re.compile(r"^ip link set (\S+) mtu \d+ (?:master (\S+)|nomaster) up$", re.MULTILINE)


def plugged_by_entries() -> dict[str, dict[str, str | None]]:
    """By pair and end: the bridge that the pair's entry plugs it into."""
    return {pair: plugged_by(text) for pair, text in _texts().items()}


def owners_of_pairs() -> dict[str, str]:
    """By pair: the lab that the pair's entry names. Older entries, and those of pairs that are no lab's, name none."""
    return {pair: owner for pair, text in _texts().items() if (owner := owner_in(text))}


def owner_in(text: str) -> str:
    found = OWNED.search(text)
    return found[1] if found else ""


def wirings_of(owner: str) -> list[Wiring]:
    """The lab's pairs: the one that is named after it, and those whose entries name it."""
    texts = _texts()
    usual = Identity(owner).veth_ends[0]
    own = {pair: text for pair, text in texts.items() if owner_in(text) == owner}
    if owner_in(texts.get(usual, "")) in ("", owner):
        own[usual] = texts.get(usual, "")
    found = (_wiring(owner, pair, text) for pair, text in own.items())
    return [wiring for wiring in found if wiring]


def _wiring(owner: str, pair: str, text: str) -> Wiring | None:
    """An entry that was damaged does not say the pair's ends. They follow from the lab's name, if the pair's does."""
    network_end, node_end = Identity(owner).veth_ends
    plugged = plugged_by(text)
    if len(plugged) != ENDS:
        plugged = {network_end: None, node_end: None} if pair == network_end else {}
    if not plugged:
        return None
    made = MADE.findall(text)
    a, b = (Plug(key, end, plugged[end], plugged[end] in made) for key, end in zip("ab", plugged))
    return Wiring(pair, a, b, USUAL_MTU, owner=owner)


def _texts() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8", errors="replace") for path in sorted(ENTRIES.glob("*.veth"))}


def plugged_by(text: str) -> dict[str, str | None]:
    return {end: bridge or None for end, bridge in PLUGGED.findall(text)}


def entry_of(pair: str) -> HookEntry:
    return HookEntry(f"{pair}.veth")


def entry_text(wiring: Wiring, our_bridges: Sequence[str]) -> str:
    """The pair once more, in iproute2: after a reboot there may be no Ansible, and no Python of ours."""
    bridges = [plug.bridge for plug in wiring.plugs if plug.bridge]
    return "".join(
        [
            HEAD.format(name=wiring.name, owner=OWNER.format(wiring.owner) if wiring.owner else ""),
            *(BRIDGE_OF_OTHERS.format(bridge=bridge) for bridge in bridges if bridge not in our_bridges),
            *(
                ALONE_ON.format(bridge=bridge, a=wiring.a.name, b=wiring.b.name)
                for bridge in [wiring.b.bridge]
                if bridge and bridge not in our_bridges and not wiring.shared
            ),
            *(OUR_BRIDGE.format(bridge=bridge, mark=MARK, mtu=wiring.mtu) for bridge in our_bridges),
            *(
                WITHOUT_UPLINK.format(bridge=bridge, a=wiring.a.name, b=wiring.b.name)
                for bridge in [wiring.b.bridge]
                if bridge in our_bridges and not wiring.shared
            ),
            PAIR.format(a=wiring.a.name, b=wiring.b.name, mtu=wiring.mtu),
            *(_plugging(plug, wiring.mtu) for plug in wiring.plugs),
        ]
    )


def _plugging(plug: Plug, mtu: int) -> str:
    where = f"master {plug.bridge}" if plug.bridge else "nomaster"
    return f"ip link set {plug.name} mtu {mtu} {where} up\n"
