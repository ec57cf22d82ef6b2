# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a disk of QEMU can match root device hints, compared as Ironic compares them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any, Callable, NamedTuple

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, must_be, show, show_key
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import DiskBus

GIGABYTE = 1024**3
"""Ironic's."""
BY_PATH = "/dev/disk/by-path/"
CHOSEN_BY_LINUX = "N"
ADDRESS = r"[0-9]{1,3}(:0:0:[0-9]{1,3})"
UNITS = 7
"""Per SCSI controller, in libvirt."""
FEW = 5
"""Up to this number, disks get one unit after the other."""

Hints = Mapping[str, Any]
"""By the installer's names."""


class Declared(NamedTuple):
    bus: str
    size: int
    serial: str
    rotational: bool


class Bus(NamedTuple):
    """What Linux reads from QEMU's disks."""

    device: str
    vendor: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    rotates: bool | None = None
    """Regardless of the declared value."""


BUSES: Mapping[str, Bus] = {
    DiskBus.SCSI: Bus("sd", ("QEMU",), ("QEMU HARDDISK",)),
    DiskBus.SATA: Bus("sd", ("ATA",), ("QEMU HARDDISK",)),
    DiskBus.VIRTIO: Bus("vd", ("0x1af4",), rotates=True),
    DiskBus.NVME: Bus("nvme", (), ("QEMU NVMe Ctrl",), rotates=False),
}


def problems(hints: Hints, disks: Sequence[Declared]) -> Iterator[tuple[str, str]]:
    """Keys with their errors; the key is empty for an error of all hints together."""
    seen = [_seen(disk, disks) for disk in disks]
    wrong = [name for name in hints if not any(_matches(name, hints, disk) for disk in seen)]
    for name in wrong:
        yield name, _unmatched(name, hints[name], [value for disk in seen for value in disk[name]])
    if not wrong and not any(all(_matches(name, hints, disk) for name in hints) for disk in seen):
        yield "", f"one disk must match all hints: different disks match {' and '.join(hints)}"


def _seen(disk: Declared, disks: Sequence[Declared]) -> dict[str, tuple[Any, ...]]:
    """The possible values of a disk for each hint: devices of one type change names from boot to boot."""
    bus = BUSES[disk.bus]
    alike = sum(BUSES[other.bus].device == bus.device for other in disks)
    return {
        "deviceName": _devices(bus.device, alike),
        "hctl": _addresses(disk.bus, alike),
        "model": bus.model,
        "vendor": bus.vendor,
        "serialNumber": (disk.serial,),
        "minSizeGigabytes": (disk.size // GIGABYTE,),
        "wwn": (f"nvme.1b36-{_hex(disk.serial)}-{_hex(bus.model[0])}-00000001",) if disk.bus == DiskBus.NVME else (),
        "rotational": (disk.rotational if bus.rotates is None else bus.rotates,),
    }


def _devices(prefix: str, count: int) -> tuple[str, ...]:
    if prefix == "nvme":
        return tuple(f"/dev/nvme{number}n1" for number in range(count))
    return tuple(f"/dev/{prefix}{letter}" for letter in ascii_lowercase[:count])


def _addresses(bus: str, count: int) -> tuple[str, ...]:
    """Host, channel, target and LUN. To Linux, the port of each SATA disk is a host."""
    luns: Mapping[str, int] = {DiskBus.SCSI: count if count <= FEW else UNITS, DiskBus.SATA: 1}
    return tuple(f"{CHOSEN_BY_LINUX}:0:0:{lun}" for lun in range(luns.get(bus, 0)))


def _hex(text: str) -> str:
    return text.encode().hex()


def _matches(name: str, hints: Hints, disk: Mapping[str, tuple[Any, ...]]) -> bool:
    return any(MATCHES.get(name, _is)(hints[name], value) for value in disk[name])


def _is(hint: Any, value: Any) -> bool:
    return bool(_normalized(hint) == _normalized(value))


def _is_part(hint: str, value: str) -> bool:
    return _normalized(hint) in _normalized(value)


def _is_device(hint: str, value: str) -> bool:
    """libvirt chooses the path of a disk."""
    return hint.startswith(BY_PATH) or _is(hint, value)


def _is_address(hint: str, value: str) -> bool:
    match = re.fullmatch(ADDRESS, hint.strip())
    return match is not None and CHOSEN_BY_LINUX + match[1] == value


def _is_at_most(hint: int, value: int) -> bool:
    return hint <= value


def _normalized(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


MATCHES: dict[str, Callable[[Any, Any], bool]] = {
    "deviceName": _is_device,
    "hctl": _is_address,
    "model": _is_part,
    "vendor": _is_part,
    "minSizeGigabytes": _is_at_most,
}


def _unmatched(name: str, hint: Any, values: Sequence[Any]) -> str:
    if name == "minSizeGigabytes":
        return must_be(f"at most {max(values)}, the size of the largest disk", hint)
    if not values:
        return f"must be left out: the disks of this node have none {got(hint)}"
    chosen = f", where Linux chooses {CHOSEN_BY_LINUX}" if name == "hctl" else ""
    return must_be(f"that of a disk of this node, {', '.join(dict.fromkeys(map(_word, values)))}{chosen}", hint)


def _word(value: Any) -> str:
    return show_key(value) if isinstance(value, str) else show(value)
