# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.host import Chain, program, run, succeeds
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.rules import (
    ADVERTISEMENT,
    SOLICITATION,
    Rule,
    admitted,
    advertised,
    forwarded,
    guarded,
    untracked,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Lab

FAMILIES = {"iptables": "ipv4", "ip6tables": "ipv6", "iptables-legacy": "ipv4", "ip6tables-legacy": "ipv6"}
NFTABLES_FAMILIES = {"iptables": "ip", "ip6tables": "ip6"}
# Tables that the old interface of the kernel has. Its rules are in force beside those of nftables, and unseen there.
LEGACY_TABLES = {
    "iptables-legacy": Path("/proc/net/ip_tables_names"),
    "ip6tables-legacy": Path("/proc/net/ip6_tables_names"),
}
# A drop in mangle is the last word, whoever accepts in filter.
PLACES = {
    "in": ("filter", "INPUT"),
    "fwd": ("filter", "FORWARD"),
    "guard": ("mangle", "INPUT"),
    "out": ("mangle", "OUTPUT"),
    "raw": ("raw", "PREROUTING"),
}
ICMP_TYPES = {SOLICITATION: 133, ADVERTISEMENT: 134}
TARGETS = {"accept": "ACCEPT", "drop": "DROP", "return": "RETURN", "notrack": "CT --notrack"}
# libvirt's own chains stay in front: they judge the traffic of all its networks, also between two of them.
CALL_FUNCTION = """\
call() { # <iptables> <table> <chain> <chain of the lab>
  "$1" -w -t "$2" -C "$3" -j "$4" 2>/dev/null && return
  behind_libvirt=$("$1" -w -t "$2" -S "$3" | grep -n -e '-j LIBVIRT_' | tail -n 1 | cut -d : -f 1)
  "$1" -w -t "$2" -I "$3" "${behind_libvirt:-1}" -j "$4"
}
"""


@dataclass(frozen=True)
class Iptables:
    """The host's iptables, or ip6tables, whichever of the kernel's interfaces it speaks to."""

    program: str

    @property
    def uses_nftables(self) -> bool:
        return "nf_tables" in run(self.program, "--version")

    def wanted(self, lab: Lab, *, alone: bool) -> list[Chain]:
        """Alone, without nft, it does also what a table of the lab's own would do."""
        rules = {"in": admitted(lab), "fwd": forwarded(lab)}
        if alone:
            rules |= {"guard": guarded(lab), "out": advertised(lab), "raw": untracked(lab)}
        family = FAMILIES[self.program]
        lines = {kind: [line(rule) for rule in rules[kind] if rule.concerns(family)] for kind in rules}
        return [self._chain(lab, kind, lines[kind], called=True) for kind in lines if lines[kind]]

    def read(self, lab: Lab) -> list[Chain]:
        saved = run(f"{self.program}-save").splitlines()  # all tables in use: to name one is to make it
        return [chain for kind in PLACES for chain in self._read_one(saved, lab, kind)]

    def _read_one(self, saved: Sequence[str], lab: Lab, kind: str) -> Iterator[Chain]:
        caller, name = PLACES[kind][1], f"{lab.tag}-{kind}"
        if any(text.startswith(f":{name} ") for text in saved):
            rules = [
                _mac_in_lower_case(text).partition(f"-A {name} ")[2] for text in saved if text.startswith(f"-A {name} ")
            ]
            yield self._chain(lab, kind, rules, called=f"-A {caller} -j {name}" in saved)

    def _chain(self, lab: Lab, kind: str, rules: Sequence[str], *, called: bool) -> Chain:
        table, caller = PLACES[kind]
        return Chain(self.program, table, f"{lab.tag}-{kind}", caller, called, tuple(rules))

    def script(self, chains: Sequence[Chain]) -> str:
        lines = [f"{self.program}-restore --wait --noflush <<'RULES' || failed=1"]
        for table in dict.fromkeys(chain.table for chain in chains):
            own = [chain for chain in chains if chain.table == table]
            lines += [f"*{table}", *(f":{chain.name} - [0:0]" for chain in own)]
            lines += [f"-A {chain.name} {rule}" for chain in own for rule in chain.rules]
            lines += ["COMMIT"]
        lines += ["RULES"]
        lines += [f"call {self.program} {chain.table} {chain.caller} {chain.name} || failed=1" for chain in chains]
        return "\n".join(lines) + "\n"

    def remove(self, chain: Chain) -> None:
        table = (self.program, "--wait", "-t", chain.table)
        while succeeds(*table, "-C", chain.caller, "-j", chain.name):
            run(*table, "-D", chain.caller, "-j", chain.name)
        run(*table, "-F", chain.name)
        run(*table, "-X", chain.name)


def installed() -> list[Iptables]:
    """Those that work, which without IPv6 ip6tables does not; beside the new ones, the old ones that filter already."""
    tools = [
        Iptables(name) for name in NFTABLES_FAMILIES if _is_whole(name) and succeeds(f"{name}-save", "-t", "filter")
    ]
    unseen = [name for name in LEGACY_TABLES if _is_whole(name) and "filter" in legacy_tables(name)]
    beside = [Iptables(name) for name in unseen if any(tool.uses_nftables for tool in tools)]
    return [*tools, *beside]


def legacy_tables(program: str) -> list[str]:
    """Tables in use. To ask the program itself would be to make them."""
    with suppress(OSError):
        return LEGACY_TABLES[program].read_text(encoding="ascii").split()
    return []


def _is_whole(name: str) -> bool:
    return bool(program(name) and program(f"{name}-save") and program(f"{name}-restore"))


def _mac_in_lower_case(text: str) -> str:
    """As old releases do not write it."""
    return re.sub(r"(?<=--mac-source )\S+", lambda mac: mac[0].lower(), text)


def line(rule: Rule) -> str:
    """As iptables-save shows it."""
    ports = f"{rule.first_port}:{rule.last_port}" if rule.last_port > rule.first_port else str(rule.first_port)
    parts = {
        f"-s {_with_prefix(rule.source)}": rule.source,
        f"-d {_with_prefix(rule.destination)}": rule.destination,
        f"-i {rule.incoming}": rule.incoming,
        f"-o {rule.outgoing}": rule.outgoing,
        f"-p {rule.protocol}": rule.protocol,
        f"-m {rule.protocol} --dport {ports}": rule.first_port,
        f"-m icmp6 --icmpv6-type {ICMP_TYPES.get(rule.icmp)}": rule.icmp,
        f"-m mac --mac-source {rule.mac}": rule.mac,
        "-m conntrack --ctstate RELATED,ESTABLISHED": rule.answers,
        f"-j {TARGETS[rule.verdict]}": True,
    }
    return " ".join(text for text, given in parts.items() if given)


def _with_prefix(address: str) -> str:
    if "/" in address:
        return address
    return f"{address}/128" if ":" in address else f"{address}/32"
