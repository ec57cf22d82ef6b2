#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: show_table
short_description: Show lines as they are
version_added: 0.2.0
description:
  - Shows a table, line by line, whatever the format of results. M(ansible.builtin.debug) would show it as a list in
    JSON or YAML.
  - Callbacks that write for programs (C(json), C(jsonl), C(null)) are not disturbed.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.read_only
options:
  lines:
    description: The lines.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show a table
  nometal.ipi.show_table:
    lines:
      - ok       kvm     a guest has run
      - warning  memory  2048 MiB are free
"""
