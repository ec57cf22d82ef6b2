# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All connections, and which of them has to go when there are too many."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from nometal_bmc.sources import source_of

__all__ = ["Crowd", "Visitor"]

MOST_CONNECTIONS = 768  # a process has 1024 file descriptors, if nobody raises that
MOST_KNOWN = 640  # the rest is left for those who are about to log in
MOST_KNOWN_OF_A_SOURCE = 256
MOST_STRANGERS_OF_A_SOURCE = 64


@dataclass(eq=False)
class Visitor:
    """A connection: a stranger, until a request of it has shown a valid login."""

    address: str
    known: bool = False
    source: str = field(init=False)

    def __post_init__(self) -> None:
        self.source = source_of(self.address)


class Crowd:
    """Lets everybody in, at the cost of strangers: of whoever has the most of them, the oldest one goes.

    So neither a network (an IPv4 address, an IPv6 /64) nor an address in it can keep others out, and those with a
    login lose no connection.
    """

    def __init__(self) -> None:
        self._strangers: dict[str, dict[str, dict[Visitor, None]]] = {}  # by source and address, the oldest first
        self._known: Counter[str] = Counter()
        self._count = 0

    def enter(self, visitor: Visitor) -> Visitor | None:
        """The visitor that has to go for it, if one has."""
        self._count += 1
        self._strangers.setdefault(visitor.source, {}).setdefault(visitor.address, {})[visitor] = None
        if _strangers_of(self._strangers[visitor.source]) > MOST_STRANGERS_OF_A_SOURCE:
            return self._removed(visitor.source)
        if self._count > MOST_CONNECTIONS:
            return self._removed(max(self._strangers, key=lambda source: _strangers_of(self._strangers[source])))
        return None

    def recognise(self, visitor: Visitor) -> None:
        """It has logged in. Beyond the limits for such connections it stays a stranger."""
        of_its_source, of_all = self._known[visitor.source], sum(self._known.values())
        if self._is_stranger(visitor) and of_its_source < MOST_KNOWN_OF_A_SOURCE and of_all < MOST_KNOWN:
            self._forget_stranger(visitor)
            self._known[visitor.source] += 1
            visitor.known = True

    def leave(self, visitor: Visitor) -> None:
        """It has ended, or had to go."""
        if visitor.known:
            visitor.known = False
            self._known -= Counter({visitor.source: 1})
            self._count -= 1
        elif self._is_stranger(visitor):
            self._forget_stranger(visitor)
            self._count -= 1

    def _removed(self, source: str) -> Visitor:
        addresses = self._strangers[source]
        largest = max(addresses, key=lambda address: len(addresses[address]))
        oldest = next(iter(addresses[largest]))
        self.leave(oldest)
        return oldest

    def _is_stranger(self, visitor: Visitor) -> bool:
        return visitor in self._strangers.get(visitor.source, {}).get(visitor.address, {})

    def _forget_stranger(self, visitor: Visitor) -> None:
        of_source = self._strangers[visitor.source]
        del of_source[visitor.address][visitor]
        if not of_source[visitor.address]:
            del of_source[visitor.address]
        if not of_source:
            del self._strangers[visitor.source]


def _strangers_of(addresses: dict[str, dict[Visitor, None]]) -> int:
    return sum(map(len, addresses.values()))
