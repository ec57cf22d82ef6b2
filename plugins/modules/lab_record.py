#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lab_record
short_description: Register a lab on a host
version_added: 0.1.0
description:
  - Writes the lab's model to a directory of its own on the host. Other labs keep clear of what the model names, and
    the lab can be removed without its lab_spec.
  - M(nometal.ipi.directory_removal) removes it.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.reconciled
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  model:
    description: The lab's model, as M(nometal.ipi.derive_lab) returns it. Without it, only the name is written.
    type: dict
    default: {}
  home:
    description: Directory in which labs are registered.
    type: path
    default: /var/lib/nometal
"""

EXAMPLES = r"""
- name: Register the lab
  nometal.ipi.lab_record:
    lab: demo
    model: "{{ lab }}"
"""

RETURN = r"""
lab:
  description: Name of the lab.
  returned: success
  type: str
  sample: demo
record:
  description: The file that registers it.
  returned: success
  type: str
  sample: /var/lib/nometal/labs/demo/lab.json
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [make /var/lib/nometal/labs/demo, write /var/lib/nometal/labs/demo/lab.json]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._resources.registration.record import LabRecord

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "model": {"type": "dict", "default": {}},
    "home": {"type": "path", "default": "/var/lib/nometal"},
}


def main() -> None:
    run_module(ARGUMENTS, LabRecord.run)


if __name__ == "__main__":
    main()
