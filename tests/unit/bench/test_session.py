"""A test session is the same however it is started."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from support.checkout import ROOT

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
