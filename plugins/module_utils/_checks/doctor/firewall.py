# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import listed, ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe import packet_filter
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import output_of, program, text_if_there
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import LEGACY, Rule


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


def judge_firewalld(found: Firewalld, needs: Needs) -> Finding:
    if not found.running:
        return ok("firewalld.off", "firewalld does not run")
    measured = f"firewalld runs, default zone {found.default_zone}"
    if "libvirt" in found.zones:
        bridges = "the lab's bridges belong to its zone libvirt, where lab_network opens the BMC ports"
        return ok("firewalld.zone-libvirt", f"{measured}; {bridges}", default_zone=found.default_zone)
    if not needs.prepared:
        return ok("firewalld.no-zone-yet", f"{measured}; zone libvirt comes with the packages")
    return warning(
        "firewalld.no-zone",
        f"{measured}, without a zone libvirt",
        f"The lab's bridges are in zone {found.default_zone}, which may reject DHCP, DNS and the BMC: "
        "reload firewalld after installing libvirt.",
        default_zone=found.default_zone,
    )


@dataclass(frozen=True)
class PacketFilter:
    rules: tuple[Rule, ...] = ()
    legacy: tuple[str, ...] = ()
    """Legacy programs whose rules are in force."""
    missing: tuple[str, ...] = ()
    """Those that are no longer installed."""


def measure_packet_filter(_needs: Needs) -> PacketFilter:
    legacy = packet_filter.legacy_in_use()
    missing = tuple(name for name in legacy if not program(f"{name}-save"))
    return PacketFilter(tuple(packet_filter.read()), tuple(legacy), missing)


def judge_packet_filter(found: PacketFilter, _needs: Needs) -> Finding:
    if found.missing:
        return warning(
            "packet_filter.not-read",
            f"rules of the old iptables are in force beside nftables, and cannot be read without {found.missing[0]}",
            f"They may refuse the lab's packets: install {found.missing[0]} (package iptables, or iptables-legacy), or "
            "move these rules to nftables.",
            missing=list(found.missing),
        )
    refusing = packet_filter.refusing(found.rules)
    early = [rule for rule in found.rules if rule.hook in ("prerouting", "ingress") and rule.refuses_all]
    if early:
        return warning(
            "packet_filter.early-refusal",
            f"the packet filter has {_listed(early)}",
            "Packets of the lab are dropped there, before its own rules: allow them.",
            rules=list(map(str, early)),
        )
    old = [rule for rule in refusing if f"table {LEGACY}" in rule.place]
    if old:
        return warning(
            "packet_filter.old-iptables",
            f"the old iptables, beside nftables, has {_listed(old)}, which neither `nft` nor `iptables` shows",
            "Stage network allows the lab there, too; using one packet filter only is easier to maintain.",
            rules=list(map(str, old)),
        )
    if refusing:
        return ok(
            "packet_filter.allowed-by-stage",
            f"{_listed(refusing)}: stage network allows the lab",
            rules=list(map(str, refusing)),
        )
    return ok(
        "packet_filter.open",
        "nothing refuses the lab's packets" if found.rules else "no rules, or none that can be read yet",
    )


def _listed(rules: list[Rule]) -> str:
    return listed(rules, 3, ", ")
