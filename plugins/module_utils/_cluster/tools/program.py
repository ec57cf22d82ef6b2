# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installer itself: which it is, and that it is the right one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import programs as tools_programs
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (tools_release.OLDER_INSTALLER, tools_release.INSTALLER)
"""Where both are, the first is the one that was made with libvirt."""
HINT = "module nometal.ipi.installer_tools gets it"


@dataclass(frozen=True)
class Program:
    path: Path
    version: str


def find(tools: Path, version: str, home: Path) -> Program:
    """Home: where the installer may write while it is asked."""
    path = next((tools / name for name in NAMES if (tools / name).is_file()), None)
    if path is None:
        raise OperatorError(f"{tools} has neither of {' and '.join(reversed(NAMES))}: {HINT}.")
    if not os.access(path, os.X_OK):
        raise OperatorError(f"{path} is not executable: {HINT} anew when it is removed.")
    told = tools_programs.ask_installer(path, home)
    if version:
        tools_release.refuse_other_release(told, version, None, str(path))
    return Program(path, tools_release.named(told.version, version))
