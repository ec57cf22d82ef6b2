# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._host.network_hook import ENTRIES, HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._netlink.wiring import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._netlink.wiring import Plug, Wiring

HEAD = """\
#!/bin/sh
# Made by nometal.ipi and removed with veth pair {name}, which this brings back when a libvirt network has started.
[ "$2" = started ] || exit 0
there() {{ [ -e "/sys/class/net/$1" ]; }}
"""
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
PLUGGED = re.compile(r"^ip link set (\S+) mtu \d+ (?:master (\S+)|nomaster) up$", re.MULTILINE)


def plugged_by_entries() -> dict[str, dict[str, str | None]]:
    """By pair and end: the bridge that the pair's entry plugs it into."""
    entries = sorted(ENTRIES.glob("*.veth"))
    return {path.stem: plugged_by(path.read_text(encoding="utf-8", errors="replace")) for path in entries}


def plugged_by(text: str) -> dict[str, str | None]:
    return {end: bridge or None for end, bridge in PLUGGED.findall(text)}


def entry_of(pair: str) -> HookEntry:
    return HookEntry(f"{pair}.veth")


def entry_text(wiring: Wiring, our_bridges: Sequence[str]) -> str:
    """The pair once more, in iproute2: after a reboot there may be no Ansible, and no Python of ours."""
    bridges = [plug.bridge for plug in wiring.plugs if plug.bridge]
    return "".join(
        [
            HEAD.format(name=wiring.name),
            *(BRIDGE_OF_OTHERS.format(bridge=bridge) for bridge in bridges if bridge not in our_bridges),
            *(
                ALONE_ON.format(bridge=bridge, a=wiring.a.name, b=wiring.b.name)
                for bridge in [wiring.b.bridge]
                if bridge and bridge not in our_bridges and not wiring.shared
            ),
            *(OUR_BRIDGE.format(bridge=bridge, mark=MARK, mtu=wiring.mtu) for bridge in our_bridges),
            PAIR.format(a=wiring.a.name, b=wiring.b.name, mtu=wiring.mtu),
            *(_plugging(plug, wiring.mtu) for plug in wiring.plugs),
        ]
    )


def _plugging(plug: Plug, mtu: int) -> str:
    where = f"master {plug.bridge}" if plug.bridge else "nomaster"
    return f"ip link set {plug.name} mtu {mtu} {where} up\n"
