# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose kubelets are heard: what the cluster says of a node is what it knew last, however long ago that was. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Heartbeats:
    silence: float
    """Seconds after which a node would have been heard."""
    _first: dict[str, str] = field(default_factory=dict)
    """By the names that nodes have in the cluster."""
    _moved: set[str] = field(default_factory=set)
    _since: float | None = None
    _now: float = 0.0

    def note(self, heartbeats: Mapping[str, str], now: float) -> None:
        self._since, self._now = now if self._since is None else self._since, now
        self._moved |= {name for name, beat in heartbeats.items() if self._first.setdefault(name, beat) != beat}

    def is_known(self, *names: str) -> bool:
        """Of one node, as all that follow."""
        return not {*names}.isdisjoint(self._first)

    def is_heard(self, *names: str) -> bool:
        """Since heartbeats were first noted."""
        return not {*names}.isdisjoint(self._moved)

    def is_silent(self, *names: str) -> bool:
        """A node that is not in the cluster yet is silent from the beginning."""
        listened = self._now - (self._now if self._since is None else self._since)
        return not self.is_known(*names) or (listened >= self.silence and not self.is_heard(*names))
