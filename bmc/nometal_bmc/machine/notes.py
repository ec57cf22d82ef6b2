# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a BMC remembers about its VM, kept in the VM itself: it goes with the VM, and nowhere else."""

from __future__ import annotations

from lxml import etree

from nometal_bmc.machine.definition import attributes, child

URI = "urn:nometal:ipi:bmc"
STATE = f"{{{URI}}}state"


def read(root: etree._Element) -> dict[str, str]:
    """All notes of a definition."""
    state = root.find(f"metadata/{STATE}")
    return {} if state is None else attributes(state)


def write(root: etree._Element, **notes: str | None) -> None:
    """Note these; None forgets one."""
    state = _state(root)
    for name, value in notes.items():
        if value is None:
            state.attrib.pop(name, "")
        else:
            state.set(name, value)


def _state(root: etree._Element) -> etree._Element:
    state = root.find(f"metadata/{STATE}")
    if state is None:
        state = etree.SubElement(child(root, "metadata"), STATE, nsmap={"bmc": URI})
    return state
