#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: rehearsal
short_description: Every step of an IPI installation, with stand-ins, on a lab as it stands
version_added: 0.1.0
description:
  - Plays the parts of the OpenShift installer, of its bootstrap VM and of Ironic, with guests so small that they run
    anywhere, on the lab's real bridges and through its real BMCs, and tells what an installation would have met.
  - The lab is left as it was found, also when the rehearsal fails. One that was killed is cleared away by the next, or
    with O(state=absent).
  - A VM, a storage pool or a directory that has the name of the rehearsal's bootstrap VM and that another made is
    refused before anything is changed, also in check mode. O(state=absent) leaves it in place and names it.
  - Nodes that are in use are not touched. A node is in use when it is switched on, when its disk carries anything, or
    when a medium is in its drive.
  - It takes a minute or more. M(nometal.ipi.follow) shows how far it is.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.libvirt
attributes:
  check_mode:
    support: full
    description: Nothing is played in check mode; what O(state=absent) would remove is reported.
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  state:
    description: Whether to play it, or to clear away what a killed one has left.
    type: str
    choices: [played, absent]
    default: played
  image:
    description: Path of the guests' image, which M(nometal.ipi.rehearsal_image) makes. Needed to play.
    type: path
  secure_boot:
    description: Whether the image starts where secure boot is enforced, as M(nometal.ipi.rehearsal_image) tells.
    type: bool
    default: true
  domain:
    description: The lab's domain.
    type: str
    default: ""
  bridge:
    description: The bridge that the installer looks for.
    type: str
    default: baremetal
  networks:
    description: The lab's libvirt networks, as the lab model lists them.
    type: list
    elements: dict
    default: []
  veth_pairs:
    description: The pairs that tie them to bridges, as the lab model lists them.
    type: list
    elements: dict
    default: []
  vips:
    description: The cluster's virtual addresses, C(api) and C(ingress), a list each.
    type: dict
    default: {}
  bootstrap:
    description: How the bootstrap VM gets its address, as the lab model has it.
    type: dict
    default: {}
  nodes:
    description: The lab's nodes on this host, as the lab model lists them.
    type: list
    elements: dict
    default: []
  bmc:
    description: How the nodes' BMCs are reached, as the lab model has it.
    type: dict
    default: {}
  provisioning_network:
    description: The installer's part in the network from which nodes boot, as the lab model has it; none without one.
    type: dict
  ntp_servers:
    description: Time servers of the lab.
    type: list
    elements: str
    default: []
  patience:
    description:
      - By how much longer than usual guests are waited for that say nothing and do nothing, and how long all may take.
      - A guest whose console, disks or processors show that it goes on is waited for anyway, four times as long.
    type: float
    default: 1.0
  bmc_home:
    description: Directory of what labs' BMC services keep, as of M(nometal.ipi.redfish_emulator).
    type: path
    default: /var/lib/nometal/bmc
"""

EXAMPLES = r"""
- name: Rehearse the installation
  nometal.ipi.rehearsal:
    lab: "{{ lab.name }}"
    image: "{{ demo_image.path }}"
    domain: "{{ lab.domain }}"
    bridge: "{{ lab.bridge }}"
    networks: "{{ lab.networks }}"
    veth_pairs: "{{ lab.veth_pairs }}"
    vips: "{{ lab.vips }}"
    bootstrap: "{{ lab.bootstrap }}"
    nodes: "{{ lab.nodes }}"
    bmc: "{{ lab.bmc }}"
  register: demo_rehearsal

- name: Clear away what a killed rehearsal has left
  nometal.ipi.rehearsal:
    lab: demo
    state: absent
"""

RETURN = r"""
ok:
  description: Whether all checks passed. The module itself succeeds also if they did not.
  returned: when played
  type: bool
  sample: true
seconds:
  description: How long it took.
  returned: when played
  type: float
  sample: 63.2
table:
  description: The checks, for people.
  returned: when played
  type: list
  elements: str
  sample: ["address   worker-0   ok   192.168.126.30"]
checks:
  description:
    - Each check with C(check), C(who), C(state) (C(ok), C(failed) or C(skipped)), C(expected), C(seen) and C(advice).
    - For programs, it has a C(code), too, and C(facts), by which keys depends on the code. A check that failed has a
      C(cause) as far as it is known, with C(code), C(subject), C(severity), C(facts), C(message) and C(advice).
  returned: when played
  type: list
  elements: dict
  sample:
    - check: address
      who: worker-0
      state: ok
      expected: 192.168.126.30
      seen: 192.168.126.30
      advice: ""
      code: address
      facts: {addresses: [192.168.126.30], servers: []}
      cause: null
stages:
  description: Where the time went.
  returned: when played
  type: list
  elements: dict
  sample:
    - {stage: "bootstrap: boots", seconds: 9.1}
report:
  description:
    - Where the report is on the host. M(nometal.ipi.rehearsal_page) makes a page for browsers of it.
    - Empty if the lab is not registered there.
  returned: when played
  type: str
  sample: /var/lib/nometal/labs/demo/rehearsal.json
bmc_faults:
  description: The faults that the BMCs had on purpose (M(nometal.ipi.bmc_faults)), which may be why checks failed.
  returned: when played
  type: list
  elements: str
  sample: []
in_use:
  description: Nodes that are in use, and why. If there are any, nothing was played.
  returned: when played
  type: list
  elements: str
  sample: []
steps:
  description: What was cleared away, or in check mode would be.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: [clear demo]
kept:
  description: What has the name of the rehearsal's bootstrap VM or lies among its files, is not the lab's, and stays.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: ["VM demo-rehearsal-bootstrap (not made by nometal.ipi)"]
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    NotThereYetError,
    OperatorError,
    run_module,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec, from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report import table
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import rehearsal
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.session import Places

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    **argument_spec(Lab),
    "state": {"type": "str", "choices": ["played", "absent"], "default": "played"},
    "image": {"type": "path"},
    "secure_boot": {"type": "bool", "default": True},
    "patience": {"type": "float", "default": 1.0},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    lab, places = from_dict(Lab, params), Places(Path(params["image"] or "/"), Path(params["bmc_home"]))
    rehearsal.end_on_signal()
    if params["state"] == "absent":
        return removed(lab, places, params["libvirt_uri"], check_mode=check_mode)
    patience = params["patience"]
    if patience <= 0:
        raise OperatorError(f"patience is {patience}: must be a number above 0.")
    if check_mode:
        return foreseen(lab, places, params["libvirt_uri"])
    with connect(params["libvirt_uri"]) as connection, rehearsal.alone(lab.name, patience=patience):
        report = rehearsal.rehearse(lab, places, connection, can_secure_boot=params["secure_boot"], patience=patience)
    return {
        "changed": False,
        **{key: report[key] for key in ("ok", "seconds", "checks", "stages", "in_use", "bmc_faults", "report")},
        "table": [*table.lines(report["checks"]), *table.about_faults(report["bmc_faults"])],
    }


def foreseen(lab: Lab, places: Places, uri: str) -> dict[str, Any]:
    """What a real run refuses, too, before it begins."""
    with suppress(NotThereYetError), connect(uri) as connection:
        rehearsal.refuse_others(lab, places, connection)
    return {"changed": False}


def removed(lab: Lab, places: Places, uri: str, *, check_mode: bool) -> dict[str, Any]:
    try:
        with connect(uri) as connection:
            steps, kept = rehearsal.clear(lab, places, connection, check_mode=check_mode)
    except NotThereYetError:
        steps, kept = rehearsal.clear_files(lab, places, check_mode=check_mode)
    return {"changed": bool(steps), "steps": steps, "kept": kept, "warnings": removal.warnings(kept)}


def main() -> None:
    run_module(ARGUMENTS, run, required_if=[("state", "played", ["image"])])


if __name__ == "__main__":
    main()
