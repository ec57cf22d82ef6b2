# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's service as this host keeps it running, and what it takes a restart to change."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Union

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.serving import Service
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.software import LAUNCHER
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.supervised import Supervised
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.systemd import Systemd

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

__all__ = ["Keeper", "Service", "fingerprint", "service_of", "software_of"]


Keeper = Union[Systemd, Supervised]


def service_of(lab: Lab) -> Keeper:
    # Where systemd is in charge, and not merely installed, it keeps this directory.
    return Systemd(lab) if Path("/run/systemd/system").is_dir() else Supervised(lab)


def fingerprint(lab: Lab) -> str:
    """Of what only a restart changes."""
    parts = {
        "listen": [asdict(endpoint) for endpoint in lab.listen],
        "tls": lab.tls,
        "software": software_of(lab),
        "definition": service_of(lab).definition(),
    }
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def software_of(lab: Lab) -> str | None:
    """Which release of the software counts: this file names it, and is put in place last."""
    with suppress(FileNotFoundError):
        return (lab.software / LAUNCHER).read_text(encoding="utf-8", errors="replace") or None
    return None
