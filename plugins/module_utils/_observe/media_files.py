# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files in the pool of media the service has made: their names follow from what is in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = re.compile(r"[0-9a-f]{64}\.iso|\.part-[A-Za-z0-9_]{8}")
"""An image by its digest, as media_cache.py of the service calls it, and a download that has not ended."""


def is_medium(path: Path) -> bool:
    return NAME.fullmatch(path.name) is not None and path.is_file() and not path.is_symlink()
