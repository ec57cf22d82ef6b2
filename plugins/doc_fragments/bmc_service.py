# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  home:
    description: Directory, on the managed host, in which each lab's service has one of its own.
    type: path
    default: /var/lib/nometal/bmc
"""
