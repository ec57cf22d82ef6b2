# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a lab's service has its things, and who may do what with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import Access
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import lab_name

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

ROOT_ONLY = Access("root", "root", 0o600)


def directory_of(home: str, lab: str) -> Path:
    """Of a lab that only its name is known of."""
    if not home.startswith("/"):
        raise OperatorError(f"home: must be an absolute path (got {home!r}).")
    return Path(home) / lab_name(lab)


def directories(lab: Lab) -> dict[Path, Access]:
    of_root = Access("root", "root", 0o755)
    made = {lab.directory: of_root, lab.state: Access(lab.user, group(lab), 0o750)}
    if lab.tls:
        made[lab.ca.parent] = of_root
    if lab.listen:  # by IPMI, there are no virtual media
        made[Path(lab.pool.path)] = Access(lab.user, group(lab), 0o755)  # qemu reads there
    return made


def access(lab: Lab) -> dict[Path, Access]:
    """Of the directories, and of files that not everybody may read."""
    for_service = Access("root", group(lab), 0o640)
    return {
        **directories(lab),
        lab.credentials: ROOT_ONLY,
        lab.hashes: ROOT_ONLY,
        lab.ca_key: ROOT_ONLY,
        lab.server_key: for_service,
        # IPMI needs passwords in clear.
        lab.config: Access(lab.user, group(lab), 0o600) if lab.by_ipmi else for_service,
    }


def group(lab: Lab) -> str:
    """The user's own, as useradd makes it."""
    return lab.user
