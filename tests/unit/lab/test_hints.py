# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root device hints that a disk of the node can match, and those that none can."""

from __future__ import annotations

import pytest
import yaml
from unit.lab.samples import errors_of, model_of, spec_of

from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules.hints import BUSES
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import DiskBus

SCSI = "[{size: 20GiB, serial: one}]"
TWO_SCSI = "[{size: 20GiB, serial: one}, {size: 40GiB, serial: two, rotational: true}]"
MANY_SCSI = f"[{', '.join(['{size: 20GiB}'] * 9)}]"
SATA = "[{size: 20GiB, bus: sata, serial: one}]"
VIRTIO = "[{size: 20GiB, bus: virtio, serial: one}]"
NVME = "[{size: 20GiB, bus: nvme, serial: one}]"
MIXED = "[{size: 20GiB, bus: nvme, serial: one}, {size: 40GiB, serial: two}, {size: 40GiB, bus: sata, serial: three}]"
NVME_WWN = "nvme.1b36-6f6e65-51454d55204e564d65204374726c-00000001"
PATH = "lab_spec.nodes.overrides.control-plane-0.root_device_hints"


def test_every_bus_says_how_linux_sees_its_disks() -> None:
    assert set(BUSES) == set(DiskBus)


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
            ["deviceName: must be that of a disk of this node, /dev/sda (got '/dev/nvme0n1')"],
        ),
        (
            SCSI,
            "{deviceName: /dev/vda}",
            ["deviceName: must be that of a disk of this node, /dev/sda (got '/dev/vda')"],
        ),
        (
            TWO_SCSI,
            "{deviceName: /dev/sdq}",
            ["deviceName: must be that of a disk of this node, /dev/sda, /dev/sdb (got '/dev/sdq')"],
        ),
        (
            SCSI,
            "{deviceName: /dev/sda1}",
            ["deviceName: must be that of a disk of this node, /dev/sda (got '/dev/sda1')"],
        ),
        (
            SCSI,
            "{hctl: '9:9:9:9'}",
            ["hctl: must be that of a disk of this node, N:0:0:0, where Linux chooses N (got '9:9:9:9')"],
        ),
        (
            TWO_SCSI,
            "{hctl: '0:0:0:2'}",
            ["hctl: must be that of a disk of this node, N:0:0:0, N:0:0:1, where Linux chooses N (got '0:0:0:2')"],
        ),
        (
            SATA,
            "{hctl: '0:0:0:1'}",
            ["hctl: must be that of a disk of this node, N:0:0:0, where Linux chooses N (got '0:0:0:1')"],
        ),
        (VIRTIO, "{hctl: '0:0:0:0'}", ["hctl: must be left out: the disks of this node have none (got '0:0:0:0')"]),
        (
            SCSI,
            "{wwn: '0x5000c500a1b2c3d4'}",
            ["wwn: must be left out: the disks of this node have none (got '0x5000c500a1b2c3d4')"],
        ),
        (
            NVME,
            "{wwn: '0x5000c500a1b2c3d4'}",
            [f"wwn: must be that of a disk of this node, {NVME_WWN} (got '0x5000c500a1b2c3d4')"],
        ),
        (
            SCSI,
            "{vendor: ATA, model: SAMSUNG}",
            [
                "model: must be that of a disk of this node, QEMU HARDDISK (got 'SAMSUNG')",
                "vendor: must be that of a disk of this node, QEMU (got 'ATA')",
            ],
        ),
        (VIRTIO, "{model: QEMU}", ["model: must be left out: the disks of this node have none (got 'QEMU')"]),
        (
            MIXED,
            "{model: SAMSUNG}",
            ["model: must be that of a disk of this node, QEMU NVMe Ctrl, QEMU HARDDISK (got 'SAMSUNG')"],
        ),
        (SCSI, "{rotational: true}", ["rotational: must be that of a disk of this node, false (got true)"]),
        (VIRTIO, "{rotational: false}", ["rotational: must be that of a disk of this node, true (got false)"]),
        (SCSI, "{serialNumber: two}", ["serialNumber: must be that of a disk of this node, one (got 'two')"]),
        # Ironic's gigabyte has 1024**3 bytes.
        (
            SCSI,
            "{minSizeGigabytes: 21}",
            ["minSizeGigabytes: must be at most 20, the size of the largest disk (got 21)"],
        ),
    ],
)
def test_hints_that_no_disk_matches(disks: str, hints: str, expected: list[str]) -> None:
    assert errors_of(spec_of(written(disks, hints))) == [f"{PATH}.{text}" for text in expected]


def test_hints_that_only_different_disks_match() -> None:
    found = errors_of(spec_of(written(TWO_SCSI, "{serialNumber: one, minSizeGigabytes: 40}")))
    different = "different disks match serialNumber and minSizeGigabytes"
    assert found == [f"{PATH}: one disk must match all hints: {different}"]


def test_hints_are_not_judged_by_disks_that_cannot_be_read() -> None:
    found = errors_of(spec_of(written("[{size: 20, serial: mine}]", "{serialNumber: mine}")))
    assert found == ["lab_spec.nodes.overrides.control-plane-0.disks[0].size: must be a size, such as 16GiB (got 20)"]
