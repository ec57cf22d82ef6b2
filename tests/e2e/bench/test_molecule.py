"""The molecule configuration that all scenarios share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import lab_host

pytestmark = pytest.mark.alone

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(sys.executable).parent


def molecule() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [PROGRAMS / "molecule", "test", "--scenario-name", "lab_host"],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def lab_hosts() -> set[str]:
    return {host.name for host in lab_host.running() if host.name.startswith("lab_host-")}


def test_a_scenario_passes_and_its_host_ends() -> None:
    with molecule() as run:
        assert run.wait(timeout=300) == 0
    assert lab_hosts() == set()


def test_the_host_ends_with_a_killed_molecule() -> None:
    with molecule() as run:
        while not lab_hosts():
            assert run.poll() is None
            time.sleep(0.1)
        os.killpg(run.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while lab_hosts() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert lab_hosts() == set()
