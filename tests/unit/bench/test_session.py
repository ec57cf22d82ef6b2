"""A test session is the same however it is started."""

from __future__ import annotations

import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from support.checkout import ROOT
from xdist.remote import Producer

# Shells start what they put into the background with these ignored, which programs hand down.
SIGNALS = ["INT", "QUIT"]


@pytest.mark.parametrize("name", SIGNALS)
def test_what_a_test_starts_can_be_interrupted(name: str) -> None:
    script = f"trap 'echo caught; exit 3' {name}; kill -{name} $$; echo ignored"
    done = subprocess.run(["sh", "-c", script], check=False, text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (3, "caught\n")


def test_an_interrupt_ends_the_session() -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_that_is_so_where_the_session_is_started_with_signals_ignored() -> None:
    tests = [test_what_a_test_starts_can_be_interrupted.__name__, test_an_interrupt_ends_the_session.__name__]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *(f"{__file__}::{name}" for name in tests),
    ]
    ignoring = ["sh", "-c", f"trap '' {' '.join(SIGNALS)}; exec \"$@\"", "sh", *command]
    done = subprocess.run(ignoring, cwd=ROOT, check=False, text=True, capture_output=True)
    assert "3 passed" in done.stdout, done.stdout


class Worker:
    """As the scheduler sees it; it has no process."""

    gateway = SimpleNamespace(id="one")
    shutting_down = False

    def __init__(self) -> None:
        self.begun: list[int] = []

    def send_runtest_some(self, tests: list[int]) -> None:
        self.begun += tests

    def shutdown(self) -> None:
        self.shutting_down = True


def test_workers_take_tests_in_their_order(pytestconfig: pytest.Config) -> None:
    """What takes longest has been put first, and a module of many tests may be over in a moment."""
    own, shares_a_fixture = "tests/unit/bench/test_session.py", "tests/integration/bench/test_guest.py"
    tests = [f"{own}::test_first", *(f"{shares_a_fixture}::test_{number}" for number in range(3)), f"{own}::test_last"]
    option = SimpleNamespace(loadscopereorder=True, debug=False)
    config: Any = SimpleNamespace(option=option, getvalue=lambda _name: ["popen"])
    worker = Worker()
    scheduler = pytestconfig.hook.pytest_xdist_make_scheduler(config=config, log=Producer("log", enabled=False))
    scheduler.add_node(worker)
    scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    for number in range(len(tests)):
        scheduler.mark_test_complete(worker, number)
    assert worker.begun == list(range(len(tests)))
