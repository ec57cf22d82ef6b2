# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt does not watch of a network that it says runs: its bridge, the host's addresses on it, its dnsmasq, and
whether the host forwards its packets."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Health, Txt
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import WAYS_OUT
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.forwarding import SWITCHES, Host
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_addresses, read_links

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Definition
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link

PROCESSES = Path("/proc")
PID_FILES = Path("/run/libvirt/network")
PASSING = Txt("dnsmasq-starts.invalid", "now")
# By version of IP: of the whole host, and of a bridge, whose own switch the first one sets only when it is changed.
FORWARDING = {
    4: (SWITCHES[0], "net/ipv4/conf/{}/forwarding"),
    6: (SWITCHES[1], "net/ipv6/conf/{}/forwarding"),
}


def health_of(name: str, live: str) -> Health:
    running = xml.definition_of(live)
    bridge = read_links().get(running.bridge)
    if bridge is None:
        return Health(bridge="gone")
    return Health(
        bridge="up" if bridge.up else "down",
        missing_addresses=_missing(running.addresses, bridge),
        dnsmasq=not xml.has_dnsmasq(live) or _command_of(_pid(name)) == "dnsmasq",
        not_forwarding=_not_forwarding(running),
    )


def bring_up(bridge: str) -> None:
    run("ip", "link", "set", "dev", bridge, "up")


def forward_packets(network: Definition) -> None:
    # The host's switch comes first, and sets those of all its links.
    for switch in _not_forwarding(network):
        Host().switch(switch, "1")


def add_address(address: str, bridge: str) -> None:
    # As long as IPv6 looks for duplicates, which takes ports on the bridge, nobody can use the address. One that is
    # there does so until it is removed.
    details = ["nodad"] if ":" in address else ["broadcast", "+"]
    run("ip", "address", "flush", "dev", bridge, "to", str(ipaddress.ip_interface(address).ip))
    run("ip", "address", "add", address, *details, "dev", bridge)


def start_dnsmasq(network: Any) -> None:
    """libvirt looks for it when a record comes or goes, and starts the missing one. A record left by a killed run goes
    with the next one, as every other that is not declared."""
    record, section = xml.item_xml(PASSING), libvirt.VIR_NETWORK_SECTION_DNS_TXT
    for command in (libvirt.VIR_NETWORK_UPDATE_COMMAND_ADD_LAST, libvirt.VIR_NETWORK_UPDATE_COMMAND_DELETE):
        network.update(command, section, -1, record, libvirt.VIR_NETWORK_UPDATE_AFFECT_LIVE)
    if _command_of(_pid(network.name())) != "dnsmasq":
        raise OperatorError(f"libvirt has not started dnsmasq of network {network.name()}: its log says why.")


def impostor(name: str) -> str:
    """What has the number of a dnsmasq that died. libvirt would end it, thinking that it is the dnsmasq."""
    command = _command_of(_pid(name))
    return "" if command in ("", "dnsmasq") else f"{command} (pid {_pid(name)})"


def _missing(wanted: Iterable[str], bridge: Link) -> tuple[str, ...]:
    # On a bridge without carrier, an IPv6 address that looks for duplicates never ends to.
    waits_in_vain = bridge.up and not bridge.carrier
    there = [address for address in read_addresses() if address.link == bridge.name]
    usable = {address.interface for address in there if not (waits_in_vain and address.tentative)}
    return tuple(address for address in wanted if ipaddress.ip_interface(address) not in usable)


def _not_forwarding(network: Definition) -> tuple[str, ...]:
    """What libvirt switches on when it starts the network, for the same modes and families."""
    if network.forward not in WAYS_OUT:
        return ()
    versions = {ipaddress.ip_interface(address).version for address in network.addresses}
    switches = [switch.format(network.bridge) for version in sorted(versions) for switch in FORWARDING[version]]
    return tuple(switch for switch in switches if Host().value(switch) == "0")


def _pid(name: str) -> str:
    with suppress(OSError):
        return (PID_FILES / f"{name}.pid").read_text(encoding="ascii").strip()
    return ""


def _command_of(pid: str) -> str:
    if pid.isdigit():
        with suppress(OSError):
            return (PROCESSES / pid / "comm").read_text(encoding="utf-8").strip()
    return ""
