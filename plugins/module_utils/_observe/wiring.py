# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import ports_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link

MARK = "nometal.ipi"


@dataclass(frozen=True)
class Plug:
    """One end of the pair, and the bridge that it goes to."""

    key: str
    name: str
    bridge: str | None = None
    make_bridge: bool = False


@dataclass(frozen=True)
class Wiring:
    """A veth pair as it is asked for."""

    name: str
    a: Plug
    b: Plug
    mtu: int
    shared: bool = False
    """Whether others may be on the bridge of the nodes."""
    owner: str = ""
    """The lab whose pair it is; noted in the pair's entry of the hook."""

    @property
    def plugs(self) -> tuple[Plug, Plug]:
        return self.a, self.b

    def bridges_made(self, links: Mapping[str, Link]) -> list[str]:
        """Those that are ours to make, or are made by us. One that others have made stays theirs."""
        wanted = [plug.bridge for plug in self.plugs if plug.bridge and plug.make_bridge]
        return [name for name in wanted if name not in links or is_ours(links[name], links)]

    def bridges_missing(self, links: Mapping[str, Link]) -> list[Plug]:
        """By the plugs at them. They are for others to make."""
        return [plug for plug in self.plugs if plug.bridge and plug.bridge not in links and not plug.make_bridge]


def is_ours(link: Link, links: Mapping[str, Link]) -> bool:
    # What a run leaves that is killed between making and marking it. Nobody else's use looks like that.
    cut_short = not link.alias and not link.up and link.forward_delay == 0 and not ports_of(link.name, links)
    return link.kind == "bridge" and (link.alias == MARK or cut_short)


def ports_of_others(bridge: str, links: Mapping[str, Link], own: Collection[str]) -> list[str]:
    """What leads from a bridge out of this host, or to who knows where. VMs' taps do not; nor do veths on a bridge of
    ours, by which a part of this host was plugged into the lab."""
    if bridge not in links:
        return []
    harmless = ("tun", "veth") if is_ours(links[bridge], links) else ("tun",)
    return [name for name in ports_of(bridge, links) if name not in own and links[name].kind not in harmless]
