#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: redfish_emulator
short_description: The BMCs of one lab's VMs
version_added: 0.1.0
description:
  - Runs one service per lab that is the BMC of each of its VMs, by Redfish or, for VMs that want it, by IPMI.
  - Each VM has credentials of its own, and the lab has some for people, account C(operator). They are made once, and
    stand in a file that only root reads; what the service is given is hashed. An entry removed from that file is made
    anew by the next run, and a password edited in it becomes the one that counts. Usernames are put back.
  - TLS is with a certificate of the lab's own CA, which stays. The certificate is made anew when addresses change, and
    long before it ends.
  - All that is wrong with the arguments, and what stands in the way on the host, is said at once, before anything is
    changed. So are ports that others hold, VMs of others, and addresses that the host does not have.
  - The service itself has no privileges and no access to libvirt. It asks a second process, its broker, for one of a
    few operations on the lab's own VMs and images. systemd keeps both running, hardened; where that does not run,
    supervisor processes do, which libvirt's network hook starts at boot.
  - Changes of nodes, credentials and certificate reach a running service; connections stay. Only other addresses, TLS
    switched on or off, and other software restart it.
  - Returns when the service answers for every VM, or fails with the last words of the service.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.libvirt
  - nometal.ipi.bmc_service
options:
  listen:
    description:
      - Where the service listens by Redfish, on addresses that the host has in the lab.
      - Read are C(address) and C(port), from 1024. The first is the one that clients get.
    type: list
    elements: dict
    default: []
  tls:
    description: Whether Redfish is by https.
    type: bool
    default: true
  names:
    description: Domain names that the certificate is to hold beside the addresses.
    type: list
    elements: str
    default: []
  nodes:
    description:
      - The VMs that get a BMC, as the lab model lists its nodes. They must be there, and of the lab, as
        M(nometal.ipi.bmh_vm) makes them.
      - A VM of the lab that is not listed any more keeps its BMC, with its credentials, until it is gone.
      - Read are C(uuid) and C(vm_name), which must be the same VM's, and C(bmc.address), the address that clients are
        told, by default what follows from the others.
      - C(bmc.protocol) is one that C(lab_spec.bmc.protocol) takes, by default C(redfish-virtualmedia). By IPMI also
        C(bmc.host) and C(bmc.port) are read, where the VM's BMC listens.
    type: list
    elements: dict
    default: []
  ipmi_addresses:
    description: Further addresses of the host in the lab, on which the IPMI BMC of each VM listens at the VM's port.
    type: list
    elements: str
    default: []
  media:
    description: What is let in as virtual media.
    type: dict
    suboptions:
      max_bytes:
        description: Largest image, in bytes, from 1 MiB to 16 TiB.
        type: int
        default: 21474836480
      timeout:
        description: Seconds that a download may take, at most a day.
        type: int
        default: 3600
      ca_file:
        description:
          - File with the certificates to trust at image servers, rather than the host's. The service must be able to
            read it, which it is not below C(/home), C(/root) and C(/tmp).
        type: path
      networks:
        description:
          - Networks in which images may be fetched from this host itself. From its own addresses, also loopback and
            link-local ones, nothing is fetched otherwise, neither directly nor by a redirect or a name that resolves
            to one.
        type: list
        elements: str
        default: []
  restart_timeout:
    description: Seconds that a guest has for a graceful restart, by Redfish, before it is reset; at most an hour.
    type: int
    default: 120
  power_restore:
    description:
      - What becomes of a VM when the host has started, after a reboot or a power cut. C(LastState) switches it on again
        if it was on. VMs are switched on one after another.
      - A client of its BMC may set another one for a VM, which stays until this option changes.
    type: str
    choices: [AlwaysOff, LastState, AlwaysOn]
    default: AlwaysOff
  user:
    description:
      - The system user as whom the service runs, with a group of the same name. It must not be root, and not be in the
        group C(libvirt).
    type: str
    default: nometal-bmc
  broker_user:
    description:
      - The system user as whom the service's broker runs, with a group of the same name. It must be in the group
        C(libvirt), and neither be root nor O(user).
    type: str
    default: nometal-bmc-broker
  software:
    description: Directory in which role nometal.ipi.bmc_emulation has installed the service's software.
    type: path
    default: /opt/nometal/bmc
  state:
    description: Whether the BMCs are to be there, or gone with their credentials, certificates and media.
    type: str
    choices: [present, absent]
    default: present
requirements:
  - cryptography 3.4 or later for the managed host's Python, as role nometal.ipi.host_prep installs it
"""

EXAMPLES = r"""
- name: Have users as whom the services and their brokers run
  ansible.builtin.user:
    name: "{{ item.name }}"
    comment: BMCs of nometal.ipi
    system: true
    home: /var/lib/nometal/bmc
    create_home: false
    shell: /usr/sbin/nologin
    groups: "{{ item.groups }}"
    append: true
  loop:
    - {name: nometal-bmc, groups: []}
    - {name: nometal-bmc-broker, groups: [libvirt]}

- name: Give the VMs of the model their BMCs
  nometal.ipi.redfish_emulator:
    lab: "{{ lab.name }}"
    listen: "{{ lab.bmc.endpoints }}"
    nodes: "{{ lab.nodes }}"

- name: Give one VM its BMC
  nometal.ipi.redfish_emulator:
    lab: single
    listen:
      - address: 192.168.127.1
        port: 8000
    nodes:
      - vm_name: single-worker-0
        uuid: 7e2f9a14-3c5b-4d80-a6e1-58c0d94b7f23

- name: Take them away
  nometal.ipi.redfish_emulator:
    lab: demo
    state: absent
"""

RETURN = r"""
nodes:
  description: Of each VM where its BMC is, and where the credentials for it stand. They themselves are not returned.
  returned: when O(state=present)
  type: list
  elements: dict
  sample:
    - name: demo-worker-0
      uuid: c5d81e07-6a2b-4f39-b7c4-90e3fa1d5826
      address: redfish-virtualmedia+https://192.168.126.1:8000/redfish/v1/Systems/c5d81e07-6a2b-4f39-b7c4-90e3fa1d5826
      credentials: {file: /var/lib/nometal/bmc/demo/credentials.json, key: demo-worker-0}
undeclared:
  description:
    - The lab's VMs that O(nodes) does not list. They keep their BMCs for as long as they are there.
    - C(address) is null for one that has none, since by IPMI there is no port left for it.
  returned: when O(state=present)
  type: list
  elements: dict
  sample:
    - name: demo-worker-1
      address: redfish-virtualmedia+https://192.168.126.1:8000/redfish/v1/Systems/8a2f1c6e-5b0d-4e57-9c3a-d41e70b6f2a9
ca_file:
  description: The certificate of the lab's CA, on the managed host. Null without TLS.
  returned: when O(state=present)
  type: str
  sample: /var/lib/nometal/bmc/demo/tls/ca.pem
kept:
  description: What others have where the service has its things, which stays, each with the reason.
  returned: when O(state=absent)
  type: list
  elements: str
  sample: ["/var/lib/nometal/bmc/demo/notes.txt (not made by nometal.ipi)"]
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: ["write credentials (new: demo-worker-1)", write configuration]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.resource import BmcService
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec

ARGUMENTS = {
    **argument_spec(Lab),
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    run_module(ARGUMENTS, BmcService.run)


if __name__ == "__main__":
    main()
