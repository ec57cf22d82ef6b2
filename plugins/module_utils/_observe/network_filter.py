# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's own rules for a network in the host's packet filter.

libvirt writes them when the network starts, and never looks at them again. Whoever flushes the packet filter takes
them away, and what was allowed or translated no longer is.
"""

from __future__ import annotations

import ipaddress
import os
import re
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Definition

IPV6 = 6
IPTABLES = {4: "iptables", IPV6: "ip6tables"}
HIDDEN = "is incompatible, use 'nft' tool"  # of a table in which somebody has put what iptables cannot show
NFT_TABLES = {4: "ip libvirt_network", 6: "ip6 libvirt_network"}
NFT_CHAINS = ("guest_cross", "guest_input", "guest_output")
SYSTEMD = Path("/run/systemd/system")
SOCKET = Path("/run/libvirt/libvirt-sock")
DAEMONS = ("virtnetworkd", "libvirtd")
# libvirt listens to firewalld, which says this when it has lost what others had in the packet filter: libvirt then
# writes all of its rules again, and does nothing else. It is told to libvirt alone, for others listen to firewalld too.
RELOADED = (
    "busctl --unique --no-legend list | while read -r name pid program rest; do case $program in "
    f"{'|'.join(DAEMONS)}) busctl --destination=$name emit /org/fedoraproject/FirewallD1 "
    "org.fedoraproject.FirewallD1 Reloaded;; esac; done"
)
PATIENCE = 10.0
PATIENCE_WITH_SIGNAL = 5.0


def lost_of(network: Definition) -> tuple[str, ...]:
    """Chains in which rules of a running network are missing; none where the packet filter cannot be read."""
    if network.forward == Forward.OPEN:
        return ()
    versions = dict.fromkeys(ipaddress.ip_interface(address).version for address in network.addresses)
    return tuple(chain for version in versions for chain in _lost_of_version(network, version))


def _lost_of_version(network: Definition, version: int) -> list[str]:
    """By whichever of the two libvirt writes its rules."""
    table, saved = _nft_table(version), _iptables(version)
    in_nft = lost_in_nft(table, network, version) if table else [f"nft {NFT_TABLES[version]}"]
    if saved is None:
        return in_nft if _output_of("nft", "list", "tables") is not None else []
    in_iptables = [] if HIDDEN in saved else lost_in_iptables(saved, network, version)
    return (in_nft if table else in_iptables) if in_nft and in_iptables else []


def has_chains() -> bool:
    """Whether libvirt's own chains are there, without which it starts no network."""
    saved = _iptables(4)
    in_iptables = saved is not None and (HIDDEN in saved or ":LIBVIRT_FWO " in saved)
    return in_iptables or bool(_nft_table(4))


def _nft_table(version: int) -> str | None:
    return _output_of("nft", "list", "table", *NFT_TABLES[version].split())


def _iptables(version: int) -> str | None:
    return _output_of(f"{IPTABLES[version]}-save")


def lost_in_iptables(saved: str, network: Definition, version: int) -> list[str]:
    """By what `iptables-save` shows."""
    bridge = re.escape(network.bridge)
    needed = [
        ("filter", "INPUT", r"-j LIBVIRT_INP"),
        ("filter", "LIBVIRT_INP", rf"-i {bridge} .*-j ACCEPT"),
        ("filter", "FORWARD", r"-j LIBVIRT_FWX"),
        ("filter", "LIBVIRT_FWX", rf"-i {bridge} -o {bridge} -j ACCEPT"),
        ("filter", "FORWARD", r"-j LIBVIRT_FWI"),
        ("filter", "LIBVIRT_FWI", rf".*-o {bridge} "),
        ("filter", "FORWARD", r"-j LIBVIRT_FWO"),
        ("filter", "LIBVIRT_FWO", rf".*-i {bridge} "),
    ]
    for subnet in _routed(network, version):
        needed += [
            ("filter", "LIBVIRT_FWI", rf"-d {re.escape(subnet)} .*-o {bridge} .*-j ACCEPT"),
            ("filter", "LIBVIRT_FWO", rf"-s {re.escape(subnet)} .*-i {bridge} .*-j ACCEPT"),
        ]
    for subnet in _translated(network, version):
        needed += [
            ("nat", "POSTROUTING", r"-j LIBVIRT_PRT"),
            ("nat", "LIBVIRT_PRT", rf"-s {re.escape(subnet)} .*-j (MASQUERADE|SNAT)"),
        ]
    tables = dict(_tables_of(saved))
    missing = [
        f"{IPTABLES[version]} {table} {chain}"
        for table, chain, rule in needed
        if not re.search(rf"^-A {chain} {rule}", tables.get(table, ""), re.MULTILINE)
    ]
    return list(dict.fromkeys(missing))


def lost_in_nft(table: str, network: Definition, version: int) -> list[str]:
    """By what `nft list table` shows."""
    chains = dict(re.findall(r"chain (\w+) \{\n(.*?)\n\t\}", table, re.DOTALL))
    needed = [(chain, f'"{network.bridge}"') for chain in NFT_CHAINS]
    needed += [("forward", f"jump {chain}") for chain in NFT_CHAINS]
    for subnet in _translated(network, version):
        needed += [("guest_nat", f"saddr {subnet} ")]
    missing = [f"nft {NFT_TABLES[version]} {chain}" for chain, text in needed if text not in chains.get(chain, "")]
    if _translated(network, version) and not re.search(r"\b(masquerade|snat)\b", chains.get("guest_nat", "")):
        missing.append(f"nft {NFT_TABLES[version]} guest_nat")
    return list(dict.fromkeys(missing))


def restore(is_whole: Callable[[], bool]) -> bool:
    """Have libvirt write its rules anew. Whether it was restarted for that: connections to it are lost then.

    A reload by SIGHUP would not do: libvirt takes its chains for made. Running networks and VMs notice neither.
    """
    if SYSTEMD.is_dir():
        with suppress(OperatorError):
            run("sh", "-c", RELOADED)
            if wait.comes_true(is_whole, PATIENCE_WITH_SIGNAL):
                return False
        _restart_unit()
    else:
        _restart_by_hand()
    return True


def refuse_loss(network: Definition) -> None:
    """What libvirt has been asked to put back has to be there, some time after it was restarted."""
    if not wait.comes_true(lambda: not lost_of(network), PATIENCE):
        raise OperatorError(
            f"libvirt was restarted and has not put its rules back into {', '.join(lost_of(network))} of the packet "
            "filter: its log says why (journalctl -u libvirtd -u virtnetworkd)."
        )


def _restart_unit() -> None:
    units = [f"{daemon}.service" for daemon in DAEMONS]
    shown = run("systemctl", "show", "--property=Id,ActiveState", *units)
    active = re.findall(r"^Id=(.*)\nActiveState=active$", shown, re.MULTILINE)
    if active:
        run("systemctl", "restart", *active)


def _restart_by_hand() -> None:
    """Without a service manager: as it was started, whatever its options are."""
    pid = _daemon()
    command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")[:-1]
    os.kill(pid, signal.SIGTERM)
    if not wait.comes_true(lambda: not Path(f"/proc/{pid}").exists(), PATIENCE):
        raise OperatorError(f"{command[0]} (process {pid}) does not stop after {PATIENCE:.0f} seconds.")
    run(*command)


def _daemon() -> int:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(SOCKET))
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[0]


def _translated(network: Definition, version: int) -> list[str]:
    is_nat = network.forward == Forward.NAT and not (network.routes_ipv6 and version == IPV6)
    return _routed(network, version) if is_nat else []


def _routed(network: Definition, version: int) -> list[str]:
    interfaces = map(ipaddress.ip_interface, network.addresses)
    subnets = [str(interface.network) for interface in interfaces if interface.version == version]
    return [] if network.forward == Forward.ISOLATED else subnets


def _tables_of(saved: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\*", saved, flags=re.MULTILINE)[1:]:
        name, _end, rules = part.partition("\n")
        yield name, rules


def _output_of(*command: str) -> str | None:
    try:
        return run(*command)
    except OperatorError:
        return None
