"""Where something of the tests runs: with this machine's files, and a network of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Place(Protocol):
    """A private libvirtd, or a street."""

    @property
    def network(self) -> str:
        """A file that stands for its network."""

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command there."""
