# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node finds the disk to install on."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import MOST_DISK
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import key
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB


@dataclass(frozen=True)
class RootDeviceHints:
    """Which disk OpenShift is installed on, with the installer's names."""

    deviceName: str | None = key(  # noqa: N815 - the installer's key
        types.DEVICE, "Device. Disks of one bus may change names from boot to boot: with several, use `serialNumber`."
    )
    hctl: str | None = key(types.WORDS.like("0:0:0:0"), "SCSI address (scsi and sata). Linux chooses the first number.")
    model: str | None = key(types.WORDS.like("QEMU HARDDISK"), "Model, or part of it.")
    vendor: str | None = key(types.WORDS.like("QEMU"), "Vendor, or part of it.")
    serialNumber: str | None = key(types.WORDS.like("disk-0001"), "Serial number.", derived="of the first disk")  # noqa: N815
    minSizeGigabytes: int | None = key(Whole(1, MOST_DISK // GIB), "Least size in GiB.")  # noqa: N815
    wwn: str | None = key(
        types.WORDS.like("nvme.1b36-6469736b2d30303031-51454d55204e564d65204374726c-00000001"),
        "World wide name (nvme only).",
    )
    rotational: bool | None = key(
        YesNo(), "Rotational or not. Linux reports true for every virtio disk and false for every nvme disk."
    )
