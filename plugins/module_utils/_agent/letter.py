# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bootstrap VM writes into the nodes' medium: which rehearsal it is of, and where to report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LABEL, LABEL_AT = b"NOMETAL-REHEARSAL", 0x8028
"""Of the medium, and where in it that stands."""
LETTER = "/letter"
"""In the guest."""
LETTER_MARK = b"NOMETAL-REHEARSAL-LETTER"
LETTER_BYTES = 4096


def packed(letter: dict[str, Any]) -> bytes:
    return json.dumps(letter).encode().ljust(LETTER_BYTES, b"\n")


def read_letter() -> dict[str, Any]:
    return json.loads(Path(LETTER).read_bytes())
