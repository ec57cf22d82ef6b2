#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_doctor
short_description: Tell whether a host can carry a lab
version_added: 0.1.0
description:
  - Measures the host and compares it with what one lab asks of it. Each check ends as C(ok), C(warning) or C(blocker),
    with what was measured and what to do.
  - Only reads. It needs nothing but Python, works on a host on which nothing is installed yet, and answers within ten
    seconds, usually in one.
  - What the lab itself has on the host already (its networks, VMs, pool, BMC service) does not conflict.
  - It does not fail because of a blocker; whoever calls it decides.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.read_only
options:
  lab:
    description: The lab's name. By it the installer's bootstrap VM of this lab is known.
    type: str
    aliases: [name]
    default: ""
  domain:
    description: The lab's domain. Names in it that C(/etc/hosts) holds would shadow the lab's DNS.
    type: str
    default: ""
  install:
    description:
      - Whether a real installation is configured. It needs KVM, and room for the installer's bootstrap VM.
      - A rehearsal does without, and gets warnings instead of blockers.
    type: bool
    default: false
  installed:
    description: Whether the cluster of that installation is there already, so that no bootstrap VM needs room.
    type: bool
    default: false
  prepared:
    description: Whether the host has been prepared. What is missing then is a blocker, before it is work to be done.
    type: bool
    default: false
  memory_mib:
    description: Memory of this lab's VMs on this host, in MiB.
    type: int
    default: 0
  vcpus:
    description: Virtual CPUs of this lab's VMs on this host.
    type: int
    default: 0
  disk_bytes:
    description: Full size of the disks of this lab's VMs on this host, in bytes.
    type: int
    default: 0
  storage_pool:
    description: The lab's storage pool.
    type: dict
    suboptions:
      name:
        description: Its name.
        type: str
        default: ""
      uuid:
        description: Its UUID. A pool of the same name with another one is another owner's.
        type: str
        default: ""
      path:
        description: Its directory, which need not exist yet.
        type: str
        default: /var/lib/libvirt/images
  networks:
    description:
      - The lab's libvirt networks, as the model lists them. Read are C(name), C(uuid), C(bridge) and of each of
        C(addresses) its C(cidr) and C(gateway); other keys are ignored.
      - The gateway is the host's own address in the network, on which libvirt serves DNS.
      - A libvirt network of the same name with another UUID is another owner's.
    type: list
    elements: dict
    default: []
  vms:
    description:
      - The lab's VMs on this host, as the model lists its nodes. Read are C(vm_name) and C(uuid); other keys are
        ignored.
    type: list
    elements: dict
    default: []
  bridges:
    description: Bridges that the lab uses beside those of its libvirt networks.
    type: list
    elements: str
    default: []
  shared_bridges:
    description:
      - Those of O(bridges) that may have other links on them, such as the host's uplink, since the lab is to share
        that LAN.
    type: list
    elements: str
    default: []
  own_links:
    description:
      - Network links of this lab, its veth ends for instance. A bridge with one of them as a port is this lab's.
    type: list
    elements: str
    default: []
  own_processes:
    description:
      - Pieces of the command line or of the systemd unit by which a process is known as this lab's, so that its ports
        are not taken by a stranger. The dnsmasq of O(networks) is known without.
    type: list
    elements: str
    default: []
  ports:
    description:
      - Ports on which this lab's services are to listen, beside the DNS of O(networks).
    type: list
    elements: dict
    default: []
    suboptions:
      address:
        description: The address, which the host need not have yet.
        type: str
        required: true
      port:
        description: The port.
        type: int
        required: true
      protocol:
        description: The protocol.
        type: str
        choices: [tcp, udp]
        default: tcp
  model:
    description:
      - The lab's model, as filter nometal.ipi.lab_model gives it. By it the lab is compared with all labs that role
        nometal.ipi.host_prep has recorded on the host. Without it, it is not.
    type: dict
    default: {}
  qemu:
    description: The qemu program that the KVM check runs, if not the distribution's.
    type: path
    default: ""
"""

EXAMPLES = r"""
- name: Look at a host with no lab in mind
  nometal.ipi.host_doctor:
  register: examination

- name: Show the table
  ansible.builtin.debug:
    var: examination.table

- name: Ask whether a host can carry a small lab
  nometal.ipi.host_doctor:
    lab: demo
    domain: demo.lab.example.test
    memory_mib: 2048
    vcpus: 4
    disk_bytes: 4294967296
    storage_pool:
      name: nometal-demo
      uuid: 6c0f5a3e-6c39-5d5c-9c52-3a0f8a0f6d01
      path: /var/lib/libvirt/images/nometal-demo
    networks:
      - name: demo
        uuid: 6c0f5a3e-6c39-5d5c-9c52-3a0f8a0f6d02
        bridge: demo-machine
        addresses:
          - cidr: 192.168.126.0/24
            gateway: 192.168.126.1
    bridges: [baremetal]
    ports:
      - address: 192.168.126.1
        port: 8000
  register: examination

- name: Stop at a blocker
  ansible.builtin.assert:
    that: not examination.blockers
    fail_msg: "{{ examination.table }}"
"""

RETURN = r"""
checks:
  description: All checks, in a fixed order.
  returned: always
  type: list
  elements: dict
  contains:
    check:
      description: Name of the check.
      type: str
    status:
      description: C(ok), C(warning) or C(blocker).
      type: str
    code:
      description: What was found, for programs; it begins with the name of the check.
      type: str
    measured:
      description: What was found, in words.
      type: str
    advice:
      description: What to do; empty when the check is ok.
      type: str
    facts:
      description: What was found, for programs; by which keys depends on the code.
      type: dict
  sample:
    - check: kvm
      status: warning
      code: kvm.no-device
      measured: there is no /dev/kvm
      advice: Load the module kvm_intel. The rehearsal runs without KVM, more slowly (TCG).
      facts: {cpu_flag: vmx}
blockers:
  description: Names of the checks that are blockers.
  returned: always
  type: list
  elements: str
  sample: [memory]
blocking:
  description: What the blockers are, with what to do, one text each.
  returned: always
  type: list
  elements: str
  sample:
    - "memory: 65536 MiB needed, 30000 MiB in all. Give the nodes less memory, take fewer nodes, or use a larger host."
warnings_found:
  description: Names of the checks that are warnings. (Ansible keeps the key C(warnings) for itself.)
  returned: always
  type: list
  elements: str
  sample: [kvm, clock]
table:
  description: The checks as lines of text, at most 110 columns wide.
  returned: always
  type: list
  elements: str
  sample:
    - "ok       cpu     4 virtual CPUs on 2 CPUs, 2.0 to 1"
    - "BLOCKER  memory  65536 MiB needed, 3912 MiB free, 7963 MiB in all"
    - "                 -> Give the nodes less memory, take fewer nodes, or use a larger host."
kvm_works:
  description: Whether a guest ran under KVM.
  returned: always
  type: bool
  sample: true
domain_type:
  description: The libvirt domain type for the lab's VMs; C(kvm) when KVM works and qemu's user may use it, or C(qemu).
  returned: always
  type: str
  sample: kvm
"""

from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.examination import CHECKS
from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.table import table
from ansible_collections.nometal.ipi.plugins.module_utils._core.checks import examine
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import BLOCKER, OK, WARNING, Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs, needs_from

ARGUMENTS = argument_spec(Needs)


def result_of(findings: list[Finding]) -> dict[str, Any]:
    severities = {finding.subject: finding.severity for finding in findings}
    blockers = [finding for finding in findings if finding.severity == BLOCKER]
    works = severities["kvm"] == OK
    return {
        "changed": False,
        "checks": [_row(finding) for finding in findings],
        "blocking": list(map(str, blockers)),
        "blockers": [finding.subject for finding in blockers],
        "warnings_found": [check for check, severity in severities.items() if severity == WARNING],
        "table": table(findings),
        "kvm_works": works,
        "domain_type": "kvm" if works and severities["kvm_access"] == OK else "qemu",
    }


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.subject,
        "status": finding.severity,
        "code": finding.code,
        "measured": finding.message,
        "advice": finding.advice,
        "facts": dict(finding.facts),
    }


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    return result_of(examine(CHECKS, needs_from(params)))


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
