#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: derive_lab
short_description: The model of a lab, from the variable lab_spec
version_added: 0.1.0
description:
  - Does what the filter P(nometal.ipi.lab_model#filter) does, with the variable C(lab_spec), and fails with a plain
    list of all that is wrong with it.
  - Variables whose names begin with C(lab_spec_) are keys of it, such as C(lab_spec_nodes_workers_count), and go before
    what C(lab_spec) says. C(docs/lab_spec.md) of this collection says how they are written.
  - It runs on the controller, and touches no host.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.read_only
options:
  hypervisors:
    description: The hosts that carry the lab, by inventory name. C(lab_spec.hypervisors) need not name them then.
    type: list
    elements: str
    default: []
  hint:
    description: A text that ends the message, for whoever cannot or need not correct C(lab_spec).
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Derive the lab from lab_spec
  nometal.ipi.derive_lab:
    hypervisors: "{{ groups.hypervisors }}"
  register: derived
"""

RETURN = r"""
lab:
  description: The model, as the filter P(nometal.ipi.lab_model#filter) gives it.
  returned: success
  type: dict
findings:
  description: The errors of lab_spec and its variables, one by one. None if it cannot be read at all.
  returned: failure
  type: list
  elements: dict
  contains:
    code:
      description: What is wrong, for programs.
      type: str
    subject:
      description: The key.
      type: str
    severity:
      description: C(blocker).
      type: str
    facts:
      description: Values that belong to it; by which keys depends on the code.
      type: dict
    message:
      description: What is wrong, in words.
      type: str
    advice:
      description: What to do, where the message does not say it.
      type: str
  sample:
    - code: schema.number
      subject: lab_spec.nodes.workers.count
      severity: blocker
      facts: {}
      message: must be a whole number from 0 to 250 (got -1)
      advice: ""
"""
