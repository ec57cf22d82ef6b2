# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of OpenShift that are known here."""

from __future__ import annotations

Release = tuple[int, int]
"""Major and minor: 5.0 follows 4.23."""

OLDEST, NEWEST = (4, 9), (5, 2)
"""What is new in a release after the newest is not known here."""


def release_text(release: Release) -> str:
    return f"{release[0]}.{release[1]}"
