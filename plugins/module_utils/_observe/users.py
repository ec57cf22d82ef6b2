# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of the host and their groups."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core.files import group_name


@dataclass(frozen=True)
class User:
    comment: str
    groups: tuple[str, ...]
    """Their names."""


def user_of(name: str) -> User | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return User(entry.pw_gecos, tuple(map(group_name, os.getgrouplist(name, entry.pw_gid))))
