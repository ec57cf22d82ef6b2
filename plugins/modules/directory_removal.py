#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: directory_removal
short_description: Remove from a directory what is known, and the directory if nothing else is in it
version_added: 0.1.0
description:
  - Removes the entries that O(known) names, and then the directory, unless something else is in it.
  - Whatever else is in it stays, and RV(kept) names it.
  - Nothing is removed through a symbolic link, nor from a file system that is mounted in the directory.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.reconciled
options:
  path:
    description: Absolute path of the directory.
    type: path
    required: true
  known:
    description:
      - Names of entries, or patterns of the shell. Directories among them go with all that is in them.
      - V(labs/) is a directory that goes when it is empty, and V(labs/*.json) names files in such a directory.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Remove the record of a lab
  nometal.ipi.directory_removal:
    path: /var/lib/nometal/labs/demo
    known: [lab.json, rehearsal.html, rehearsal.json]
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [remove /var/lib/nometal/labs/demo]
kept:
  description: What is not known, and stays, each with the reason. Empty in check mode if something is to be removed.
  returned: success
  type: list
  elements: str
  sample: ["/var/lib/nometal/labs/demo/notes.txt (not made by nometal.ipi)"]
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "path": {"type": "path", "required": True},
    "known": {"type": "list", "elements": "str", "required": True},
}


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    path, known = Path(params["path"]), params["known"]
    if not path.is_absolute():
        raise OperatorError(f"path: {path} is not absolute.")
    steps = [f"remove {path}"] if removal.has_known(path, known) else []
    if steps and not check_mode:
        kept = removal.remove_known(path, known)
    else:  # in check mode, what earlier tasks would remove is still there
        kept = [] if steps else removal.foreign(path, known)
    lines = "".join(f"{step}\n" for step in steps)
    return {
        "changed": bool(steps),
        "steps": steps,
        "kept": kept,
        "diff": {"before": "", "after": lines},
        "warnings": removal.warnings(kept),
    }


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
