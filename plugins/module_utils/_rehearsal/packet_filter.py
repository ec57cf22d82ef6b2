# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's packet filter, as lines for people: who drops what, and whether addresses are translated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host.processes import run

COUNTER = re.compile(r"counter packets \d+ bytes \d+ ")
LEGACY_TABLES = Path("/proc/net/ip_tables_names")
REFUSES = re.compile(r"\b(drop|reject)\b", re.IGNORECASE)
NFT_PLACE = re.compile(r"(table|chain) (.+) \{$")


@dataclass(frozen=True)
class Rule:
    place: str
    """Table and chain."""
    text: str

    @property
    def refuses(self) -> bool:
        return bool(REFUSES.search(self.text))

    def is_about(self, port: int) -> bool:
        return bool(re.search(rf"dport (\{{[^}}]*)?\b{port}\b", self.text))

    def __str__(self) -> str:
        return f"`{self.text}` in {self.place}"


def read() -> list[Rule]:
    """nft shows what iptables has made, too, unless that is the old one. None: some of the rules would mislead."""
    try:
        old = LEGACY_TABLES.exists() and LEGACY_TABLES.read_text(encoding="ascii").strip()
        made_by_old = of_iptables(run("iptables-legacy-save")) if old else []
        return [*made_by_old, *of_nft(run("nft", "list", "ruleset"))]
    except (OperatorError, OSError):
        return []


def of_nft(text: str) -> list[Rule]:
    found, table, chain = [], "", ""
    for line in map(str.strip, text.splitlines()):
        place = NFT_PLACE.match(line)
        if place:
            kind, name = place.groups()
            table, chain = (name, "") if kind == "table" else (table, name)
        elif chain and line not in ("", "}") and not line.startswith("type "):
            found.append(Rule(f"table {table}, chain {chain}", COUNTER.sub("", line)))
    return found


def of_iptables(text: str) -> list[Rule]:
    found, table = [], ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith("-A "):
            chain, rule = line[3:].split(" ", 1)
            found.append(Rule(f"table {table}, chain {chain}", rule))
    return found
