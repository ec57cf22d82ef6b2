# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, UUIDs, MACs and serial numbers that follow from the lab's name alone."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_INTERFACE_NAME, LONGEST_SERIAL

NAMESPACE = uuid.UUID("0a44ce3f-c224-5ef3-b428-d53b5032f27a")
"""Must not change: every UUID, MAC and serial number of every lab depends on it."""

MAC_PREFIX = "52:54:00"
"""The prefix that libvirt uses by default, as for the installer's bootstrap VM."""

POOL_DIRECTORY = "/var/lib/libvirt/images"
"""SELinux and AppArmor allow guests to read it."""

HASH_LENGTH = 6


@dataclass(frozen=True)
class Identity:
    lab: str

    @cached_property
    def uuid(self) -> uuid.UUID:
        return uuid.uuid5(NAMESPACE, self.lab)

    def uuid_of(self, thing: str) -> str:
        return str(uuid.uuid5(self.uuid, thing))

    def mac_of(self, thing: str) -> str:
        derived = uuid.uuid5(self.uuid, f"mac/{thing}").bytes[:3]
        return ":".join([MAC_PREFIX, *(f"{byte:02x}" for byte in derived)])

    def serial_of(self, thing: str) -> str:
        return f"NM{uuid.uuid5(self.uuid, f'serial/{thing}').hex[: LONGEST_SERIAL - 2].upper()}"

    @property
    def prefix(self) -> str:
        """Of the names in libvirt."""
        return f"nometal-{self.lab}"

    @property
    def media_pool(self) -> str:
        """Of the BMCs' virtual media. The doctor refuses a lab whose own pool would have this name."""
        return f"{self.prefix}-media"

    def vm_name(self, node: str) -> str:
        return f"{self.lab}-{node}"

    @property
    def network_bridge(self) -> str:
        return self._interface("nm-")

    @property
    def veth_ends(self) -> tuple[str, str]:
        """On the libvirt network's bridge, and on the bridge of the nodes."""
        return self._interface("nmn-"), self._interface("nmb-")

    def _interface(self, prefix: str) -> str:
        """Unique per lab and use: prefixes differ, and lab names have no underscore."""
        if len(prefix + self.lab) <= LONGEST_INTERFACE_NAME:
            return prefix + self.lab
        digest = hashlib.sha256(self.lab.encode()).hexdigest()[:HASH_LENGTH]
        left = LONGEST_INTERFACE_NAME - len(prefix) - len(digest) - 1
        return f"{prefix}{self.lab[:left]}_{digest}"


POOLS = {"storage-pool": "", "media-pool": "-media"}
"""Suffixes of the pools' names, by the key from which their UUIDs are derived."""


def owner_of_pool(name: str, uuid_text: str) -> str:
    """The lab whose pool has this name and UUID. The UUID is the only mark of a pool."""
    for thing, behind in POOLS.items():
        lab = name[len(Identity("").prefix) : len(name) - len(behind)]
        if name == f"{Identity(lab).prefix}{behind}" and uuid_text == Identity(lab).uuid_of(thing):
            return lab
    return ""
