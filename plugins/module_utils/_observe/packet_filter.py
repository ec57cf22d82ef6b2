# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's packet filter, as lines for people: who drops what, and whether addresses are translated."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTER = re.compile(r"counter packets \d+ bytes \d+ ")
LEGACY_TABLES = {
    "iptables-legacy": Path("/proc/net/ip_tables_names"),
    "ip6tables-legacy": Path("/proc/net/ip6_tables_names"),
}
LEGACY = "legacy "
REFUSES = re.compile(r"\b(drop|reject)\b", re.IGNORECASE)
REFUSES_ALL = re.compile(r"(-j |policy )?(drop|reject( .*)?)", re.IGNORECASE)
NFT_PLACE = re.compile(r"(table|chain) (.+) \{$")
NFT_BASE = re.compile(r"type \w+ hook (\w+) .*policy (\w+);")
LEGACY_BASE = re.compile(r":([A-Z]+) ([A-Z]+) ")
HOOKS = {chain: chain.lower() for chain in ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")}


@dataclass(frozen=True)
class Rule:
    place: str
    """Table and chain."""
    text: str
    hook: str = field(default="", compare=False)
    """Where packets come to the chain by themselves: input, forward; empty in one that others call."""

    @property
    def refuses(self) -> bool:
        return bool(REFUSES.search(self.text))

    @property
    def refuses_all(self) -> bool:
        """Whatever no rule before it has let through."""
        return bool(REFUSES_ALL.fullmatch(self.text))

    def is_about(self, port: int) -> bool:
        return bool(re.search(rf"dport (\{{[^}}]*)?\b{port}\b", self.text))

    def __str__(self) -> str:
        return f"`{self.text}` in {self.place}"


def read() -> list[Rule]:
    """nft shows what iptables has made, too, unless that is the old one. None: some of the rules would mislead."""
    try:
        made_by_old = [rule for program in legacy_in_use() for rule in of_iptables(run(f"{program}-save"))]
        return [*made_by_old, *of_nft(run("nft", "list", "ruleset"))]
    except (OperatorError, OSError):
        return []


def legacy_in_use() -> list[str]:
    """The old programs that have made tables. To ask the programs themselves would be to make some."""
    return [name for name, tables in LEGACY_TABLES.items() if tables.exists() and tables.read_text(encoding="ascii")]


def refusing(rules: Sequence[Rule], tag: str = "") -> list[Rule]:
    """Those that refuse the rest of what comes to the host or goes through it, where no chain of the lab is before."""
    let_through = {rule.place for rule in rules if tag and re.search(rf"(-j|jump) {re.escape(tag)}-", rule.text)}
    return [
        rule
        for rule in rules
        if rule.hook in ("input", "forward") and rule.refuses_all and rule.place not in let_through
    ]


def of_nft(text: str) -> list[Rule]:
    found, table, chain, hook = [], "", "", ""
    for line in map(str.strip, text.splitlines()):
        place = NFT_PLACE.match(line)
        base = NFT_BASE.match(line)
        if place:
            kind, name = place.groups()
            table, chain, hook = (name, "", "") if kind == "table" else (table, name, "")
        elif base:
            hook, policy = base.groups()
            found += [Rule(_place(table, chain), f"policy {policy}", hook)] if policy == "drop" else []
        elif chain and line not in ("", "}") and not line.startswith("type "):
            found.append(Rule(_place(table, chain), COUNTER.sub("", line), hook))
    return found


def of_iptables(text: str) -> list[Rule]:
    """Of the old one, which nft does not show."""
    found, table = [], ""
    for line in text.splitlines():
        base = LEGACY_BASE.match(line)
        if line.startswith("*"):
            table = f"{LEGACY}{line[1:]}"
        elif base and base[2] == "DROP":
            found.append(Rule(_place(table, base[1]), "policy DROP", HOOKS.get(base[1], "")))
        elif line.startswith("-A "):
            chain, rule = line[3:].split(" ", 1)
            found.append(Rule(_place(table, chain), rule, HOOKS.get(chain, "")))
    return found


def _place(table: str, chain: str) -> str:
    return f"table {table}, chain {chain}"
