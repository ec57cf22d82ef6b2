# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes in bytes."""

from __future__ import annotations

GIB = 1024**3


def gib(amount: int) -> str:
    return f"{amount / GIB:.1f} GiB"
