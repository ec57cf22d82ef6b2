# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The free addresses of one network."""

from __future__ import annotations

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import Span, first_host, last_host
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network


class NoFreeAddressError(Exception):
    """All addresses of the network are used."""


class FreeAddresses:
    def __init__(self, net: Network) -> None:
        self._base = net.network_address
        self._first = int(first_host(net)) - int(net.network_address)
        self._last = int(last_host(net)) - int(net.network_address)
        self._taken: set[int] = set()
        self._spans: list[tuple[int, int]] = []

    def take(self, item: Address) -> None:
        if item.version == self._base.version:
            self._taken.add(int(item) - int(self._base))

    def take_span(self, span: Span) -> None:
        if span.start.version == self._base.version:
            self._spans.append((int(span.start) - int(self._base), int(span.end) - int(self._base)))

    def next(self, offset: int) -> Address:
        """Take the first free address from an offset on, starting over at the end."""
        found = self._search(offset, 1)
        self._taken.add(found)
        return self._base + found

    def next_span(self, offset: int, length: int) -> Span:
        """The same for several in a row; a negative offset counts from the end."""
        start = self._last + 1 + offset if offset < 0 else offset
        found = self._search(start, length)
        span = Span(self._base + found, self._base + (found + length - 1))
        self.take_span(span)
        return span

    def _search(self, offset: int, length: int) -> int:
        found = self._search_up(max(offset, self._first), length)
        if found is None:
            found = self._search_up(self._first, length)
        if found is None:
            raise NoFreeAddressError(f"{length} addresses in a row" if length > 1 else "free address")
        return found

    def _search_up(self, start: int, length: int) -> int | None:
        while start + length - 1 <= self._last:
            used = self._last_used(start, start + length - 1)
            if used is None:
                return start
            start = used + 1
        return None

    def _last_used(self, start: int, end: int) -> int | None:
        """The last offset of a range or address in use."""
        for low, high in self._spans:
            if low <= end and start <= high:
                return high
        return next((offset for offset in range(end, start - 1, -1) if offset in self._taken), None)
