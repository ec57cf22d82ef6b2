# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four running nodes with disks of 120 GiB: how long they are down for a checkpoint and for its restore.

With a gibibyte on each disk beside disks with nothing on them: what a snapshot costs must not grow with the data.

PYTHONPATH=playbooks/collections:tests python3 tests/bench/bench_checkpoint.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.port import CheckpointPort

MEASURE = "measure"
NODES = 4
MOST_SECONDS = 10.0
SIZE = 120 * 1024**3
DIRECTORY = "/var/lib/libvirt/images/bench"
HOME = "/var/lib/libvirt/own"
PREPARATION = f"""
virsh pool-define-as bench dir --target {DIRECTORY} && virsh pool-build bench && virsh pool-start bench &&
ip link add baremetal type bridge
"""
DOWN = {"present": ("pause", "resume"), "restored": ("power off", "start")}
"""The steps with which nodes go down and come back."""


def vm(at: int) -> dict[str, Any]:
    return {
        "vm_name": f"bench-{at}",
        "uuid": f"0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e{at:02x}",
        "vcpus": 1,
        "memory_mib": 128,
        "firmware": "uefi",
        "disks": [{"name": f"bench-{at}.qcow2", "size_bytes": SIZE, "serial": f"BENCH{at}"}],
        "nics": [{"mac": f"52:54:00:00:00:{at:02x}", "bridge": "baremetal", "boot_order": 1}],
    }


def downtime(name: str, state: str) -> float:
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint import (  # noqa: PLC0415 - in the sandbox
        port,
        resource,
    )

    times: dict[str, tuple[float, float]] = {}
    apply = port.CheckpointPort.apply

    def timed(self: CheckpointPort, step: Step) -> None:
        began = time.monotonic()
        apply(self, step)
        times[step.verb] = began, time.monotonic()

    given = {"lab": "bench", "name": name, "home": HOME, "bmc_home": HOME, "libvirt_uri": "qemu:///system"}
    how = {"running": state == "present", "stop": state == "restored", "stop_timeout": 60}
    port.CheckpointPort.apply = timed  # type: ignore[method-assign]
    try:
        resource.LabCheckpoint.run({**given, **how, "state": state}, check_mode=False)
    finally:
        port.CheckpointPort.apply = apply  # type: ignore[method-assign]
    first, last = DOWN[state]
    return times[last][1] - times[first][0]


def measured() -> dict[str, dict[str, float]]:
    import libvirt  # noqa: PLC0415 - only inside the sandbox
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator  # noqa: PLC0415 - as above

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.resource import LabVms  # noqa: PLC0415
    from ansible_collections.nometal.ipi.plugins.modules import bmh_vm  # noqa: PLC0415 - as above

    params = {"owner": "bench", "pool": "bench", "vms": [vm(at) for at in range(NODES)]}
    LabVms.run(ArgumentSpecValidator(bmh_vm.ARGUMENTS).validate(params).validated_parameters, check_mode=False)
    connection = libvirt.open("qemu:///system")
    figures = {}
    for name in ("empty", "with-data"):
        for at in range(NODES):
            domain = connection.lookupByName(f"bench-{at}")
            if domain.isActive():
                domain.destroy()
            if name == "with-data":
                fill = [f"write -P {at + 1} {part}M 64M" for part in range(0, 16 * 1024, 1024)]
                words = [word for command in fill for word in ("-c", command)]
                subprocess.run(["qemu-io", *words, f"{DIRECTORY}/bench-{at}.qcow2"], check=True, capture_output=True)
            domain.create()
        figures[name] = {state: downtime(name, state) for state in ("present", "restored")}
    return figures


def main() -> int:
    root = Path(__file__).parents[2]
    sys.path.append(str(root / "tests"))
    from support import private_libvirtd  # noqa: PLC0415 - its place is known only now

    with private_libvirtd.start() as libvirtd:
        libvirtd.run(["sh", "-c", PREPARATION])
        places = f"PYTHONPATH={root}/playbooks/collections"
        program = ["env", places, sys.executable, str(Path(__file__).resolve()), MEASURE]
        figures = json.loads(libvirtd.run(program, timeout=600).stdout)
    for state, words in (("present", "for a checkpoint while they run"), ("restored", "for its restore")):
        empty, full = figures["empty"][state], figures["with-data"][state]
        sys.stdout.write(
            f"{NODES} nodes are down {words}: {full:.2f} s with a GiB on each disk (limit {MOST_SECONDS:.0f}); "
        )
        sys.stdout.write(f"{empty:.2f} s with nothing; ratio {full / empty:.2f}\n")
    return 0 if max(figures["with-data"].values()) <= MOST_SECONDS else 1


if __name__ == "__main__":
    if MEASURE in sys.argv:
        sys.stdout.write(json.dumps(measured()))
        sys.exit(0)
    sys.exit(main())
