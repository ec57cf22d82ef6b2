# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of links. To import pyroute2 takes longer than all else of a run that changes nothing."""

from __future__ import annotations

import importlib.util
import socket
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import netlink
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import LINK, silencing_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

DELETE_LINK = 17
CAP_NET_ADMIN = 12


def may_change_links() -> bool:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    capabilities = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(capabilities, 16) >> CAP_NET_ADMIN & 1)


def refuse_without_pyroute2() -> None:
    if importlib.util.find_spec("pyroute2") is None:
        raise NotThereYetError(
            f"{sys.executable} has no pyroute2: role nometal.ipi.host_prep installs it; "
            "if it did, set ansible_python_interpreter to the distribution's own Python, /usr/bin/python3."
        )


@contextmanager
def changing(doing: str) -> Iterator[Any]:
    """Open pyroute2, and turn what the kernel refuses inside the block into words for the operator."""
    refuse_without_pyroute2()
    from pyroute2 import IPRoute, NetlinkError  # noqa: PLC0415 - see above

    try:
        with IPRoute() as route:
            yield route
    except NetlinkError as error:
        raise OperatorError(f"`{doing}` failed, the kernel says: {error.args[1]}.") from error


def add_bridge(route: Any, name: str) -> None:
    route.link("add", ifname=name, kind="bridge", br_forward_delay=0)


def add_veth(route: Any, name: str, peer: str) -> None:
    route.link("add", ifname=name, kind="veth", peer=peer)


def set_forward_delay(route: Any, name: str, delay: int) -> None:
    set_link(route, name, kind="bridge", br_forward_delay=delay)


def enslave(route: Any, name: str, bridge: str) -> None:
    set_link(route, name, master=_index(bridge))


def set_link(route: Any, name: str, **attributes: Any) -> None:
    route.link("set", index=_index(name), **attributes)


def delete(name: str) -> None:
    """Also where pyroute2 is not there any more."""
    netlink.change(DELETE_LINK, LINK.pack(0, 0, _index(name), 0, 0))


def silence(name: str) -> None:
    for setting in silencing_settings(name):
        setting.write_text("1", encoding="ascii")


def _index(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError as error:
        raise OperatorError(f"{name} has vanished while it was being changed: run this again.") from error
