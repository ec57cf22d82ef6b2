"""A network card in a namespace of its own on a libvirt network, on which the rehearsal's guests' code runs.

with rehearsal_card.start(libvirtd, bridge="nm-demo", mac="52:54:00:00:00:01") as card:
    card.run("print(links.cards())")
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

MODULE_UTILS = Path(__file__).parents[2] / "plugins/module_utils"
BEGIN = f"""import json, sys
sys.path.insert(0, {str(MODULE_UTILS)!r})
from _agent import links, lookups, network, pings
"""
LINK = "eth0"
START = """
(exec unshare --net sleep 600 >/dev/null 2>&1 </dev/null) & holder=$!
until [ "$(readlink /proc/$holder/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add "$2" type veth peer name eth0 netns $holder address "$1"
nsenter -t $holder -n sh -ec 'echo 1 >/proc/sys/net/ipv6/conf/eth0/router_solicitation_interval
    echo 0 >/proc/sys/net/ipv6/conf/eth0/dad_transmits; echo 0 >/proc/sys/net/ipv6/conf/all/forwarding
    echo 2 >/proc/sys/net/ipv6/conf/eth0/accept_ra'
ip link set "$2" master "$3" up
echo $holder"""


class Card:
    def __init__(self, libvirtd: PrivateLibvirtd, holder: str) -> None:
        self._libvirtd = libvirtd
        self._holder = holder

    def run(self, code: str) -> Any:
        """What the code leaves in `told`."""
        text = f"{BEGIN}{code}\nprint(json.dumps(told))"
        done = self._libvirtd.run(["nsenter", "-t", self._holder, "-n", "python3", "-I", "-c", text])
        return json.loads(done.stdout)


@contextmanager
def start(libvirtd: PrivateLibvirtd, *, bridge: str, mac: str) -> Iterator[Card]:
    name = f"tap-{mac[-2:]}"
    holder = libvirtd.run(["sh", "-ec", START, "-", mac, name, bridge]).stdout.strip()
    try:
        yield Card(libvirtd, holder)
    finally:
        libvirtd.run(["kill", holder])
