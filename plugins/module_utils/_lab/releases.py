# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of OpenShift that are known here."""

from __future__ import annotations

import re

Release = tuple[int, int]
"""Major and minor: 5.0 follows 4.23."""

OLDEST, NEWEST = (4, 9), (5, 2)
"""What is new in a release after the newest is not known here."""


def release_of(version: str) -> Release | None:
    """Of a release (4.20.3), a channel (stable-4.20) or a build; None of a build without numbers (unreleased-...)."""
    match = re.search(r"([0-9]+)\.([0-9]+)", version)
    return (int(match[1]), int(match[2])) if match else None


def release_text(release: Release) -> str:
    return f"{release[0]}.{release[1]}"
