# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages that came with the labs others have come to need."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

Alternatives = tuple[str, ...]
"""Any of them serves: names of packages, or of what packages provide."""

DEPENDS, RECOMMENDS, SUGGESTS = "depends on", "recommends", "suggests"


@dataclass(frozen=True)
class Package:
    name: str
    provides: frozenset[str] = frozenset()
    needs: tuple[tuple[str, Alternatives], ...] = ()
    """Each with its kind."""

    def serves(self, alternatives: Alternatives) -> bool:
        return not {self.name, *self.provides}.isdisjoint(alternatives)


@dataclass(frozen=True)
class History:
    """Brought: installed by the labs. Before: installed when the first lab came. Wanted: asked for by others."""

    brought: Collection[str]
    before: Collection[str] = ()
    wanted: Collection[str] = ()


def needed(installed: Mapping[str, Package], history: History, weak: Collection[str]) -> dict[str, str]:
    """Of the packages that the labs brought those that have to stay, each with the reason.

    Weak: the kinds beside dependencies for which the host's package manager keeps a package.
    """
    ours = [name for name in installed if name in history.brought and name not in history.before]
    kept = {name: "it was asked for by name" for name in ours if name in history.wanted}
    providers = _providers(installed[name] for name in ours)
    todo = deque([name for name in installed if name not in ours] + list(kept))
    while todo:
        package = installed[todo.popleft()]
        for kind, alternatives in _needs_that_count(package, ours, history, weak):
            if package.name in history.before and _is_served_without(ours, installed, alternatives):
                continue
            for name in dict.fromkeys(name for each in alternatives for name in providers[each]):
                if name not in kept:
                    kept[name] = f"{package.name} {kind} it"
                    todo.append(name)
    return kept


def _needs_that_count(
    package: Package, ours: Collection[str], history: History, weak: Collection[str]
) -> Iterator[tuple[str, Alternatives]]:
    kinds = {DEPENDS}
    if package.name in ours:  # and stays: with it comes what an installation by its new owner would have brought
        kinds |= {RECOMMENDS} & set(weak)
    elif package.name not in history.before:  # what was there before the labs has been content without
        kinds |= set(weak)
    return (need for need in package.needs if need[0] in kinds)


def _is_served_without(ours: Collection[str], installed: Mapping[str, Package], alternatives: Alternatives) -> bool:
    return any(package.serves(alternatives) for name, package in installed.items() if name not in ours)


def _providers(packages: Iterable[Package]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        for name in {package.name, *package.provides}:
            found[name].append(package.name)
    return found
