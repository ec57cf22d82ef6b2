# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LINE = re.compile(r"\\?([0-9A-Fa-f]{64}) [ *](?:\./)?(.+?)\s*")
BLOCK = 1024 * 1024


def parse(text: str) -> dict[str, str]:
    """By file name, of what sha256sum writes; other lines, such as a signature's, say nothing."""
    lines = (LINE.fullmatch(line) for line in text.splitlines())
    return {line[2]: line[1].lower() for line in lines if line}


def of_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()
