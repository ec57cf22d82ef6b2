# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: Changes nothing and reports what would be changed, also on a host where nothing is installed yet.
  diff_mode:
    support: full
    description: Shows what it was like before and is after.
  idempotent:
    support: full
    description: The same task again changes nothing.
"""
