# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  libvirt_uri:
    description: Where libvirt is reached, from the managed host.
    type: str
    default: qemu:///system
requirements:
  - libvirt-python and lxml for the managed host's Python, as role nometal.ipi.host_prep installs them
"""
