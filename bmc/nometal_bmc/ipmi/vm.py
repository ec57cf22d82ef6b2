# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a BMC does with its VM. Nothing else of this package touches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nometal_bmc.machine import boot, firmware

if TYPE_CHECKING:
    from nometal_bmc.broker.client import Machines


class Vm:
    """A node's VM."""

    def __init__(self, domains: Machines, uuid: str) -> None:
        self._domains = domains
        self._uuid = uuid

    def is_on(self) -> bool:
        return self._domains.active(self._uuid)

    def reset(self, reset_type: str) -> None:
        """Switch it, by a word of Redfish."""
        self._domains.reset(self._uuid, reset_type)

    def power_restore(self) -> str:
        return self._domains.power_restore(self._uuid)

    def set_power_restore(self, policy: str) -> None:
        self._domains.set_power_restore(self._uuid, policy)

    def serial(self) -> str:
        """As the guest sees it: the UUID, unless the definition has another."""
        root = self._domains.read(self._uuid)
        return root.findtext("sysinfo/system/entry[@name='serial']") or self._uuid

    def boot_override(self) -> tuple[boot.Override, bool]:
        """What is to boot instead of the first device, and whether the VM has UEFI."""
        root, live = self._domains.read_both(self._uuid)
        return boot.get(root), firmware.mode(firmware.shown(root, live)) == "UEFI"

    def set_boot_override(self, override: boot.Override) -> None:
        wish = boot.BootWish(target=override.target, enabled=override.enabled, forgets_uri=True)
        self._domains.change_boot(self._uuid, wish)
