"""Waiting, and that nothing in the tests waits or measures time in any other way."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

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


def test_a_look_that_takes_long_is_taken_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses, answers = [0.0], list[float](), iter([0.0, 3.0, 0.0, None])

    def condition() -> bool:
        taken = next(answers)
        now[0] += taken or 0
        return taken is None

    monkeypatch.setattr("support.waiting.time", SimpleNamespace(monotonic=lambda: now[0], sleep=pauses.append))
    wait_until("it is found", condition)
    assert pauses == [0.05, 6.0, 0.05]


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


ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"
# What looks at a clock or sleeps by itself, and why.
BY_THEMSELVES = {
    "support/waiting.py": "the helper",
    "support/ansible_callbacks/interruption.py": "notes how long tasks take, to kill the next run in the middle of one",
    "support/bmc_attacker.py": "a program of its own, on a lab host",
    "support/fill_caches.py": "gives a mirror that is out a minute",
    "support/image_server.py": "a program of its own, that is slow on purpose",
    "support/lab_keeper.py": "a host that ends at once is not booted again and again",
    "support/lab_trees.py": "says every few seconds how far it is",
    "support/private_libvirtd_init.py": "a program of its own, that reaps orphans until it is killed",
    "support/sandbox_watcher.py": "a program of its own",
}
PROGRAMS = ("bench/", "support/stand_in/")
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "sleep"}


def test_nothing_else_in_the_tests_waits_or_measures_time() -> None:
    found = set()
    for path in [*TESTS.rglob("*.py"), *ROOT.glob("bmc/tests/**/*.py")]:
        name = str(path.relative_to(TESTS if path.is_relative_to(TESTS) else ROOT))
        calls = map(looks_at_a_clock, ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        if not name.startswith(PROGRAMS) and any(calls):
            found.add(name)
    assert found == set(BY_THEMSELVES), "wait by support/waiting.py; what is to be fast is measured in tests/bench"


def looks_at_a_clock(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "time" and any(alias.name in CLOCKS for alias in node.names)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return (node.value.id, node.attr) == ("asyncio", "sleep") or (node.value.id == "time" and node.attr in CLOCKS)
    return False


@pytest.mark.parametrize(
    ("code", "does"),
    [
        ("time.sleep(1)", True),
        ("start = time.monotonic()", True),
        ("measure(clock=time.perf_counter)", True),
        ("await asyncio.sleep(1)", True),
        ("from time import sleep", True),
        ("time.time()", False),
        ("wait_until('it is there', path.exists)", False),
    ],
)
def test_what_looks_at_a_clock_is_known(code: str, does: bool) -> None:
    tree = ast.parse(f"async def run():\n    {code}")
    assert any(map(looks_at_a_clock, ast.walk(tree))) == does
