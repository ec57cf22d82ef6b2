# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .host import output_of, program, text_if_there
from .needs import Needs
from .verdict import Verdict, ok, warning

BRIDGE_SETTINGS = Path("/proc/sys/net/bridge")
LEGACY_TABLES = Path("/proc/net/ip_tables_names")


@dataclass(frozen=True)
class Forwarding:
    """`filtered`: frames between the ports of a bridge go through the IP firewall; `dropping`: what drops there."""

    filtered: bool
    dropping: tuple[str, ...]


def measure_forwarding(_needs: Needs) -> Forwarding:
    settings = [text_if_there(BRIDGE_SETTINGS / f"bridge-nf-call-{table}") for table in ("iptables", "ip6tables")]
    return Forwarding("1" in settings, tuple(dict.fromkeys([*_dropping_in_nftables(), *_dropping_in_legacy_tables()])))


def _dropping_in_nftables() -> list[str]:
    nft = program("nft")
    if not nft:
        return _dropping_in_iptables(program("iptables-nft", "iptables"))
    return dropping_chains(output_of(nft, "-j", "list", "chains"))


def dropping_chains(listing: str) -> list[str]:
    """The chains on the forward path whose policy is to drop."""
    chains = [entry["chain"] for entry in json.loads(listing)["nftables"] if "chain" in entry]
    return [
        f"{chain['family']} {chain['table']} {chain['name']}"
        for chain in chains
        if chain.get("hook") == "forward" and chain.get("policy") == "drop" and chain["family"] in ("ip", "ip6", "inet")
    ]


def _dropping_in_legacy_tables() -> list[str]:
    # Asking iptables-legacy loads its kernel modules: only done where they are loaded and in use.
    if "filter" not in text_if_there(LEGACY_TABLES).split():
        return []
    return _dropping_in_iptables(program("iptables-legacy", "iptables"))


def _dropping_in_iptables(iptables: str) -> list[str]:
    if iptables and "-P FORWARD DROP" in output_of(iptables, "-S", "FORWARD"):
        return [f"FORWARD of {Path(iptables).name}"]
    return []


def judge_forwarding(found: Forwarding, _needs: Needs) -> Verdict:
    dropping = ", ".join(found.dropping)
    if found.filtered and found.dropping:
        return warning(
            f"bridged frames pass the IP firewall (br_netfilter), which drops by default: {dropping}",
            "It would cut the lab's nodes off from each other (usually Docker's doing): the lab needs its bridges "
            "accepted in that chain (with Docker: in DOCKER-USER), or net.bridge.bridge-nf-call-iptables = 0.",
        )
    if found.dropping:
        return ok(f"forwarded packets are dropped by default ({dropping}), bridged frames do not pass there")
    return ok(f"nothing drops forwarded packets by default; br_netfilter is {'on' if found.filtered else 'off'}")


@dataclass(frozen=True)
class Firewalld:
    running: bool
    default_zone: str = ""
    zones: tuple[str, ...] = ()


def measure_firewalld(_needs: Needs) -> Firewalld:
    firewall_cmd = program("firewall-cmd")
    if not firewall_cmd or not _runs("firewalld"):
        return Firewalld(running=False)
    zones = output_of(firewall_cmd, "--get-zones").split()
    return Firewalld(True, output_of(firewall_cmd, "--get-default-zone").strip(), tuple(zones))


def _runs(name: str) -> bool:
    return any(text_if_there(comm) == name for comm in Path("/proc").glob("[0-9]*/comm"))


def judge_firewalld(found: Firewalld, needs: Needs) -> Verdict:
    if not found.running:
        return ok("firewalld does not run")
    measured = f"firewalld runs, default zone {found.default_zone}"
    if "libvirt" in found.zones:
        return ok(f"{measured}; the lab's bridges belong to its zone libvirt, where lab_network opens the BMC ports")
    if not needs.prepared:
        return ok(f"{measured}; zone libvirt comes with the packages")
    return warning(
        f"{measured}, without a zone libvirt",
        f"The lab's bridges fall into zone {found.default_zone}, which may refuse DHCP, DNS and the BMC: "
        "reload firewalld after installing libvirt.",
    )
