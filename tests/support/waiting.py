"""The one place where tests look at a clock: to wait for others, with a time that only a hang comes to the end of.

wait_until("the log names it", lambda: "demo" in log.read_text(), seen=log.read_text)
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 120
"""Seconds. A wait that succeeds costs none of them, and a busy machine must not fail it."""
POLL_SECONDS = 0.05
LOOKS = 2
"""A look that takes long is followed by a pause of so many times that, as it may have cost a processor."""
T = TypeVar("T")


def wait_until(
    what: str,
    condition: Callable[[], T],
    seconds: float = PATIENCE,
    *,
    seen: Callable[[], object] = lambda: "",
    every: float = POLL_SECONDS,
) -> T:
    """What the condition gives once that is true. It may raise, where waiting on is in vain.

    seen: what there is to see when it never becomes true. every: longer where a look is costly.
    """
    began = time.monotonic()
    deadline = began + seconds
    while not (found := condition()):
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"Waited {seconds:.0f} s in vain until {what}. {seen()}".rstrip())
        time.sleep(max(every, LOOKS * (now - began)))
        began = time.monotonic()
    return found


def stays(what: str, condition: Callable[[], object], seconds: float) -> None:
    """For proofs that something does not happen, where no later event shows it: true all the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), f"No longer so: {what}"
        time.sleep(POLL_SECONDS)
    assert condition(), f"No longer so: {what}"
