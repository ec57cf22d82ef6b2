#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lab_status
short_description: The state of a lab on a host, and what to do next
version_added: 0.2.0
description:
  - Looks at all that a lab has on a host, at any time, and shows it on the controller as one screen.
  - It works without libvirt, while another run has the lab, and of a lab that is made only in part. What does not
    answer is reported as a finding.
  - In AWX, what it shows is also an artifact of the job, by the name of the host in C(nometal_lab), as of
    M(ansible.builtin.set_stats). It names files and holds no secret; docs/awx.md lists its keys.
author:
  - nometal.ipi contributors (@nometal)
options:
  lab:
    description: Name of the lab. Without it, the state of each lab that has something on the host is shown in a line.
    type: str
  model:
    description:
      - The lab's model, as M(nometal.ipi.derive_lab) returns it. Without it, the one that is recorded on the host.
    type: dict
    default: {}
  host:
    description: What the inventory calls this host. Only its nodes are looked at; without it, all of the model.
    type: str
    default: ""
  output:
    description:
      - What is shown. V(text) is all on one screen, V(json) the same as RV(status).
      - V(summary) is the state, where files are, and what to do next.
      - V(nothing) leaves it to the caller to use what is returned.
    type: str
    choices: [text, json, summary, nothing]
    default: text
  failed:
    description:
      - The playbook of the collection that has failed, such as V(site), where the summary ends such a run. To repeat
        it is then the first of what to do next, and BMCs and the cluster are asked as for V(text).
    type: str
    default: ""
  page:
    description:
      - A file on the controller, to which the same is written as a page for browsers, with a picture of the lab. The
        page executes and loads nothing. With O(lab) only, and not in check mode.
    type: str
    default: ""
  home:
    description: Directory of all that labs keep on the host.
    type: path
    default: /var/lib/nometal
  _controller:
    description: How playbooks are run there. The part on the controller sets it; a task cannot.
    type: dict
    default: {}
extends_documentation_fragment:
  - nometal.ipi.libvirt
attributes:
  action:
    support: full
    description: It has a part that runs on the controller, which shows the screen.
  check_mode:
    support: full
    description: It never changes anything.
"""

EXAMPLES = r"""
- name: Show the state of the lab
  nometal.ipi.lab_status:
    lab: demo
    model: "{{ lab }}"

- name: Read the state of a lab of which only the name is known
  nometal.ipi.lab_status:
    lab: demo
    output: nothing
  register: demo

- name: Show which nodes are on
  ansible.builtin.debug:
    msg: "{{ demo.status.nodes | selectattr('power', 'equalto', 'on') | map(attribute='name') }}"
"""

RETURN = r"""
state:
  description:
    - The state of the lab.
    - It is V(absent), V(unknown) if libvirt does not answer, V(partial), V(made), V(rehearsed) or V(rehearsal failed).
    - Of a lab that is being installed or was, V(installing), V(installation failed), V(installation interrupted),
      V(stopped) if all nodes are off, V(unreachable) if the API does not answer, V(degraded) or V(installed).
  returned: with O(lab)
  type: str
  sample: rehearsed
status:
  description:
    - What was observed. docs/status.md describes all keys.
    - Without O(lab), it is a list of such under the key C(labs), for which neither BMCs nor clusters are asked.
  returned: success
  type: dict
  sample: {lab: demo, state: rehearsed, nodes: [{name: worker-0, power: "off"}], findings: [], next: []}
lines:
  description: The screen, or the summary.
  returned: success
  type: list
  elements: str
  sample: ["Lab demo (demo.lab.example.test) on server: it is ready: the last rehearsal went well; 0 of 4 nodes on"]
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status import screen
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.findings import findings_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.next_steps import next_steps
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import as_json
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observe import Question, observe
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.state import state_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._observe import labs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect_if_there
from ansible_collections.nometal.ipi.plugins.module_utils._observe.vm_users import things_of_labs

if TYPE_CHECKING:
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import Observation

ARGUMENTS = {
    "lab": {"type": "str"},
    "model": {"type": "dict", "default": {}},
    "host": {"type": "str", "default": ""},
    "output": {"type": "str", "choices": ["text", "json", "summary", "nothing"], "default": "text"},
    "failed": {"type": "str", "default": ""},
    "page": {"type": "str", "default": ""},
    "home": {"type": "path", "default": "/var/lib/nometal"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
    "_controller": {"type": "dict", "default": {}},
}


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    if params["lab"] is None:
        return all_labs(params)
    brief = params["output"] == "summary"
    given = {key: params[key] for key in ("lab", "model", "host", "home", "libvirt_uri")}
    seen, picture = observe(Question(**given, asks=not brief or bool(params["failed"])))
    # A summary is shown by the run that has the lab, when it ends.
    own = replace(seen, run=None) if brief else seen
    result = told(own, params["_controller"], brief=brief, failed=params["failed"])
    return {**result, "picture": picture} if params["page"] else result


def all_labs(params: dict[str, Any]) -> dict[str, Any]:
    home, uri = params["home"], params["libvirt_uri"]
    with connect_if_there(uri) as connection:
        in_libvirt = things_of_labs(connection) if connection else labs.in_definitions()
    names = sorted(labs.merged(labs.in_files(Path(home)), in_libvirt))
    observed = [observe(Question(name, home=home, libvirt_uri=uri, asks=False))[0] for name in names]
    lines = [screen.headline(state_of(seen), seen) for seen in observed] or ["No lab has anything on this host."]
    statuses = [told(seen, params["_controller"], brief=True)["status"] for seen in observed]
    return {"changed": False, "status": {"labs": statuses}, "lines": lines}


def told(seen: Observation, controller: dict[str, Any], *, brief: bool, failed: str = "") -> dict[str, Any]:
    state = state_of(seen)
    findings = findings_of(state, seen)
    inventory, by_make = controller.get("inventory", "INVENTORY"), controller.get("by_make", False)
    steps = [(step.written(inventory, by_make=by_make), step.purpose) for step in next_steps(state, seen, failed)]
    status = {
        **asdict(seen),
        "state": str(state),
        "findings": [finding.to_dict() for finding in findings],
        "next": [{"command": command, "purpose": purpose} for command, purpose in steps],
    }
    shown = screen.summary if brief else screen.screen
    return {
        "changed": False,
        "state": str(state),
        "status": as_json(status),
        "lines": shown(state, seen, findings, steps),
    }


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
