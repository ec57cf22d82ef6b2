# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hundred VMs with a disk each: made, looked at again, removed; beside qemu-img and plain libvirt-python in a loop.

PYTHONPATH=playbooks/collections:tests python3 tests/bench/bench_bmh_vm.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

MEASURE = "measure"
MANY, FEW = 100, 5
MOST_FOR_MANY = 0.2
SIZE = 120 * 1024**3
DIRECTORY = "/var/lib/libvirt/images/bench"
PREPARATION = f"""
virsh pool-define-as bench dir --target {DIRECTORY} && virsh pool-build bench && virsh pool-start bench &&
ip link add baremetal type bridge
"""
XML = f"""<domain type='qemu'><name>{{name}}</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os firmware='efi'><type machine='q35'>hvm</type></os><features><acpi/></features><devices>
<disk type='file'><driver name='qemu' type='qcow2'/><source file='{DIRECTORY}/{{name}}.qcow2'/>
<target dev='sda' bus='scsi'/></disk><controller type='scsi' model='virtio-scsi'/>
<disk type='file' device='cdrom'><target dev='sdb' bus='sata'/></disk>
<interface type='bridge'><mac address='52:54:00:00:00:{{at:02x}}'/><source bridge='baremetal'/></interface>
<serial type='pty'/></devices></domain>"""


def seconds(action: Callable[[], object]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def vm(at: int) -> dict[str, Any]:
    return {
        "vm_name": f"bench-{at}",
        "uuid": f"0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e{at:02x}",
        "vcpus": 1,
        "memory_mib": 128,
        "disks": [{"size_bytes": SIZE, "serial": f"BENCH{at}"}],
        "nics": [{"mac": f"52:54:00:00:00:{at:02x}", "bridge": "baremetal", "boot_order": 1}],
    }


def ours() -> dict[str, float]:
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator  # noqa: PLC0415 - only inside the sandbox

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.resource import LabVms  # noqa: PLC0415
    from ansible_collections.nometal.ipi.plugins.modules import bmh_vm  # noqa: PLC0415 - as above

    def run(count: int, **others: Any) -> dict[str, Any]:
        params = {"owner": "bench", "pool": "bench", "vms": [vm(at) for at in range(count)], **others}
        checked = ArgumentSpecValidator(bmh_vm.ARGUMENTS).validate(params)
        return LabVms.run(checked.validated_parameters, check_mode=False)

    run(FEW)
    few = min(seconds(lambda: run(FEW)) for _round in range(5))
    run(FEW, state="absent")
    figures = {"create": seconds(lambda: run(MANY))}
    figures["rerun"] = min(seconds(lambda: run(MANY)) for _round in range(5))
    figures["remove"] = seconds(lambda: run(MANY, state="absent"))
    return {**figures, "rerun of few": few}


def plain() -> dict[str, float]:
    import libvirt  # noqa: PLC0415 - only inside the sandbox

    connection = libvirt.open("qemu:///system")
    names = [f"plain-{at}" for at in range(MANY)]

    def create() -> None:
        for at, name in enumerate(names):
            image = f"{DIRECTORY}/{name}.qcow2"
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", image, str(SIZE)], check=True)
            connection.defineXML(XML.format(name=name, at=at))

    def look() -> None:
        for name in names:
            connection.lookupByName(name).XMLDesc()
            image = f"{DIRECTORY}/{name}.qcow2"
            subprocess.run(["qemu-img", "info", "--output", "json", image], check=True, capture_output=True)

    def remove() -> None:
        for name in names:
            connection.lookupByName(name).undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)
            Path(DIRECTORY, f"{name}.qcow2").unlink()

    return {"create": seconds(create), "rerun": min(seconds(look) for _round in range(2)), "remove": seconds(remove)}


def main() -> int:
    root = Path(__file__).parents[2]
    sys.path.append(str(root / "tests"))
    from support import private_libvirtd  # noqa: PLC0415 - its place is known only now

    with private_libvirtd.start() as libvirtd:
        libvirtd.run(["sh", "-c", PREPARATION])
        places = f"PYTHONPATH={root}/playbooks/collections"
        answer = libvirtd.run(["env", places, sys.executable, str(Path(__file__).resolve()), MEASURE]).stdout
    figures, yardstick = json.loads(answer)
    for name, unit in yardstick.items():
        own = figures[name]
        sys.stdout.write(f"{MANY} VMs, {name}: {own * 1000:.0f} ms; qemu-img and libvirt-python in a loop: ")
        sys.stdout.write(f"{unit * 1000:.0f} ms; ratio {own / unit:.2f}\n")
    more = figures["rerun"] - figures["rerun of few"]
    sys.stdout.write(f"rerun with {MANY} beside {FEW}: {more * 1000:+.0f} ms (limit {MOST_FOR_MANY * 1000:.0f})\n")
    return 0 if more <= MOST_FOR_MANY else 1


if __name__ == "__main__":
    if MEASURE in sys.argv:
        sys.stdout.write(json.dumps([ours(), plain()]))
        sys.exit(0)
    sys.exit(main())
