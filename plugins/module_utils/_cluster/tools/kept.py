# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of tools: `bin` with the programs, and a record of what they are, by which it is known to be whole."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.release import INSTALLER
from ansible_collections.nometal.ipi.plugins.module_utils._core import files

if TYPE_CHECKING:
    from pathlib import Path

BIN, RECORD = "bin", "tools.json"


@dataclass(frozen=True)
class Kept:
    version: str
    release_image: str | None


def read(directory: Path) -> Kept | None:
    """None unless it is whole."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
        programs = directory / BIN
        if os.access(programs / INSTALLER, os.X_OK) and _sizes(programs) == record["sizes"]:
            return Kept(record["version"], record["release_image"])
    return None


def record(directory: Path, kept: Kept) -> None:
    text = {"version": kept.version, "release_image": kept.release_image, "sizes": _sizes(directory / BIN)}
    files.write_whole(directory / RECORD, json.dumps(text) + "\n", 0o644)


def _sizes(programs: Path) -> dict[str, int]:
    return {program.name: program.stat().st_size for program in programs.iterdir() if os.access(program, os.X_OK)}
