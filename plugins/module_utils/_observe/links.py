# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    from pyroute2 import IPRoute, NetlinkError
except ImportError:
    IPRoute = NetlinkError = None

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import USUAL_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterator

UP = 1
# Type and flags of the message. For "del", pyroute2 before 0.7 sets flags that kernels since 5.19 refuse.
DELETE = (17, 5)  # RTM_DELLINK, NLM_F_REQUEST | NLM_F_ACK
CAP_NET_ADMIN = 12
SEARCH_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Link:
    """A network interface as the kernel tells it, with names in place of its numbers."""

    name: str
    kind: str | None = None
    mtu: int = USUAL_MTU
    up: bool = True
    master: str | None = None
    peer: str | None = None
    alias: str | None = None
    forward_delay: int | None = None
    answers: bool = False
    """To IPv6 on it, or to ARP for the host's addresses elsewhere."""


@contextmanager
def netlink(doing: str) -> Iterator[Any]:
    """Open netlink, and turn what the kernel refuses inside the block into words for the operator."""
    if IPRoute is None:
        raise NotThereYetError(
            f"{sys.executable} has no pyroute2: role nometal.ipi.host_prep installs it; "
            "if it did, set ansible_python_interpreter to the distribution's own Python, /usr/bin/python3."
        )
    try:
        with IPRoute() as route:
            yield route
    except NetlinkError as error:
        raise OperatorError(f"`{doing}` failed, the kernel says: {error.args[1]}.") from error


def read_links() -> dict[str, Link]:
    with netlink("list links") as route:
        messages = list(route.get_links())
    names = {message["index"]: message.get_attr("IFLA_IFNAME") for message in messages}
    return {name: _link(name, message, names) for message in messages for name in [names[message["index"]]]}


def lacks_netlink() -> bool:
    return IPRoute is None


def read_links_by_ip() -> dict[str, Link]:
    """By iproute2, where pyroute2 is not there yet or not there any more."""
    if not shutil.which("ip", path=SEARCH_PATH):
        raise NotThereYetError("Neither pyroute2 nor the program ip is installed: links are not seen.")
    found = json.loads(run(shutil.which("ip", path=SEARCH_PATH) or "ip", "-json", "-details", "link", "show") or "[]")
    return {link["ifname"]: _link_by_ip(link) for link in found if "ifname" in link}


def delete_by_ip(name: str) -> None:
    run(shutil.which("ip", path=SEARCH_PATH) or "ip", "link", "delete", "dev", name)


def may_change_links() -> bool:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    capabilities = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(capabilities, 16) >> CAP_NET_ADMIN & 1)


def add_bridge(route: Any, name: str) -> None:
    route.link("add", ifname=name, kind="bridge", br_forward_delay=0)


def add_veth(route: Any, name: str, peer: str) -> None:
    route.link("add", ifname=name, kind="veth", peer=peer)


def set_forward_delay(route: Any, name: str, delay: int) -> None:
    set_link(route, name, kind="bridge", br_forward_delay=delay)


def enslave(route: Any, name: str, bridge: str) -> None:
    set_link(route, name, master=_index(route, bridge))


def set_link(route: Any, name: str, **attributes: Any) -> None:
    route.link("set", index=_index(route, name), **attributes)


def delete(route: Any, name: str) -> None:
    route.link(DELETE, index=_index(route, name))


def silence(name: str) -> None:
    for setting in _silencing_settings(name):
        setting.write_text("1", encoding="ascii")


def _link(name: str, message: Any, names: dict[int, str]) -> Link:
    about = message.get_attr("IFLA_LINKINFO")
    kind = about.get_attr("IFLA_INFO_KIND") if about else None
    data = about.get_attr("IFLA_INFO_DATA") if kind == "bridge" else None
    # The number of a link in another network namespace is no number of ours.
    elsewhere = message.get_attr("IFLA_LINK_NETNSID") is not None
    return Link(
        name=name,
        kind=kind,
        mtu=message.get_attr("IFLA_MTU"),
        up=bool(message["flags"] & UP),
        master=names.get(message.get_attr("IFLA_MASTER")),
        peer=None if elsewhere else names.get(message.get_attr("IFLA_LINK")),
        alias=message.get_attr("IFLA_IFALIAS"),
        forward_delay=data.get_attr("IFLA_BR_FORWARD_DELAY") if data else None,
        answers=_answers(name),
    )


def _ip(*words: str) -> str:
    program = shutil.which("ip", path=SEARCH_PATH)
    if not program:
        raise NotThereYetError("Neither pyroute2 nor the program ip is installed: links are not seen.")
    return run(program, *words)


def _link_by_ip(link: dict[str, Any]) -> Link:
    about = link.get("linkinfo", {})
    return Link(
        name=link["ifname"],
        kind=about.get("info_kind"),
        mtu=link["mtu"],
        up="UP" in link["flags"],
        master=link.get("master"),
        peer=None if "link_netnsid" in link else link.get("link"),
        alias=link.get("ifalias"),
        forward_delay=about.get("info_data", {}).get("forward_delay") if about.get("info_kind") == "bridge" else None,
        answers=_answers(link["ifname"]),
    )


def _index(route: Any, name: str) -> int:
    found = route.link_lookup(ifname=name)
    if not found:
        raise OperatorError(f"{name} has vanished while it was being changed: run this again.")
    return found[0]


def _answers(name: str) -> bool:
    return any(setting.read_text(encoding="ascii").strip() == "0" for setting in _silencing_settings(name))


def _silencing_settings(name: str) -> list[Path]:
    settings = (f"ipv6/conf/{name}/disable_ipv6", f"ipv4/conf/{name}/arp_ignore")
    # The kernel may have been started without IPv6.
    return [path for setting in settings for path in [Path("/proc/sys/net") / setting] if path.exists()]
