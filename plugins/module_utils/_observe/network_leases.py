# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that keep a reservation from its address, and how dnsmasq comes to forget them."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import UMASK
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Lease

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Reservation

STATUS = Path("/var/lib/libvirt/dnsmasq")
IPV6 = 1
PATIENCE = 5.0
FORGOTTEN = "no binding found"  # says dnsmasq when told again before libvirt has heard of it


def stale(leases: Iterable[Lease], reservations: Iterable[Reservation]) -> tuple[Lease, ...]:
    """A reserved address in other hands, and a machine with a reservation that still has another address."""
    reservations = tuple(reservations)
    machines = {item.ip: item.id for item in reservations}
    addresses = {item.id: item.ip for item in reservations}
    return tuple(
        lease
        for lease in sorted(leases)
        if machines.get(lease.ip, lease.id) != lease.id or addresses.get(lease.id, lease.ip) != lease.ip
    )


def outside(leases: Iterable[Lease], addresses: Iterable[str]) -> tuple[Lease, ...]:
    """In none of the subnets of the host's addresses. dnsmasq neither gives them out nor can be told to forget them."""
    subnets = [ipaddress.ip_interface(address).network for address in addresses]
    return tuple(lease for lease in leases if not any(ipaddress.ip_address(lease.ip) in subnet for subnet in subnets))


def leases_of(network: Any) -> list[Lease]:
    return [_lease(item) for item in network.DHCPLeases()]


def release(network: Any, stale_ones: Collection[Lease]) -> None:
    bridge = network.bridgeName()
    for _look in wait.looks(PATIENCE, 0.05):  # dnsmasq does not answer, it tells libvirt
        left = [lease for lease in leases_of(network) if lease in stale_ones]
        if not left:
            return
        for command in (_command(bridge, lease) for lease in left):
            if command:
                _run(command)
    listed = ", ".join(f"{lease.ip} for {lease.id}" for lease in left)
    raise OperatorError(
        f"dnsmasq on {bridge} does not forget leases which reservations contradict: {listed}. "
        "Stop the machines that have them, and run this again when the leases have expired."
    )


def forget(bridge: str, ips: Collection[str]) -> None:
    """While the network is stopped. dnsmasq learns its leases from this file when it starts."""
    path = STATUS / f"{bridge}.status"
    with suppress(FileNotFoundError, ValueError):
        leases = json.loads(path.read_text(encoding="utf-8"))
        kept = [lease for lease in leases if lease.get("ip-address") not in ips]
        files.write_whole(path, json.dumps(kept, indent=2), path.stat().st_mode & 0o777)


def _command(bridge: str, lease: Lease) -> list[str] | None:
    if not lease.iaid:
        return ["dhcp_release", bridge, lease.ip, lease.id, *filter(None, [lease.client_id])]
    server_id = _server_id(bridge)
    if not server_id:
        return (
            None  # without it the request is never answered; libvirt has just forgotten the lease, or is about to write
        )
    words = {
        "iface": bridge,
        "client-id": lease.id,
        "server-id": server_id,
        "iaid": lease.iaid,
        "ip": lease.ip,
    }
    return ["dhcp_release6", *(f"--{key}={value}" for key, value in words.items())]


def _server_id(bridge: str) -> str:
    """Of dnsmasq for DHCPv6. It stands in no lease that libvirt tells."""
    with suppress(OSError, ValueError):
        leases = json.loads((STATUS / f"{bridge}.status").read_text(encoding="utf-8"))
        return next((lease["server-duid"] for lease in leases if "server-duid" in lease), "")
    return ""


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, umask=UMASK)
    except FileNotFoundError as error:
        raise OperatorError(
            f"{command[0]}, of the package dnsmasq-utils, is not installed: role nometal.ipi.host_prep installs it."
        ) from error
    said = done.stderr.strip() or done.stdout.strip()
    if done.returncode and FORGOTTEN not in said:
        raise OperatorError(f"`{' '.join(command)}` failed: {said}")


def _lease(item: dict[str, Any]) -> Lease:
    client = (item["clientid"] or "").lower()
    if item["type"] == IPV6:
        return Lease(item["ipaddr"], client, iaid=item["iaid"] or "")
    return Lease(item["ipaddr"], (item["mac"] or "").lower(), client_id=client)
