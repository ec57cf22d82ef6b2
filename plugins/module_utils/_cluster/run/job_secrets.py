# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the secrets of an install-config.yaml come from."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login


def pull_secret_of(given: Any) -> str:
    """Ansible may have read the JSON already."""
    return given if isinstance(given, str) else json.dumps(given or "")


def mapping_of(name: str, given: Any) -> dict[str, Any]:
    """A mapping, or JSON of one, which Ansible hides as a whole instead of each value of it, be it "1" or "cluster"."""
    read = given
    if isinstance(given, str):
        with suppress(ValueError):
            read = json.loads(given or "{}")
    if not isinstance(read, dict):
        raise OperatorError(f"{name} must be a mapping, or JSON of one.")
    return read


def logins_of(path: Path, lab: str) -> dict[str, Login]:
    """Of the nodes' BMCs, by the names that the nodes have in install-config.yaml."""
    prefix = Identity(lab).vm_name("")
    known = credentials.read(path)
    return {name[len(prefix) :]: login for name, login in known.items() if name.startswith(prefix)}
