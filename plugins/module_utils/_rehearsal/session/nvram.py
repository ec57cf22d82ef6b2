# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' VMs as a rehearsal finds them and leaves them: off, with blank disks and the NVRAM that they had."""

from __future__ import annotations

import shutil
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._observe.node_vms import NodeVm


class NvramKeeper:
    """The NVRAM of VMs from before the rehearsal, which replaces what their firmware writes meanwhile."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, vm: NodeVm) -> None:
        files.own_directory(self._directory, 0o700)
        if vm.nvram and Path(vm.nvram).exists():
            shutil.copy2(vm.nvram, self._directory / vm.vm_name)

    def put_back(self, vm: NodeVm) -> None:
        kept = self._directory / vm.vm_name
        if vm.nvram and kept.exists():
            files.write_into(Path(vm.nvram), kept.read_bytes())
        elif vm.nvram:
            Path(vm.nvram).unlink(missing_ok=True)
