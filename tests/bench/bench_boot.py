# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot of the rehearsal's image until its agent runs, beside the least UEFI Linux: a kernel and busybox.

Without KVM, from the same drive, by the same boot loader; in seconds of the processor.

PYTHONPATH=playbooks/collections python3 tests/bench/bench_boot.py
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import loaders
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.tree import Tree

ROOT = Path(__file__).parents[2]
OVMF = Path("/usr/share/OVMF")
RUNS = 3
MOST_TIMES, LONGEST_BOOT = 1.4, 120
OURS, LEAST = "rehearsal: node started", "least: started"
PIPES: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.DEVNULL,  # qemu says there that it was ended
    "text": True,
    "errors": "replace",
}
INIT = f"""#!/bin/busybox sh
/bin/busybox echo {LEAST}
while :; do /bin/busybox sleep 9; done
"""


def shipped_image(directory: Path) -> Path:
    from support import lab_host, rehearsal_image  # noqa: PLC0415 - its place is known only now

    tree = rehearsal_image.tree("bookworm", lambda: lab_host.start(mirror=True))
    found = tree.glob(f"{rehearsal_image.IN_HOST}/image-*/node.iso")
    return Path(shutil.copy(min(found, key=lambda iso: iso.stat().st_size), directory / "ours.iso"))


def least_image(directory: Path, shipped: Path) -> Path:
    """The same medium with another system on it."""
    from support import guest_image  # noqa: PLC0415 - as above

    guest, iso, tree = guest_image.image(), directory / "least.iso", Tree()
    tree.file("/init", INIT.encode(), 0o755)
    initramfs = directory / "initramfs"
    initramfs.write_bytes((guest / "initramfs").read_bytes() + tree.archive())
    command = ["xorriso", "-indev", str(shipped), "-outdev", str(iso), "-boot_image", "any", "replay"]
    files = ((guest / "kernel", loaders.KERNEL), (initramfs, loaders.INITRAMFS))
    command += [word for source, place in files for word in ("-update", str(source), place)]
    subprocess.run(command, check=True, capture_output=True)
    return iso


def boot_seconds(iso: Path, until: str) -> float:
    """Of the processor, all of qemu's."""
    variables = iso.with_suffix(".vars")
    shutil.copy(OVMF / "OVMF_VARS_4M.fd", variables)
    flash = "if=pflash,format=raw"
    command = [
        *("timeout", str(LONGEST_BOOT), "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-cpu", "max"),
        *("-m", "512", "-nodefaults", "-display", "none", "-serial", "stdio"),
        *("-drive", f"{flash},readonly=on,file={OVMF / 'OVMF_CODE_4M.fd'}", "-drive", f"{flash},file={variables}"),
        *("-drive", f"if=none,id=cd,media=cdrom,readonly=on,format=raw,file={iso}"),
        *("-device", "virtio-scsi-pci", "-device", "scsi-cd,drive=cd,bootindex=1"),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, **PIPES) as vm:
        assert vm.stdout
        came = any(until in line for line in vm.stdout)
        vm.terminate()
    if not came:
        raise RuntimeError(f"{iso.name} did not boot in {LONGEST_BOOT} s.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    sys.path[:0] = [str(ROOT / "tests")]
    with tempfile.TemporaryDirectory() as place:
        ours = shipped_image(Path(place))
        least = least_image(Path(place), ours)
        pairs = [(boot_seconds(ours, OURS), boot_seconds(least, LEAST)) for _run in range(RUNS)]
    own, other = (min(times) for times in zip(*pairs))
    sys.stdout.write(f"boot of the rehearsal's image: {own:.1f} s; of a kernel with busybox {other:.1f} s; ")
    sys.stdout.write(f"ratio {own / other:.2f} (limit {MOST_TIMES})\n")
    return 0 if own / other <= MOST_TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
