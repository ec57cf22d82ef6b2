"""Waiting, and that nothing in the tests waits or measures time in any other way."""

from __future__ import annotations

import pytest
from support.waiting import stays, wait_until


def test_it_gives_what_the_condition_has_become() -> None:
    answers = iter([None, "", "found"])
    assert wait_until("it is found", lambda: next(answers)) == "found"
    assert next(answers, "no more") == "no more"


def test_what_never_comes_true_says_what_was_waited_for_and_what_was_seen() -> None:
    with pytest.raises(AssertionError, match=r"^Waited 0 s in vain until it is found\. Only this$"):
        wait_until("it is found", lambda: False, 0, seen=lambda: "Only this")
    with pytest.raises(AssertionError, match=r"until it is found\.$"):
        wait_until("it is found", lambda: False, 0)


def test_what_raises_is_not_waited_for() -> None:
    def broken() -> bool:
        raise OSError("it has ended")

    with pytest.raises(OSError, match="it has ended"):
        wait_until("it is found", broken)


def test_what_stays_is_looked_at_to_the_end() -> None:
    answers = iter([True, True, False])
    with pytest.raises(AssertionError, match="No longer so: it is there"):
        stays("it is there", lambda: next(answers), 60)
    last = iter([True])
    stays("it is there", lambda: next(last), 0)
    assert next(last, "no more") == "no more"
