# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between releases, but for the keys."""

from __future__ import annotations

import re

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import BUILD_PATTERN
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import (
    NEWEST,
    OLDEST,
    Release,
    release_of,
    release_text,
)

ARBITER_WITHOUT_PREVIEW = (4, 20)
FENCING_WITHOUT_PREVIEW = (4, 22)
PREVIEW = "TechPreviewNoUpgrade"
PREVIEWS = (PREVIEW, "DevPreviewNoUpgrade", "CustomNoUpgrade")
"""The feature sets with technology previews; whether a custom one has the gate in question, only the installer says."""
ETCD_SPEED = (4, 16)
"""The first release with the etcd profile outside technology previews."""


def release_to_configure(version: str) -> Release:
    """A build whose name has no numbers is taken for the newest release."""
    release = release_of(version) or (NEWEST if re.fullmatch(BUILD_PATTERN, version) else None)
    if release is None or release < OLDEST:
        raise OperatorError(f"version {must_be(f'{release_text(OLDEST)} or later, such as stable-4.20', version)}.")
    return release
