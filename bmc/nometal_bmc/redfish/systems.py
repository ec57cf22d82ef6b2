# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sushy-tools' views ask its drivers, answered by the broker and for the lab's VMs only.

Each class has what those views use that are not replaced: they only read. What is overridden is listed in the README.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import not_found

if TYPE_CHECKING:
    from nometal_bmc.broker.client import Machines


class Systems:
    """What the lab's VMs are made of."""

    def __init__(self, domains: Machines) -> None:
        self._domains = domains

    @property
    def systems(self) -> list[str]:
        """Those that the account of this request may see."""
        return [uuid for uuid in self._domains.existing() if _visible(uuid)]

    def uuid(self, identity: str) -> str:
        if not _visible(identity):  # names have become UUIDs before they come here
            raise not_found(f"System {identity}")
        self._domains.active(identity)  # it is there, or that is refused
        return identity

    def get_simple_storage_collection(self, identity: str) -> dict[str, dict[str, Any]]:
        """Disks by their bus; also those that are in no pool of libvirt."""
        uuid = self.uuid(identity)
        controllers: dict[str, dict[str, Any]] = defaultdict(lambda: {"DeviceList": []})
        sizes = self._domains.capacities(uuid)
        for target in self._domains.read_present(uuid).findall("devices/disk[@device='disk']/target"):
            bus, name = target.get("bus", ""), target.get("dev", "")
            controllers[bus].update(Id=bus, Name=bus)
            # As text, for its template writes down what it is given, and null is not None.
            controllers[bus]["DeviceList"].append({"Name": name, "CapacityBytes": json.dumps(sizes.get(name))})
        return dict(controllers)  # without its habit of making what is asked for


class Nothing:
    """Collections that are empty: the disks that there are stand in SimpleStorage."""

    def get_storage_col(self, _identity: str) -> list[dict[str, Any]]:
        return []

    def get_drives(self, _identity: str, _storage_id: str) -> list[dict[str, Any]]:
        return []

    def get_volumes_col(self, _identity: str, _storage_id: str) -> list[dict[str, Any]]:
        return []


def _visible(uuid: str) -> bool:
    own = flask.g.get("systems")
    return own is None or uuid in own
