# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The BIOS attributes. They are kept and read back; no VM behaves otherwise because of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ATTRIBUTES", "DEFAULTS", "Attribute"]

SWITCH = ("Enabled", "Disabled")


@dataclass(frozen=True)
class Attribute:
    """One of them, as the registry describes it."""

    name: str
    display_name: str
    help_text: str
    default: Any
    values: tuple[str, ...] = ()
    """Of an enumeration."""
    lowest: int = 0
    highest: int = 0
    """Of a number, or the length of a text."""

    @property
    def type(self) -> str:
        if self.values:
            return "Enumeration"
        if isinstance(self.default, str):
            return "String"
        return "Boolean" if isinstance(self.default, bool) else "Integer"

    def takes(self, value: object) -> bool:
        if self.values:
            return value in self.values
        if isinstance(self.default, str):
            return isinstance(value, str) and self.lowest <= len(value) <= self.highest and value.isprintable()
        if isinstance(self.default, bool) or isinstance(value, bool):  # True is a number in Python
            return isinstance(self.default, bool) and isinstance(value, bool)
        return isinstance(value, int) and self.lowest <= value <= self.highest

    @property
    def range(self) -> str:
        """What it can be, in words."""
        if self.values:
            return ", ".join(self.values)
        texts = {
            "Boolean": "true or false",
            "Integer": f"a number from {self.lowest} to {self.highest}",
            "String": f"a text of {self.lowest} to {self.highest} characters",
        }
        return texts[self.type]


ATTRIBUTES = {
    attribute.name: attribute
    for attribute in (
        Attribute("AssetTag", "Asset Tag", "A text for the inventory of the owner.", "none", highest=32),
        Attribute("BootRetryCount", "Boot Retry Count", "How often the boot order is tried.", 3, highest=10),
        Attribute(
            "EmbeddedSata", "Embedded SATA", "Mode of the SATA controller.", "Ahci", ("Ata", "Ahci", "Raid", "Off")
        ),
        Attribute(
            "NicBoot1",
            "NIC 1 Boot",
            "Whether the first NIC takes part in booting.",
            "NetworkBoot",
            ("NetworkBoot", "Disabled"),
        ),
        Attribute("ProcHyperthreading", "Hyper-Threading", "Two threads on each core.", "Enabled", SWITCH),
        Attribute("ProcTurboMode", "Turbo Boost", "Higher frequencies under load.", "Enabled", SWITCH),
        Attribute("ProcVirtualization", "Virtualization Technology", "VMs on this system.", "Enabled", SWITCH),
        Attribute("QuietBoot", "Quiet Boot", "A logo in place of messages.", default=True),
        Attribute("Sriov", "SR-IOV", "Virtual functions of PCI devices.", "Enabled", SWITCH),
        Attribute(
            "WorkloadProfile",
            "Workload Profile",
            "What the system is tuned for.",
            "General",
            ("General", "Telco", "Virtualization"),
        ),
    )
}
DEFAULTS: dict[str, Any] = {name: attribute.default for name, attribute in ATTRIBUTES.items()}
