# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How one configuration is laid over another."""

from __future__ import annotations

from typing import Any


def merged(base: Any, over: Any) -> Any:
    """Mappings are merged at any depth; everything else replaces what was there, and null removes it."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    result = dict(base)
    for name, item in over.items():
        if item is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name, {}), item)
    return result
