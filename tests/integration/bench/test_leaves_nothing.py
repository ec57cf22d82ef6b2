"""Nothing is left behind, however the owner ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import lab_host, lab_trees, processes, sandbox
from support.cache import cache_dir
from support.sandbox_watcher import control_groups
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Sandbox

pytestmark = pytest.mark.alone

TESTS = Path(lab_trees.__file__).parents[1]
OWNER = """
import subprocess, sys, time
from support import lab_host, private_libvirtd
host = lab_host.start(layer="bare", mirror=True)
libvirtd = private_libvirtd.start()
libvirtd.run(["sh", "-c", "sleep 4713 >/dev/null 2>&1 &"])
print(host.name, libvirtd.sandbox.name, flush=True)
host.run("sleep 4714", timeout=600)
"""
KINDS = ("nometal-ipi-lab-host", "nometal-ipi-libvirtd")


def wait_until_gone(paths: list[Path]) -> None:
    def left() -> list[Path]:
        return [path for path in paths if path.exists()]

    wait_until("they are gone", lambda: not left(), seen=left)


def traces(box: Sandbox) -> list[Path]:
    """Its processes, with whatever entered its namespaces, and its control group. Its mounts are its processes' own."""
    inside = {box.watcher, *processes.descendants(box.watcher)}
    for pid in processes.all_pids():
        with suppress(OSError):  # ended meanwhile, or not ours to look at
            if processes.in_same_pid_namespace(pid, box.init):
                inside.add(pid)
    return [*(Path(f"/proc/{pid}") for pid in inside), control_groups() / f"nometal-ipi.{box.watcher}"]


def outside() -> dict[str, object]:
    """What a sandbox could leave on the machine."""
    listed = subprocess.run(["ip", "-o", "link"], check=True, text=True, capture_output=True).stdout
    temporary = {path.name for path in Path("/tmp").iterdir() if path.name.startswith("nspawn")}  # noqa: S108 - read only
    return {
        "links": listed.count("\n"),
        "temporary": temporary,
        "nspawn": sorted(Path("/run/systemd/nspawn").rglob("*")),
        "mounts": [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(cache_dir()) in line],
        "mountpoint": list((cache_dir() / "mnt").iterdir()),
    }


@contextmanager
def killed_in_the_end(command: list[str], **environment: str) -> Iterator[subprocess.Popen[str]]:
    variables = {**os.environ, "PYTHONPATH": str(TESTS), **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        try:
            yield process
        finally:
            process.kill()


def owned(owner: subprocess.Popen[str]) -> list[Sandbox]:
    assert owner.stdout is not None
    names = owner.stdout.readline().split()
    return [box for kind in KINDS for box in sandbox.running(kind) if box.name in names]


@pytest.mark.parametrize("victim", ["owner", "watcher", "init"])
def test_nothing_is_left_when_this_is_killed(victim: str) -> None:
    with lab_host.start(layer="bare"):  # so that the mount point exists
        before = outside()
    with killed_in_the_end([sys.executable, "-c", OWNER]) as owner:
        boxes = owned(owner)
        left = [path for box in boxes for path in traces(box)]
        for pid in {owner.pid} if victim == "owner" else {getattr(box, victim) for box in boxes}:
            os.kill(pid, signal.SIGKILL)
    assert len(boxes) == 2
    assert len(left) > 15
    groups = [path for path in left if path.parent != Path("/proc")]
    wait_until_gone([path for path in left if path not in groups])
    if victim == "watcher":  # nobody is left to remove its empty control group but the next sandbox
        lab_host.start(layer="bare").destroy()
    wait_until_gone(groups)
    assert outside() == before


def test_nothing_is_left_when_a_test_ends_as_it_should() -> None:
    with lab_host.start(layer="bare", mirror=True) as host:
        left = traces(host.sandbox)
    wait_until_gone(left)  # processes that have ended are listed until they are reaped


def test_a_host_without_an_owner_lives_on() -> None:
    script = "from support import lab_host; print(lab_host.start(layer='bare', owner=None).name)"
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, text=True, capture_output=True, env=environment)
    host = lab_host.find(done.stdout.strip())
    assert host is not None
    with host:
        assert host.run("true").returncode == 0
        left = traces(host.sandbox)
    wait_until_gone(left)  # processes that have ended are listed until they are reaped


def test_a_killed_build_of_a_tree_leaves_no_tree_and_no_process(tmp_path: Path) -> None:
    script = "from support import lab_trees; lab_trees.tree('bookworm', 'bare')"
    unfinished = tmp_path / "nometal-ipi/trees/bookworm-bare.building"
    with killed_in_the_end([sys.executable, "-c", script], XDG_CACHE_HOME=str(tmp_path)) as builder:
        wait_until("it is being built", lambda: builder.poll() is not None or (unfinished / "debootstrap").exists())
        assert builder.poll() is None
        inside = [Path(f"/proc/{pid}") for pid in processes.descendants(builder.pid)]
    assert len(inside) > 3
    wait_until_gone(inside)
    assert [path.name for path in unfinished.parent.iterdir()] == [unfinished.name]
