# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot order of a running machine. libvirt changes that only with its newest versions, QEMU always could."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import libvirt
import libvirt_qemu

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG = logging.getLogger(__name__)
LAST = -1  # takes no part in the order


def set_boot_indexes(domain: libvirt.virDomain, orders: Mapping[str, int | None]) -> None:
    """Set by which order the machine boots when it is reset; the devices are named by their aliases.

    Without that a guest that reboots by itself does so by the order that it was started with: no reason to fail.
    """
    try:
        for name in orders:  # first free all numbers: no two may have the same at any time
            _set(domain, name, LAST)
        for name, order in orders.items():
            if order is not None:
                _set(domain, name, order)
    except (libvirt.libvirtError, ValueError) as error:
        LOG.warning("%s: the boot order cannot be changed before the next power cycle: %s", domain.name(), error)


def _set(domain: libvirt.virDomain, name: str, order: int) -> None:
    where = {"path": f"/machine/peripheral/{name}", "property": "bootindex", "value": order}
    command = json.dumps({"execute": "qom-set", "arguments": where})
    answer: dict[str, Any] = json.loads(libvirt_qemu.qemuMonitorCommand(domain, command, 0))
    if "error" in answer:
        raise ValueError(f"{name}: {answer['error']['desc']}")
