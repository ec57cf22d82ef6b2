#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: rehearsal_page
short_description: The report of a rehearsal as a page for browsers
version_added: 0.1.0
description:
  - Reads the report that M(nometal.ipi.rehearsal) has left on the managed host, makes a page of it on the controller,
    and writes the page on the host, beside the report.
  - The page has a picture of the lab as it really was, with what failed in red. It executes and loads nothing.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
attributes:
  check_mode:
    support: full
    description: Before there is a report, check mode says that a page would be written.
options:
  report:
    description: Path of the report on the managed host, as M(nometal.ipi.rehearsal) returns it.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Write the page of the last rehearsal
  nometal.ipi.rehearsal_page:
    report: /var/lib/nometal/labs/demo/rehearsal.json
"""

RETURN = r"""
page:
  description: Path of the page on the managed host.
  returned: success
  type: str
  sample: /var/lib/nometal/labs/demo/rehearsal.html
"""
