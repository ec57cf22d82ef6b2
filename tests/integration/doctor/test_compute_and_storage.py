# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from .conftest import Examine

MEMINFO = """as_file /proc/meminfo <<'END'
MemTotal:        {total} kB
MemAvailable:    {available} kB
HugePages_Total:       0
END
"""
MIB = 1024
POOL = "/var/lib/libvirt/images"
OWN = f"{POOL}/nometal-demo"
POOL_OF = "mkdir /etc/libvirt/storage; echo '<pool><name>x</name><uuid>{}</uuid></pool>' > /etc/libvirt/storage/x.xml;"


@pytest.mark.parametrize(
    ("total", "available", "install", "status"),
    [
        (8192, 8000, True, "ok"),
        (8192, 7000, True, "warning"),
        (8192, 6000, True, "blocker"),
        (600, 500, False, "warning"),
        (600, 550, False, "ok"),
        (400, 390, False, "blocker"),
    ],
)
def test_memory(examine: Examine, total: int, available: int, install: bool, status: str) -> None:
    found = examine(MEMINFO.format(total=total * MIB, available=available * MIB), install=install)["memory"]
    assert found[0] == status, found


def test_memory_that_the_labs_own_vms_hold_counts_as_free(examine: Examine) -> None:
    running = """mkdir -p /run/libvirt/qemu
    (exec -a qemu python3 -c 'import signal; held = bytearray(200 << 20); open("/run/up", "w"); signal.pause()' \\
        guest=demo-master-0, ) & echo $! > /run/libvirt/qemu/demo-master-0.pid
    echo 1 > /run/libvirt/qemu/stranger.pid
    until [ -e /run/up ]; do sleep 0.02; done
    """
    status, text = examine(running)["memory"]
    assert status == "ok"
    held = int(text.partition("VMs hold ")[2].partition(" MiB")[0])
    assert 200 <= held <= 260


@pytest.mark.parametrize("garbage", ["", "MemTotal: many kB", "\\0\\377", "MemTotal: 1 kB"])
def test_garbage_in_proc(examine: Examine, garbage: str) -> None:
    status, text = examine(f"printf '{garbage}' | as_file /proc/meminfo")["memory"]
    assert status == "warning"
    assert text.startswith("could not be measured")


@pytest.mark.parametrize(
    ("setup", "status", "text"),
    [
        ("", "ok", "does not exist yet"),
        (f"mkdir -p {OWN}/lost+found", "ok", "is empty"),
        (f"mkdir -p {OWN}/lost+found; touch {OWN}/a {OWN}/.b", "blocker", "has files of others: .b, a "),
        (POOL_OF.format("stranger") + f"mkdir {OWN}; touch {OWN}/a", "blocker", "has files of others: a "),
        (POOL_OF.format("p") + f"mkdir {OWN}; touch {OWN}/a", "ok", "belongs to this lab"),
        (f"touch {OWN}", "blocker", "must be a directory"),
        (f"mkdir -p {OWN}-elsewhere; ln -s {OWN}-elsewhere {OWN}", "blocker", "found a symbolic link"),
        (f"ln -s /nowhere {OWN}", "blocker", "found a symbolic link"),
    ],
)
def test_the_pools_directory(examine: Examine, setup: str, status: str, text: str) -> None:
    found = examine(setup)["pool_directory"]
    assert found[0] == status, found
    assert text in found[1]


def test_room_in_the_pool(examine: Examine) -> None:
    answer = examine()
    assert answer["pool_space"][0] == "ok", answer["pool_space"]
    assert f"3.0 GiB free in {POOL}" in answer["pool_space"][1]
    assert answer["fsync"][0] == "ok"


def test_a_full_pool(examine: Examine) -> None:
    full = f"mount -t tmpfs -o size=4m tmpfs {POOL}; dd if=/dev/zero of={POOL}/filler bs=64k 2>/dev/null || true"
    answer = examine(full)
    assert answer["pool_space"][0] == "blocker"
    assert answer["fsync"][0] == "warning"
    assert "No space left" in answer["fsync"][1]


def test_what_the_lab_has_written_already_is_not_asked_for_again(examine: Examine) -> None:
    half = (
        f"mount -t tmpfs -o size=1200m tmpfs {POOL}; mkdir {POOL}/nometal-demo;"
        f"fallocate -l 1000m {POOL}/nometal-demo/disk"
    )
    assert examine(half)["pool_space"][0] == "warning"
    assert examine(half.replace("nometal-demo", "another"))["pool_space"][0] == "blocker"


def test_a_read_only_pool(examine: Examine) -> None:
    status, text = examine(f"mount -t tmpfs -o ro tmpfs {POOL}")["fsync"]
    assert status == "warning"
    assert "Read-only file system" in text


def test_the_pool_and_the_installer_on_one_file_system(examine: Examine) -> None:
    both = examine("mount -t tmpfs -o size=30g tmpfs /var/lib/libvirt", install=True, disk_bytes=20 << 30)
    assert both["pool_space"][0] == "blocker"
    assert "bootstrap VM" in both["pool_space"][1]
    apart = (
        "mkdir /var/lib/libvirt/openshift-images; mount -t tmpfs -o size=40g tmpfs /var/lib/libvirt/openshift-images"
    )
    answer = examine(f"mount -t tmpfs -o size=30g tmpfs /var/lib/libvirt; {apart}", install=True, disk_bytes=20 << 30)
    assert (answer["pool_space"][0], answer["installer_space"][0]) == ("ok", "ok")
    small = examine(apart.replace("40g", "5g"), install=True)
    assert small["installer_space"][0] == "blocker"


def test_nothing_stays_behind(examine: Examine) -> None:
    look = "find /var/lib/libvirt /etc/libvirt /dev/shm/temporary"
    compare = (
        f'sh -c \'mkdir /dev/shm/temporary; {look} > /dev/shm/before; TMPDIR=/dev/shm/temporary "$@" > /dev/shm/out; '
        f"{look} | diff /dev/shm/before - >&2 && cat /dev/shm/out'"
    )
    assert examine("mount -t tmpfs tmpfs /dev/shm", wrapper=f"{compare} --").result["changed"] is False
