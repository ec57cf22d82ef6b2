# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which UEFI firmware this host has, by the descriptors that its distribution ships with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._lab import types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# As libvirt reads them: a file hides one of the same name in a directory after its own, and an empty one only hides.
DIRECTORIES = (Path("/etc/qemu/firmware"), Path("/usr/share/qemu/firmware"))
ARCHITECTURE = "x86_64"
# For each kind, what a descriptor must offer and what it must not, best first. Without keys nothing is enforced.
CHOICES: Mapping[str, tuple[Mapping[str, bool], ...]] = {
    types.Firmware.BIOS: ({},),
    types.Firmware.UEFI: ({"secure-boot": False}, {"enrolled-keys": False}),
    types.Firmware.UEFI_SECURE: ({"enrolled-keys": True, "secure-boot": True},),
}


@dataclass(frozen=True)
class Firmware:
    """What libvirt gets, so that it chooses among the host's own firmware files."""

    efi: bool = False
    features: tuple[tuple[str, bool], ...] = ()
    smm: bool = False


def find(kind: str, machine: str, directories: Sequence[Path] = DIRECTORIES) -> Firmware | None:
    """None: this host has no such firmware."""
    if kind == types.Firmware.BIOS:
        return Firmware()  # SeaBIOS, which is a part of qemu
    fitting = [set(item["features"]) for item in _descriptors(directories) if _serves(item, machine)]
    for choice in CHOICES[kind]:
        for offered in fitting:
            if all((name in offered) == wanted for name, wanted in choice.items()):
                return Firmware(efi=True, features=tuple(choice.items()), smm="requires-smm" in offered)
    return None


def _descriptors(directories: Sequence[Path]) -> Iterator[dict[str, Any]]:
    paths = {path.name: path for directory in reversed(directories) for path in directory.glob("*.json")}
    for name in sorted(paths):
        text = paths[name].read_text(encoding="utf-8")
        if text.strip():
            yield json.loads(text)


def _serves(descriptor: Mapping[str, Any], machine: str) -> bool:
    mapping = descriptor["mapping"]
    return (
        "uefi" in descriptor["interface-types"]
        and mapping["device"] == "flash"
        and mapping.get("mode", "split") == "split"
        and Path(mapping["executable"]["filename"]).exists()
        and any(_fits(target, machine) for target in descriptor["targets"])
    )


def _fits(target: Mapping[str, Any], machine: str) -> bool:
    full = f"pc-{machine}-" if machine == "q35" else machine
    return target["architecture"] == ARCHITECTURE and any(fnmatch(full, name) for name in target["machines"])
