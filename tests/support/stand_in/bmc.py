"""What a BMC is asked for, whatever it speaks."""

from __future__ import annotations

from typing import Any, Protocol


class BmcFailed(Exception):  # noqa: N818 - reads as a sentence
    """In Ironic's words, more or less."""


class BmcUnreachable(BmcFailed):
    """It does not answer, or nobody trusts its certificate."""


class Bmc(Protocol):
    def power(self) -> str: ...

    def switch(self, wanted: str) -> None: ...

    def shut_down(self) -> None:
        """Asks the system to; it may not heed it."""

    def insert(self, url: str) -> None: ...

    def eject(self) -> None: ...

    def boot(self, target: str, enabled: str) -> None: ...


def has_drive(host: dict[str, Any]) -> bool:
    """Whether it boots from virtual media; by network otherwise."""
    return "virtualmedia" in str(host["bmc"]["address"]).partition("://")[0]
