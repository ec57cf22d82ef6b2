# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, UUIDs, MACs and serial numbers that follow from the lab's name alone."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from functools import cached_property

from ansible_collections.nometal.ipi.plugins.module_utils._core.types import LONGEST_INTERFACE_NAME, LONGEST_SERIAL

NAMESPACE = uuid.UUID("0a44ce3f-c224-5ef3-b428-d53b5032f27a")
"""Never to change: every UUID, MAC and serial number of every lab hangs on it."""

MAC_PREFIX = "52:54:00"
"""What libvirt gives a VM by itself, and so what the installer's bootstrap VM has."""

POOL_DIRECTORY = "/var/lib/libvirt/images"
"""SELinux and AppArmor let guests read there."""

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
        """Of everything that libvirt knows by name."""
        return f"nometal-{self.lab}"

    @property
    def media_pool(self) -> str:
        """Of the BMCs' virtual media. A lab may be called so that its own pool has this name: the doctor refuses it."""
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
        """A prefix, not a suffix, tells the kinds apart, and no lab name has an underscore: no two labs meet."""
        if len(prefix + self.lab) <= LONGEST_INTERFACE_NAME:
            return prefix + self.lab
        digest = hashlib.sha256(self.lab.encode()).hexdigest()[:HASH_LENGTH]
        room = LONGEST_INTERFACE_NAME - len(prefix) - len(digest) - 1
        return f"{prefix}{self.lab[:room]}_{digest}"


POOLS = {"storage-pool": "", "media-pool": "-media"}
"""What follows the lab's prefix in the names of its pools, by what their UUIDs are derived from."""


def owner_of_pool(name: str, uuid_text: str) -> str:
    """The lab whose pool has this name and this UUID, which is the only mark that a pool carries."""
    for thing, behind in POOLS.items():
        lab = name[len(Identity("").prefix) : len(name) - len(behind)]
        if name == f"{Identity(lab).prefix}{behind}" and uuid_text == Identity(lab).uuid_of(thing):
            return lab
    return ""
