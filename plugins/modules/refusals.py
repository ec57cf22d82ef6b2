#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: refusals
short_description: What a stage would refuse and change on a host, asked before anything is changed
version_added: 0.1.0
description:
  - Runs modules of this collection in check mode and collects what they refuse and what they would change. One refusal
    does not hide the others.
  - In a role, the role's variables are checked by its argument spec, too, as Ansible does it when the role begins.
  - It changes nothing, and does not fail for what is refused unless O(stop=true).
  - The roles of this collection ask their own tasks this way before their first change, and C(playbooks/preflight.yml)
    asks the roles of all stages.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.read_only
options:
  stage:
    description: Name of the stage, with which each refusal begins.
    type: str
    default: ""
  tasks:
    description:
      - Files in the role's directory C(tasks). Each of their tasks that calls a module of this collection is asked,
        with its C(loop) and C(vars), whatever its C(when). Tasks in blocks are left out.
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
  changes:
    description: What the stage would change and no module of this collection does. Empty texts are left out.
    type: list
    elements: str
    default: []
  later:
    description: Whether the questions are only collected, to be asked with those of other stages.
    type: bool
    default: false
  questions:
    description: What earlier tasks with O(later=true) have collected. It is asked first.
    type: list
    elements: dict
    default: []
  stop:
    description: Whether to fail if anything is refused.
    type: bool
    default: false
  _questions:
    description: What the host is to answer. The part on the controller sets it; a task cannot.
    type: list
    elements: dict
attributes:
  action:
    support: full
    description: It has a part that runs on the controller, where the tasks of roles are.
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
  returned: without O(later=true)
  type: list
  elements: str
  sample:
    - "host: /srv/labs/demo belongs to storage pool demo: name another directory."
changes:
  description: What would be changed, one text for each stage that would change anything.
  returned: without O(later=true)
  type: list
  elements: str
  sample:
    - "network: define nometal-demo, start nometal-demo, autostart nometal-demo"
questions:
  description: What is to be asked, for O(questions) of a later task.
  returned: with O(later=true)
  type: list
  elements: dict
  sample:
    - stage: host
      module: nometal.ipi.storage_pool
      arguments: {name: nometal-demo, uuid: 1ca7a10e-4f5b-5680-a8a8-317039a90d6e, path: /srv/labs/demo}
"""

from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module, words_of

# Ansible sends to the host what is imported anywhere in this file; `import_module` loads only what is asked.
if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc import faults, software
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc import resource as bmc
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall import port as firewall
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.forwarding import forwarding
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.libvirt_service import service
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import resource as network
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.registration import record
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import choice
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.router_advertisements import listening
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool import port as storage_pool
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth import port as veth
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import resource as vm

    SENT = (
        *(bmc, faults, software, firewall, forwarding, service, network),
        *(record, choice, listening, storage_pool, veth, vm),
    )

UTILS = "ansible_collections.nometal.ipi.plugins.module_utils"
RUNS = {
    "bmc_faults": "_bmc.faults:BmcFaults.run",
    "bmc_software": "_bmc.software:HostSoftware.run",
    "bmh_vm": "_resources.vm.resource:LabVms.run",
    "host_forwarding": "_resources.forwarding.forwarding:run",
    "lab_firewall": "_resources.firewall.port:LabFirewall.run",
    "lab_record": "_resources.registration.record:LabRecord.run",
    "libvirt_bridge_net": "_resources.network.resource:run",
    "libvirt_service": "_resources.libvirt_service.service:HostLibvirt.run",
    "redfish_emulator": "_bmc.resource:BmcService.run",
    "router_advertisements": "_resources.router_advertisements.listening:HostListening.run",
    "split_dns": "_resources.resolver.choice:SplitDns.run",
    "storage_pool": "_resources.storage_pool.port:LabPool.run",
    "veth_pair": "_resources.veth.port:run",
}
"""Modules that answer in one process, each with what it gives to run_module; others are run one by one."""
TEXTS = {"type": "list", "elements": "str", "default": []}
ARGUMENTS = {
    "stage": {"type": "str", "default": ""},
    **dict.fromkeys(("tasks", "modules", "found", "changes"), TEXTS),
    "ask": {"type": "dict", "default": {}},
    "questions": {"type": "list", "elements": "dict", "default": []},
    **{key: {"type": "bool", "default": False} for key in ("later", "stop")},
    "_questions": {"type": "list", "elements": "dict"},
}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """As the module itself would in check mode."""
    checked = ArgumentSpecValidator(question["spec"], **question["rules"]).validate(question["arguments"])
    if checked.error_messages:
        return {"refusal": "; ".join(checked.error_messages)}
    where, _colon, run_of = RUNS[question["module"].rpartition(".")[2]].partition(":")
    ask = attrgetter(run_of)(import_module(f"{UTILS}.{where}"))
    try:
        return {"steps": ask(checked.validated_parameters, check_mode=True)["steps"]}
    except OperatorError as error:
        return {"refusal": str(error)}
    except OSError as error:
        return {"refusal": words_of(error)}
    except Exception as error:  # a defect of one module does not hide what others refuse
        return {"refusal": f"{question['module']} failed in check mode: {type(error).__name__}: {error}"}


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    return {"changed": False, "answers": [answer(question) for question in params["_questions"]]}


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
