# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.host import Chain, program, run
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.rules import (
    Rule,
    admitted,
    advertised,
    forwarded,
    guarded,
    untracked,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Lab

MEANS = "nft"
FAMILIES = {"ip": ("ipv4",), "ip6": ("ipv6",), "inet": ("ipv4", "ipv6")}
OF_FIREWALLD = "firewalld"  # it opens its own
# Verdicts aside, these say nothing about which packets a rule is for.
FOR_EVERY_PACKET = {"counter", "log", "comment"}
# The chains of a lab's own table. What guard drops is dropped, whoever accepts elsewhere.
OWN_HOOKS = {
    "guard": "input priority -150",
    "advertised": "output priority -150",
    "bridged": "prerouting priority -300",
}


@dataclass(frozen=True)
class BaseChain:
    family: str
    table: str
    name: str
    hook: str

    @property
    def where(self) -> str:
        return f"{self.family} {self.table}"


@dataclass(frozen=True)
class Nftables:
    """Chains of others, in nftables' own language, that would refuse the lab; and a table of the lab's own.

    `of_iptables`: the families in whose table filter the chains INPUT and FORWARD are iptables' to change.
    """

    of_iptables: Collection[str]

    def wanted(self, lab: Lab) -> list[Chain]:
        bases = [base for base in refusing_chains(_ruleset()) if not self._is_of_iptables(base)]
        chains = [*(_wanted_in(base, lab) for base in bases), *_own(lab)]
        return [chain for chain in chains if chain.rules]

    def _is_of_iptables(self, base: BaseChain) -> bool:
        return base.family in self.of_iptables and base.table == "filter" and base.name == base.hook.upper()

    def read(self, lab: Lab) -> list[Chain]:
        ruleset = _ruleset()
        return [
            found
            for chain in _all(ruleset, "chain")
            if chain["name"] in (f"{lab.tag}-input", f"{lab.tag}-forward") or _where(chain) == _table_of(lab)
            for found in _read_one(ruleset, chain)
        ]

    def script(self, chains: Sequence[Chain]) -> str:
        return "".join(_script_of_own(chain) if _is_own(chain) else _script_within(chain) for chain in chains)

    def remove(self, chain: Chain) -> None:
        if _is_own(chain):
            self._remove_own(chain)
            return
        calls = [
            f"delete rule {chain.table} {rule['chain']} handle {rule['handle']}"
            for rule in _calls(_ruleset(), chain.table, chain.name)
        ]
        own = f"chain {chain.table} {chain.name}"
        run(MEANS, "-f", "-", given="\n".join([*calls, f"flush {own}", f"delete {own}"]) + "\n")

    def _remove_own(self, chain: Chain) -> None:
        family, table = chain.table.split()
        run(MEANS, "flush", "chain", family, table, chain.name)
        run(MEANS, "delete", "chain", family, table, chain.name)
        if not any(_where(other) == chain.table for other in _all(_ruleset(), "chain")):
            run(MEANS, "delete", "table", family, table)


def installed() -> bool:
    return bool(program(MEANS))


def _ruleset() -> list[dict[str, Any]]:
    return json.loads(run(MEANS, "-j", "list", "ruleset"))["nftables"]


def _all(ruleset: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [entry[kind] for entry in ruleset if kind in entry]


def _where(entry: dict[str, Any]) -> str:
    return f"{entry['family']} {entry['table']}"


def refusing_chains(ruleset: Sequence[dict[str, Any]]) -> list[BaseChain]:
    """Where packets to the host, or through it, come to a policy or a rule that refuses whatever is left."""
    return [
        BaseChain(chain["family"], chain["table"], chain["name"], chain["hook"])
        for chain in _all(ruleset, "chain")
        if chain.get("hook") in ("input", "forward")
        and chain["family"] in FAMILIES
        and chain["table"] != OF_FIREWALLD
        and (chain.get("policy") == "drop" or _refuses_the_rest(ruleset, chain))
    ]


def _refuses_the_rest(ruleset: Sequence[dict[str, Any]], chain: dict[str, Any]) -> bool:
    for rule in _all(ruleset, "rule"):
        if _where(rule) != _where(chain) or rule["chain"] != chain["name"]:
            continue
        verdict = _verdict_on_every_packet(rule["expr"])
        if {"drop", "reject"} & verdict.keys():
            return True
        for jump in ("jump", "goto"):
            if jump in verdict and _refuses_the_rest(ruleset, {**chain, "name": verdict[jump]["target"]}):
                return True
    return False


def _verdict_on_every_packet(expressions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The verdict of a rule that has no condition, or nothing."""
    telling = [item for item in expressions if not item.keys() & FOR_EVERY_PACKET]
    return telling[0] if len(telling) == 1 else {}


def _wanted_in(base: BaseChain, lab: Lab) -> Chain:
    rules = admitted(lab) if base.hook == "input" else forwarded(lab)
    lines = [line(rule) for rule in rules if any(map(rule.concerns, FAMILIES[base.family]))]
    return Chain(MEANS, base.where, f"{lab.tag}-{base.hook}", base.name, True, tuple(dict.fromkeys(lines)))


def _own(lab: Lab) -> list[Chain]:
    rules = {"guard": guarded(lab), "advertised": advertised(lab), "bridged": untracked(lab)}
    return [
        Chain(MEANS, _table_of(lab), name, "", True, tuple(dict.fromkeys(map(line, rules[name])))) for name in rules
    ]


def _table_of(lab: Lab) -> str:
    return f"inet nometal-{lab.owner}"


def _is_own(chain: Chain) -> bool:
    return chain.name in OWN_HOOKS


def _calls(ruleset: Sequence[dict[str, Any]], where: str, name: str) -> list[dict[str, Any]]:
    jump = {"jump": {"target": name}}
    return [rule for rule in _all(ruleset, "rule") if _where(rule) == where and jump in rule["expr"]]


def _read_one(ruleset: Sequence[dict[str, Any]], chain: dict[str, Any]) -> Iterator[Chain]:
    where, name = _where(chain), chain["name"]
    shown = run(MEANS, "list", "chain", *where.split(), name).splitlines()
    rules = tuple(text.strip() for text in shown if text.startswith("\t\t") and not text.startswith("\t\ttype "))
    callers = [rule["chain"] for rule in _calls(ruleset, where, name)]
    for caller in callers or [""]:
        yield Chain(MEANS, where, name, caller, bool(caller) or "hook" in chain, rules)


def _script_within(chain: Chain) -> str:
    caller = f"{chain.table} {chain.caller}"
    return (
        f"if nft list chain {caller} >/dev/null 2>&1; then\n"
        f"{_script_of_rules(chain, [f'add chain {chain.table} {chain.name}'])}"
        f"nft list chain {caller} | grep -q 'jump {chain.name}$' ||\n"
        f"  nft insert rule {caller} jump {chain.name} || failed=1\n"
        "fi\n"
    )


def _script_of_own(chain: Chain) -> str:
    return _script_of_rules(
        chain,
        [
            f"add table {chain.table}",
            f"add chain {chain.table} {chain.name} {{ type filter hook {OWN_HOOKS[chain.name]}; }}",
        ],
    )


def _script_of_rules(chain: Chain, making: Sequence[str]) -> str:
    place = f"{chain.table} {chain.name}"
    lines = [*making, f"flush chain {place}", *(f"add rule {place} {rule}" for rule in chain.rules)]
    return "\n".join(["nft -f - <<'RULES' || failed=1", *lines, "RULES", ""])


def line(rule: Rule) -> str:
    """As nft shows it."""
    return " ".join(_parts(rule))


def _parts(rule: Rule) -> Iterator[str]:
    ip = "ip6" if rule.family == "ipv6" else "ip"
    if rule.incoming:
        yield f'iifname "{rule.incoming}"'
    if rule.outgoing:
        yield f'oifname "{rule.outgoing}"'
    if rule.mac:
        yield f"ether saddr {rule.mac}"
    if rule.source:
        yield f"{ip} saddr {_shown(rule.source)}"
    if rule.destination:
        yield f"{ip} daddr {rule.destination}"
    if rule.first_port:
        ports = f"{rule.first_port}-{rule.last_port}" if rule.last_port > rule.first_port else str(rule.first_port)
        yield f"{rule.protocol} dport {ports}"
    elif rule.icmp:
        yield f"icmpv6 type {rule.icmp}"
    elif rule.protocol:
        yield f"meta l4proto {rule.protocol}"
    if rule.answers:
        yield "ct state established,related"
    yield rule.verdict


def _shown(network: str) -> str:
    """A network of one address is shown as that address."""
    return network.removesuffix("/128" if ":" in network else "/32")
