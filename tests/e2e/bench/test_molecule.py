"""The molecule configuration that all scenarios share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import lab_host
from support.waiting import wait_until

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
        wait_until("the host runs", lambda: run.poll() is not None or lab_hosts())
        assert run.poll() is None
        os.killpg(run.pid, signal.SIGKILL)
    wait_until("it has ended", lambda: not lab_hosts(), seen=lab_hosts)
