# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
MODULE = ROOT / "plugins" / "modules" / "host_doctor.py"
NETWORK_UUID = "11111111-1111-1111-1111-111111111111"

LAB: dict[str, Any] = {
    "name": "demo",
    "domain": "demo.example.test",
    "memory_mib": 512,
    "vcpus": 2,
    "disk_bytes": 2 * 1024**3,
    "storage_pool": {"name": "nometal-demo", "uuid": "p", "path": "/var/lib/libvirt/images/nometal-demo"},
    "networks": [
        {
            "name": "demo",
            "uuid": NETWORK_UUID,
            "bridge": "demo-m",
            "addresses": [{"cidr": "192.168.126.0/24"}, {"cidr": "fd00:126::/64"}],
        }
    ],
    "vms": [{"vm_name": "demo-master-0", "uuid": "v"}],
    "bridges": ["baremetal"],
    "own_links": ["demo-veth"],
    "own_processes": ["nometal-bmc@demo"],
    "ports": [{"address": "192.168.126.1", "port": 8000}],
}

# A host of its own: its network, its libvirt directories, its /run and /dev; all of it gone with the last process.
PRIVATE_HOST = """
mount -t sysfs sysfs /sys
mount -t tmpfs -o size=3g tmpfs /var/lib/libvirt
mount -t tmpfs tmpfs /etc/libvirt
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /etc/libvirt/qemu/networks /run/libvirt/network /run/sources /run/devices
mkdir -p /var/lib/libvirt/images
for device in null zero random urandom; do cp -a /dev/$device /run/devices/; done
mkdir /run/devices/shm
mount --bind /run/devices /dev
as_file() { local source=$(mktemp -p /run/sources); cat > "$source"; chmod 644 "$source"; mount --bind "$source" "$1"; }
ip link set lo up
"""


@dataclass(frozen=True)
class Answer:
    result: dict[str, Any]

    def __getitem__(self, check: str) -> tuple[str, str]:
        """The status of a check, and all that it says."""
        row = next(row for row in self.result["checks"] if row["check"] == check)
        return row["status"], f"{row['measured']} {row['advice']}"


Examine = Callable[..., Answer]


def run_doctor(setup: str = "", *, wrapper: str = "", **args: Any) -> Answer:
    """Run the module itself on a private host that shell commands have made good or bad."""
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": {**LAB, **args}})
    script = f"set -e\n{PRIVATE_HOST}\n{setup}\nexec {wrapper} {sys.executable} {MODULE}"
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script],
        input=arguments,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "playbooks" / "collections")},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return Answer(json.loads(done.stdout))


@pytest.fixture
def examine() -> Examine:
    return run_doctor
