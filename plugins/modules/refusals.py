#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: refusals
short_description: What a stage would refuse on a host, asked before anything is changed
version_added: 0.1.0
description:
  - Runs modules of this collection in check mode and collects what they refuse. One refusal does not hide the others.
  - In a role, the role's variables are checked by its argument spec, too, as Ansible does it when the role begins.
  - It changes nothing, and does not fail for what is refused unless O(stop=true).
  - The roles of this collection ask their own tasks this way before their first change, and C(playbooks/preflight.yml)
    asks the roles of all stages.
author:
  - nometal.ipi contributors (@nometal)
options:
  stage:
    description: Name of the stage, with which each refusal begins.
    type: str
    required: true
  tasks:
    description:
      - Files in the role's directory C(tasks). Each of their tasks that calls a module of this collection is asked,
        with its C(loop) and C(vars), whatever its C(when).
    type: list
    elements: str
    default: []
  modules:
    description: Of the tasks in these files, only those of these modules are asked; all of them by default.
    type: list
    elements: str
    default: []
  ask:
    description: Further modules to ask, by fully qualified name, with their arguments.
    type: dict
    default: {}
  found:
    description: What is to be refused and no module looks at. Empty texts are left out.
    type: list
    elements: str
    default: []
  stop:
    description: Whether to fail if anything is refused.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: It never changes anything.
"""

EXAMPLES = r"""
# In a role, which asks its own tasks.
- name: Ask what the VMs' stage would refuse
  nometal.ipi.refusals:
    stage: nodes
    tasks: [vms.yml]
  register: node_vms_refusals

- name: Ask one module
  nometal.ipi.refusals:
    stage: host
    ask:
      nometal.ipi.storage_pool:
        name: nometal-demo
        uuid: 1ca7a10e-4f5b-5680-a8a8-317039a90d6e
        path: /srv/labs/demo
    stop: true
"""

RETURN = r"""
refusals:
  description: What is refused, each with the stage in front. Empty if there is nothing in the way.
  returned: always
  type: list
  elements: str
  sample:
    - "host: /srv/labs/demo belongs to storage pool demo: name another directory."
"""
