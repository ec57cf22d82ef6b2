# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  memory:
    description: The file, on the managed host, that remembers what the host was like before the first lab changed it.
    type: path
    default: /var/lib/nometal/host.json
"""
