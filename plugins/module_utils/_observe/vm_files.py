# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a VM beside its disks, which libvirt and QEMU keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

NVRAM = Path("/var/lib/libvirt/qemu/nvram")
NVRAM_ENDINGS = ("fd", "qcow2")
TPMS = Path("/var/lib/libvirt/swtpm")


def nvram_of(root: Any) -> list[Path]:
    """Where its UEFI variables may be.

    Where older versions of libvirt choose the firmware, they do not write into the definition which file it has.
    """
    named = root.findtext("os/nvram", default="").strip()
    usual = (f"{NVRAM}/{root.findtext('name')}_VARS.{ending}" for ending in NVRAM_ENDINGS)
    return [Path(path) for path in dict.fromkeys([named, *usual]) if path]


def tpm_of(root: Any) -> Path:
    """The directory with the state of its TPM."""
    return TPMS / root.findtext("uuid", default="")
