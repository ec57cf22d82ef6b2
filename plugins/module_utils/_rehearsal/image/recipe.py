# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that an image is made from, as far as it can be told at once. What is made of the same is the same image."""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.program import refuse_bad_names
from ansible_collections.nometal.ipi.plugins.module_utils._observe.system import OS_RELEASE
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import build as image_build
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import iso as image_iso
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import kernel as image_kernel
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import loaders as image_loaders
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import network as image_network
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import packages as image_packages
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import python as image_python
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import tree as image_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

BUILDER = (
    *(image_build, image_iso, image_kernel, image_loaders),
    *(image_network, image_packages, image_python, image_tree),
)
PREFIX = "image-"
WITH_NETWORK_BOOT, WITH_SATA = "-network", "-sata"
DIGITS = 12


@dataclass(frozen=True)
class Recipe:
    path: Path
    sources: Mapping[str, str]
    packages: Mapping[str, Sequence[str]]
    network_boot: bool
    sata_disks: bool

    @property
    def drivers(self) -> Sequence[str]:
        return image_kernel.SATA_DRIVERS if self.sata_disks else image_kernel.DRIVERS

    @property
    def name(self) -> str:
        return self._named(self.network_boot, self.sata_disks)

    @property
    def names(self) -> list[str]:
        """Labs of one host may differ in whether they boot from the network, and in their disks."""
        return [self._named(*needs) for needs in product((False, True), repeat=2)]

    def _named(self, network_boot: bool, sata_disks: bool) -> str:
        more = WITH_NETWORK_BOOT * network_boot + WITH_SATA * sata_disks
        return f"{PREFIX}{self._digest[:DIGITS]}{more}"

    @cached_property
    def _digest(self) -> str:
        system = OS_RELEASE.read_text(encoding="utf-8")
        python = f"{platform.python_implementation()} {platform.python_version()}"
        builder = [inspect.getsource(part) for part in BUILDER]
        parts = [system, python, builder, self.packages, self.sources]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def refuse_bad_sources(self) -> None:
        refuse_bad_names(self.sources)
        needed = {f"{image_python.START}.py", *(str(PurePath(name).with_name("__init__.py")) for name in self.sources)}
        missing = sorted(needed - {*self.sources})
        if missing:
            raise OperatorError(f"sources: {', '.join(missing)} is missing, without which the agent cannot start.")
