# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of a lab's model that mean something to us, each equal to the text that it is elsewhere."""

from __future__ import annotations

from enum import Enum


class Word(str, Enum):
    """A text: compares, hashes and prints as one with every release of Python."""

    def __str__(self) -> str:
        return str.__str__(self)

    def __format__(self, format_spec: str) -> str:
        return format(str(self), format_spec)


class Role(Word):
    """Of a node."""

    CONTROL_PLANE = "control-plane"
    ARBITER = "arbiter"
    WORKER = "worker"
    SPARE = "spare"


class NetworkRole(Word):
    MACHINE = "machine"
    PROVISIONING = "provisioning"


class Firmware(Word):
    UEFI = "uefi"
    UEFI_SECURE = "uefi-secure"
    BIOS = "bios"


BOOT_MODES = {Firmware.UEFI: "UEFI", Firmware.UEFI_SECURE: "UEFISecureBoot", Firmware.BIOS: "legacy"}
"""As OpenShift calls them. Several may share one."""


class BmcProtocol(Word):
    VIRTUAL_MEDIA = "redfish-virtualmedia"
    REDFISH = "redfish"
    IPMI = "ipmi"

    @property
    def has_virtual_media(self) -> bool:
        """Which boots nodes without a provisioning network. Those of OpenShift that have it end alike."""
        return self.endswith("-virtualmedia")


class BmcFault(Word):
    """What a BMC does wrong on purpose."""

    LATENCY = "latency"
    STATUS = "status"
    CONNECTION_REFUSED = "connection-refused"
    CONNECTION_RESET = "connection-reset"
    CERTIFICATE_CHANGED = "certificate-changed"
    CREDENTIALS_EXPIRED = "credentials-expired"
    REBOOT = "reboot"
    POWER_STATE_WRONG = "power-state-wrong"
    POWER_IGNORED = "power-ignored"
    BOOT_IGNORED = "boot-ignored"
    MEDIA_FAILED = "media-failed"
    MEDIA_STALLED = "media-stalled"


class PowerRestore(Word):
    """What becomes of a VM when its host has started, as Redfish calls it."""

    ALWAYS_OFF = "AlwaysOff"
    LAST_STATE = "LastState"
    ALWAYS_ON = "AlwaysOn"


class Forward(Word):
    """How guests of a network reach the outside."""

    NAT = "nat"
    ROUTE = "route"
    OPEN = "open"
    ISOLATED = "isolated"


WAYS_OUT = (Forward.NAT, Forward.ROUTE, Forward.OPEN)


class Topology(Word):
    VETH = "veth"
    DIRECT = "direct"


class BootstrapAddress(Word):
    """How the installer's bootstrap VM gets its address."""

    POOL = "pool"
    RESERVED = "reserved"
    STATIC = "static"


class ProvisioningMode(Word):
    MANAGED = "managed"
    UNMANAGED = "unmanaged"


class DiskBus(Word):
    SCSI = "scsi"
    VIRTIO = "virtio"
    SATA = "sata"
    NVME = "nvme"


ROTATING_BUSES = (DiskBus.SCSI, DiskBus.SATA)


class DiskFormat(Word):
    QCOW2 = "qcow2"
    RAW = "raw"
