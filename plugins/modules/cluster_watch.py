#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_watch
short_description: Watch an installation until it ends, and find out why it stands still
version_added: 0.1.0
description:
  - Reads the log of the OpenShift installer that M(nometal.ipi.cluster_install) has started for a lab, and tells, in a
    file that M(nometal.ipi.follow) shows, each change of its stage, of each host and of the cluster's operators.
  - When nothing has changed for longer than it should, it looks at the bootstrap VM, the nodes and their BMCs, at what
    Ironic and metal3 say, at the API's addresses and name, and at the host, and tells what is wrong and what to do.
  - Once bootstrapping is over, control plane nodes that are switched off are reported at once, with the commands that
    switch them on.
  - A node that hangs when it has been switched on is reset, once in a run of the installer. A node hangs when it has
    said nothing for ten minutes, neither on its console nor in the network. So is one whose boot stops halfway while
    it is to be inspected.
  - A control plane node that holds the address of the API before bootstrapping is over is reported, with the command
    that has it give the address back. With O(heal=true), that is run.
  - It only watches. When it is ended, the installation goes on, and can be watched again. Who begins to watch a lab
    takes over from who watched it before.
  - Whatever is secret in the log is left out. Of the password of the cluster, the path of its file is reported.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.libvirt
attributes:
  check_mode:
    support: full
    description: It looks once and returns how far the installation is, without events and resets.
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  domain:
    description: The lab's domain, below which C(api) is.
    type: str
    default: ""
  vips:
    description: The cluster's virtual addresses, C(api) and C(ingress), a list each.
    type: dict
    default: {}
  nodes:
    description: The lab's nodes on this host, as the lab model lists them.
    type: list
    elements: dict
    default: []
  bootstrap:
    description: How the bootstrap VM gets its address, C(mode), C(ips) and C(mac), as the lab model has it.
    type: dict
    default: {}
    version_added: 0.2.0
  bmc_home:
    description: Directory of what labs' BMC services keep, as of M(nometal.ipi.redfish_emulator).
    type: path
    default: /var/lib/nometal/bmc
  tools:
    description: Directory with C(oc), by which the cluster is asked once it has an API. Otherwise that of the PATH.
    type: path
  patience:
    description:
      - By what the times are multiplied after which something is taken for standing still; more for slow hosts.
    type: float
    default: 1.0
  heal:
    description:
      - Whether a control plane node that holds the address of the API too early is made to give it back, once in a run
        of the installer, by SSH as C(core).
    type: bool
    default: false
    version_added: 0.2.0
  ssh_key:
    description:
      - File on this host with the private key of the cluster's machines, by which the bootstrap VM is asked what its
        services say, if something stands still. Otherwise the keys of the user who runs this are tried.
    type: path
    version_added: 0.2.0
seealso:
  - module: nometal.ipi.cluster_install
  - module: nometal.ipi.follow
"""

EXAMPLES = r"""
- name: Watch the installation
  nometal.ipi.cluster_watch:
    lab: "{{ lab.name }}"
    domain: "{{ lab.domain }}"
    vips: "{{ lab.vips }}"
    bootstrap: "{{ lab.bootstrap }}"
    nodes: "{{ lab.nodes }}"
    tools: "{{ demo_tools.directory }}"
  async: 14400
  poll: 0
  register: demo_watch

- name: Follow it
  nometal.ipi.follow:
    job: "{{ demo_watch.ansible_job_id }}"
    events: "/run/nometal/install/{{ lab.name }}/events.jsonl"
    limit: 14400
  register: demo_installation
"""

RETURN = r"""
state:
  description:
    - What became of the installation, C(installed), C(failed), C(interrupted), or C(nothing) if there never was one.
    - In check mode also C(running). The module itself succeeds in any case.
  returned: always
  type: str
  sample: installed
exit_code:
  description: The installer's exit code, none if it was killed.
  returned: always
  type: int
  sample: 0
words:
  description: How it ended, in words.
  returned: always
  type: str
  sample: the API did not come up in time, or bootstrapping did not complete
stage:
  description: The last stage that it reached.
  returned: always
  type: str
  sample: complete
stages:
  description: Where the time went in this run, C(seconds) beside what is C(usual) in labs.
  returned: always
  type: list
  elements: dict
  sample:
    - {stage: api, seconds: 540, usual: 600}
hosts:
  description: The last state of each host that the installer told one of.
  returned: always
  type: dict
  sample: {master-0: provisioned}
operators:
  description: How far the operators are, in words.
  returned: always
  type: str
  sample: 862 of 862 (100%)
errors:
  description: Errors that the installer has logged in its last run.
  returned: always
  type: list
  elements: str
  sample: []
failure:
  description: The first error of the failure, as a sentence. Empty unless the installation has failed.
  returned: always
  type: str
  sample: ""
troubles:
  description: Bad news in the order in which they came, also those that were overcome.
  returned: always
  type: list
  elements: str
  sample: ["master-0: inspection error: timeout reached while inspecting the node"]
diagnosis:
  description: What was found to be wrong, and what to do.
  returned: always
  type: list
  elements: str
  sample: ["bootstrap: demo-x7k2p-bootstrap is paused, as its disk cannot be written. Make room on the host (`df`)."]
findings:
  description: What C(diagnosis) says, for programs, in the same order.
  returned: always
  type: list
  elements: dict
  contains:
    code:
      description: What is wrong.
      type: str
    subject:
      description: What is concerned, such as C(host), C(API), C(bootstrap), C(BMC) or a node.
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
      description: What to do.
      type: str
  sample:
    - code: bootstrap.disk-full
      subject: bootstrap
      severity: blocker
      facts: {name: demo-x7k2p-bootstrap}
      message: demo-x7k2p-bootstrap is paused, as its disk cannot be written.
      advice: Make room on the host (`df`).
healed:
  description: Names of control plane nodes that were made to give back the address of the API.
  returned: always
  type: list
  elements: str
  sample: []
power_cycled:
  description: Nodes that hung and were reset.
  returned: always
  type: list
  elements: str
  sample: []
console_url:
  description: Where the cluster's web console is.
  returned: always
  type: str
  sample: https://console-openshift-console.apps.demo.lab.example.test
api_url:
  description: Where the cluster's API is.
  returned: always
  type: str
  sample: https://api.demo.lab.example.test:6443
kubeconfig:
  description: Path of the administrator's kubeconfig on the host; empty if nothing is installed.
  returned: always
  type: str
  sample: /var/lib/nometal/install/demo/cluster/auth/kubeconfig
password_file:
  description: Path of the file with the password of C(kubeadmin) on the host; empty if nothing is installed.
  returned: always
  type: str
  sample: /var/lib/nometal/install/demo/cluster/auth/kubeadmin-password
"""

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Addressing, Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.one_watch import TakenOver, alone
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import glance
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.watch import Watch
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "domain": {"type": "str", "default": ""},
    "vips": {"type": "dict", "default": {}},
    "nodes": {"type": "list", "elements": "dict", "default": []},
    "bootstrap": {"type": "dict", "default": {}},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "tools": {"type": "path"},
    "patience": {"type": "float", "default": 1.0},
    "heal": {"type": "bool", "default": False},
    "ssh_key": {"type": "path"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def addressing_from(given: dict[str, Any]) -> Addressing:
    mode = given.get("mode") or BootstrapAddress.POOL
    return Addressing(mode, tuple(given.get("ips") or ()), str(given.get("mac") or "").lower())


def installation_from(params: dict[str, Any]) -> Installation:
    return Installation(
        paths=Paths(params["lab"]),
        domain=params["domain"],
        api_vips=params["vips"].get("api", []),
        nodes=params["nodes"],
        bootstrap=addressing_from(params["bootstrap"]),
        bmc_home=params["bmc_home"],
        tools=params["tools"],
        ssh_key=params["ssh_key"],
        libvirt_uri=params["libvirt_uri"],
    )


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    if params["patience"] <= 0:
        raise OperatorError(f"patience is {params['patience']}: must be a number above 0.")
    installation = installation_from(params)
    if check_mode:
        return {"changed": False, **glance(installation)}
    return follow(installation, Watch(installation, params["patience"], params["heal"]))


def follow(installation: Installation, watch: Watch) -> dict[str, Any]:
    try:
        with alone(installation.paths.events.with_name("watch.lock")):
            result = watch.follow()
    except TakenOver:
        raise OperatorError("Another run has begun to watch this installation, and watches it from now on.") from None
    return {"changed": bool(watch.cycled or watch.healed), **result}


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
