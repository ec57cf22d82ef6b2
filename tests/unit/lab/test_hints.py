# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root device hints that a disk of the node can match, and those that none can."""

from __future__ import annotations

import pytest
import yaml
from unit.lab.samples import errors_of, model_of, spec_of

SCSI = "[{size: 20GiB, serial: one}]"
TWO_SCSI = "[{size: 20GiB, serial: one}, {size: 40GiB, serial: two, rotational: true}]"
MANY_SCSI = f"[{', '.join(['{size: 20GiB}'] * 9)}]"
SATA = "[{size: 20GiB, bus: sata, serial: one}]"
VIRTIO = "[{size: 20GiB, bus: virtio, serial: one}]"
NVME = "[{size: 20GiB, bus: nvme, serial: one}]"
MIXED = "[{size: 20GiB, bus: nvme, serial: one}, {size: 40GiB, serial: two}, {size: 40GiB, bus: sata, serial: three}]"
NVME_WWN = "nvme.1b36-6f6e65-51454d55204e564d65204374726c-00000001"
PATH = "lab_spec.nodes.overrides.control-plane-0.root_device_hints"


def written(disks: str, hints: str) -> str:
    return f"nodes: {{overrides: {{control-plane-0: {{disks: {disks}, root_device_hints: {hints}}}}}}}"


@pytest.mark.parametrize(
    ("disks", "hints"),
    [
        (SCSI, "{deviceName: /dev/sda}"),
        (TWO_SCSI, "{deviceName: /dev/sdb}"),
        (TWO_SCSI, "{deviceName: /dev/sdb, serialNumber: one}"),
        (MIXED, "{deviceName: /dev/nvme0n1}"),
        (MIXED, "{deviceName: /dev/sdb}"),
        (VIRTIO, "{deviceName: /dev/vda}"),
        (SCSI, "{deviceName: /dev/disk/by-path/pci-0000:00:01.0-scsi-0:0:0:0}"),
        (SCSI, "{hctl: '0:0:0:0'}"),
        (TWO_SCSI, "{hctl: '6:0:0:1'}"),
        (SATA, "{hctl: '4:0:0:0'}"),
        (MANY_SCSI, "{hctl: '2:0:0:6'}"),
        (SCSI, "{vendor: qemu, model: hardDisk}"),
        (SATA, "{vendor: ATA, model: QEMU}"),
        (VIRTIO, "{vendor: '0x1af4', rotational: true}"),
        (NVME, "{model: NVMe Ctrl, rotational: false}"),
        (NVME, f"{{wwn: {NVME_WWN}}}"),
        (TWO_SCSI, "{rotational: true, minSizeGigabytes: 40}"),
        (SCSI, "{rotational: false}"),
        (SCSI, "{serialNumber: ONE, minSizeGigabytes: 20}"),
    ],
)
def test_hints_that_a_disk_matches(disks: str, hints: str) -> None:
    model = model_of(written(disks, hints))
    assert model["nodes"][0]["root_device_hints"] == yaml.safe_load(hints)


@pytest.mark.parametrize(
    ("disks", "hints", "expected"),
    [
        (
            SCSI,
            "{deviceName: /dev/nvme0n1}",
            ["deviceName: is /dev/nvme0n1, which no disk has; this node has /dev/sda"],
        ),
        (SCSI, "{deviceName: /dev/vda}", ["deviceName: is /dev/vda, which no disk has; this node has /dev/sda"]),
        (
            TWO_SCSI,
            "{deviceName: /dev/sdq}",
            ["deviceName: is /dev/sdq, which no disk has; this node has /dev/sda, /dev/sdb"],
        ),
        (SCSI, "{deviceName: /dev/sda1}", ["deviceName: is /dev/sda1, which no disk has; this node has /dev/sda"]),
        (
            SCSI,
            "{hctl: '9:9:9:9'}",
            ["hctl: is 9:9:9:9, which no disk has; this node has N:0:0:0, where Linux chooses N"],
        ),
        (
            TWO_SCSI,
            "{hctl: '0:0:0:2'}",
            ["hctl: is 0:0:0:2, which no disk has; this node has N:0:0:0, N:0:0:1, where Linux chooses N"],
        ),
        (
            SATA,
            "{hctl: '0:0:0:1'}",
            ["hctl: is 0:0:0:1, which no disk has; this node has N:0:0:0, where Linux chooses N"],
        ),
        (VIRTIO, "{hctl: '0:0:0:0'}", ["hctl: is 0:0:0:0, which no disk has; the disks of this node have none"]),
        (
            SCSI,
            "{wwn: '0x5000c500a1b2c3d4'}",
            ["wwn: is 0x5000c500a1b2c3d4, which no disk has; the disks of this node have none"],
        ),
        (
            NVME,
            "{wwn: '0x5000c500a1b2c3d4'}",
            [f"wwn: is 0x5000c500a1b2c3d4, which no disk has; this node has {NVME_WWN}"],
        ),
        (
            SCSI,
            "{vendor: ATA, model: SAMSUNG}",
            [
                "model: is SAMSUNG, which no disk has; this node has QEMU HARDDISK",
                "vendor: is ATA, which no disk has; this node has QEMU",
            ],
        ),
        (VIRTIO, "{model: QEMU}", ["model: is QEMU, which no disk has; the disks of this node have none"]),
        (
            MIXED,
            "{model: SAMSUNG}",
            ["model: is SAMSUNG, which no disk has; this node has QEMU NVMe Ctrl, QEMU HARDDISK"],
        ),
        (SCSI, "{rotational: true}", ["rotational: is true, which no disk has; this node has false"]),
        (VIRTIO, "{rotational: false}", ["rotational: is false, which no disk has; this node has true"]),
        (SCSI, "{serialNumber: two}", ["serialNumber: is two, which no disk has; this node has one"]),
        # Ironic's gigabyte has 1024**3 bytes.
        (
            SCSI,
            "{minSizeGigabytes: 21}",
            ["minSizeGigabytes: is 21, and the largest disk has 20; that or less is right"],
        ),
    ],
)
def test_hints_that_no_disk_matches(disks: str, hints: str, expected: list[str]) -> None:
    assert errors_of(spec_of(written(disks, hints))) == [f"{PATH}.{text}" for text in expected]


def test_hints_that_only_different_disks_match() -> None:
    found = errors_of(spec_of(written(TWO_SCSI, "{serialNumber: one, minSizeGigabytes: 40}")))
    right = "one disk must have them all"
    assert found == [f"{PATH}: has serialNumber and minSizeGigabytes, which different disks have; {right}"]


def test_hints_are_not_judged_by_disks_that_cannot_be_read() -> None:
    found = errors_of(spec_of(written("[{size: 20, serial: mine}]", "{serialNumber: mine}")))
    assert found == [
        "lab_spec.nodes.overrides.control-plane-0.disks[0].size: is 20, a number; a size is right, such as 16GiB"
    ]
