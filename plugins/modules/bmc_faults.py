#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: bmc_faults
short_description: Faults on purpose of one lab's BMCs
version_added: 0.2.0
description:
  - Makes the BMCs of a lab behave like bad hardware, for tests of what controls them, such as Ironic and Metal3.
  - The service that M(nometal.ipi.redfish_emulator) runs meets the next request by the new rules, without a restart.
  - A run that fails can be repeated. For each rule and node the decisions follow from O(seed) alone, and the next
    decision is for the next request of that node. Rules that change, and a restart of the service, begin anew.
  - By Redfish, the account C(operator) meets only faults of connections, so that M(nometal.ipi.bmc_info) reports how
    things are.
  - By IPMI, C(status) is the completion code for a busy node, what would be reset gets no answer, and
    C(connection-refused) refuses sessions. There are no faults of media and certificates, and C(path) and C(methods)
    must be left out.
  - C(lab_spec.bmc.faults) declares the same for a whole lab. The stage C(bmc) restores what is declared there.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.bmc_service
options:
  seed:
    description: Seed of the decisions, up to 2147483647.
    type: int
    default: 0
  rules:
    description:
      - The faults, in the order in which a request meets them. The first that answers a request ends it.
      - None removes all faults.
    type: list
    elements: dict
    default: []
    suboptions:
      fault:
        description:
          - What goes wrong.
          - With V(latency), requests wait for O(rules[].milliseconds) before they are carried out.
          - With V(status), they are answered with O(rules[].status), and not carried out.
          - With V(connection-reset), their connection is reset instead of an answer.
          - With V(credentials-expired), they are answered with 401, and all sessions of their account end.
          - With V(reboot), all requests about the node are reset for O(rules[].seconds), and its sessions end.
          - With V(power-state-wrong), a system that is on is shown as off, and the other way round.
          - With V(power-ignored) and V(boot-ignored), a reset, or a change of the system such as a boot override, is
            answered as if it were done, and nothing happens.
          - With V(media-failed), InsertMedia fails as if the image server did not answer.
          - With V(media-stalled), InsertMedia begins only after O(rules[].seconds).
          - With V(connection-refused), a new connection is reset before anything is asked by it.
          - With V(certificate-changed), a new connection is shown a certificate that no CA has signed. The last two
            concern whoever connects.
        type: str
        required: true
        choices:
          - latency
          - status
          - connection-refused
          - connection-reset
          - certificate-changed
          - credentials-expired
          - reboot
          - power-state-wrong
          - power-ignored
          - boot-ignored
          - media-failed
          - media-stalled
      nodes:
        description:
          - Names of the VMs with this fault. None means all, and requests that are about no VM, such as a login.
          - A request without a VM in its path is about the VM whose account it names.
        type: list
        elements: str
        default: []
      methods:
        description: HTTP methods of the requests. None means all.
        type: list
        elements: str
        choices: [GET, HEAD, POST, PATCH, PUT, DELETE]
        default: []
      path:
        description: Path of the requests, in which C(*) matches any text.
        type: str
        default: "*"
      rate:
        description: Percentage of these requests that meet the fault, from 1 to 100.
        type: int
        default: 100
      after:
        description: Number of these requests of a node before the first that can meet the fault.
        type: int
        default: 0
      times:
        description: How often it happens to each node at most.
        type: int
      status:
        description: The HTTP status, from 400 to 599. Required with O(rules[].fault=status), and only there.
        type: int
      milliseconds:
        description: The delay, at most 600000. Required with O(rules[].fault=latency), and only there.
        type: int
      seconds:
        description:
          - How long it lasts, at most 86400.
          - Required with O(rules[].fault=reboot) and O(rules[].fault=media-stalled), and only there.
        type: int
"""

EXAMPLES = r"""
- name: Have a third of all changes fail, and one node slow
  nometal.ipi.bmc_faults:
    lab: demo
    seed: 42
    rules:
      - fault: status
        status: 503
        methods: [POST, PATCH]
        rate: 33
      - fault: latency
        milliseconds: 2500
        nodes: [demo-control-plane-0]

- name: Have the first image of each node fail, and its BMC reboot once during the deployment
  nometal.ipi.bmc_faults:
    lab: demo
    rules:
      - fault: media-failed
        times: 1
      - fault: reboot
        seconds: 20
        after: 30
        times: 1

- name: Have no faults any more
  nometal.ipi.bmc_faults:
    lab: demo
"""

RETURN = r"""
rules:
  description: The faults as the service has them now, with all keys. Null stands for keys that are not given.
  returned: success
  type: list
  elements: dict
  sample:
    - fault: media-failed
      nodes: []
      methods: []
      path: "*"
      rate: 100
      after: 0
      times: 1
      status: null
      milliseconds: null
      seconds: null
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [write faults]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.faults import BmcFaults
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec
from ansible_collections.nometal.ipi.plugins.module_utils._lab.faults import Faults

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    **argument_spec(Faults),
}


def main() -> None:
    run_module(ARGUMENTS, BmcFaults.run)


if __name__ == "__main__":
    main()
