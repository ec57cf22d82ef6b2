#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_memory
short_description: Remember what a host was like before a lab changed it
version_added: 0.1.0
description:
  - Notes values on the managed host before they are changed, and gives back all notes.
  - The first note on a thing stays, since later ones would be of what a lab has made of it.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.reconciled
  - nometal.ipi.host_memory
options:
  notes:
    description: By topic, the things that are about to be changed, each with its present value.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Note how the KVM device is, before it is opened to its group
  nometal.ipi.host_memory:
    notes:
      kvm_device:
        mode: "0600"
        group: root

- name: Recall all notes
  nometal.ipi.host_memory:
  register: before_the_labs
"""

RETURN = r"""
notes:
  description: All notes, by topic and thing.
  returned: success
  type: dict
  sample:
    kvm_device:
      mode: "0600"
      group: root
"""

import json
from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory, Notes

ARGUMENTS = {
    "notes": {"type": "dict", "default": {}},
    "memory": {"type": "path", "default": "/var/lib/nometal/host.json"},
}


def text(notes: Notes) -> str:
    return json.dumps(notes, indent=2, sort_keys=True) + "\n"


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    memory, notes = HostMemory(Path(params["memory"])), params["notes"]
    if check_mode or not any(notes.values()):
        before, after = memory.recall(), memory.with_notes(notes)
    else:
        before, after = memory.note(notes)
    return {"changed": after != before, "notes": after, "diff": {"before": text(before), "after": text(after)}}


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
