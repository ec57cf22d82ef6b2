# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import LABS, RECORD_OF_MODEL, RECORD_OF_NAME


def registered_labs(home: Path) -> list[str]:
    """A directory without a record is what others have put there, or what a removal has left."""
    records = [path for name in (RECORD_OF_MODEL, RECORD_OF_NAME) for path in (home / LABS).glob(f"*/{name}")]
    return sorted({path.parent.name for path in records if path.is_file()})
