# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a lab's service has its things, and who may do what with them."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import Access
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import lab_name

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

FOR_BROKER = Access("root", "root", 0o644)  # it holds no secret
ROOT_ONLY = Access("root", "root", 0o600)


def directory_of(home: str, lab: str) -> Path:
    """Of a lab that only its name is known of."""
    if not home.startswith("/"):
        raise OperatorError(f"home: must be an absolute path (got {home!r}).")
    return Path(home) / lab_name(lab)


def directories(lab: Lab) -> dict[Path, Access]:
    of_root = Access("root", "root", 0o755)
    made = {
        lab.directory: of_root,
        lab.state: Access(lab.user, group(lab), 0o750),
        lab.broker: of_root,
        lab.broker_state: Access(lab.broker_user, group(lab), 0o750),  # the service finds a socket there
    }
    if lab.tls:
        made[lab.ca.parent] = of_root
    if lab.listen:  # by IPMI, there are no virtual media
        # qemu reads there. The service must not: in a directory of its own it could have libvirt follow a link.
        made[Path(lab.pool.path)] = Access(lab.broker_user, lab.broker_user, 0o755)
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
        lab.config: for_service,
    }


def group(lab: Lab) -> str:
    """The user's own, as useradd makes it."""
    return lab.user


def give_images_to_broker(lab: Lab) -> None:
    """A service of before has written them itself. Those of running VMs are QEMU's, and stay so."""
    former, broker = pwd.getpwnam(lab.user).pw_uid, pwd.getpwnam(lab.broker_user)
    for image in Path(lab.pool.path).glob("*.iso"):
        with suppress(FileNotFoundError):
            if image.lstat().st_uid == former:
                os.chown(image, broker.pw_uid, broker.pw_gid, follow_symlinks=False)
