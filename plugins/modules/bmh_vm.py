#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: bmh_vm
short_description: Virtual machines that stand for bare metal hosts
version_added: 0.1.0
description:
  - Makes VMs as declared, with their disks, and changes or removes them; all of a lab in one task.
  - Power is the business of their BMC. No VM is started, stopped or rebooted, but for O(state=absent) and O(exclusive),
    which power off what they remove. A change to a running VM is written down, and takes effect with its next power
    cycle.
  - What else the BMC owns stays as it is, such as the boot order, the medium in the CD-ROM drive, the boot mode, the
    NVRAM and the password of a console. So does what others have added to a VM.
  - A VM's metadata in libvirt name its owner. One without, or with another owner, is never touched and cannot be
    adopted.
  - A VM that was undefined is made again around its disks, as long as their files show for which VM they were
    made. That is an extended attribute, or a file beside the disk where the file system has none.
  - Disks are thin. They grow, those of running VMs while they run, and never shrink. One that is no longer declared is
    taken out of its VM and kept in the pool. Disks are destroyed with O(state=absent), O(exclusive) and O(recreate)
    only.
  - All that is wrong is said at once, for each VM, before anything is changed.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.libvirt
attributes:
  check_mode:
    description:
      - Changes nothing and reports what would be changed, also on a host where nothing is installed yet.
      - A network, a bridge or a storage pool that is missing or not started is a warning, for an earlier task may be
        about to make or start it.
options:
  lab:
    description: Name of the lab that owns the VMs. Lower case letters, digits and inner hyphens.
    type: str
    aliases: [owner]
    required: true
  pool:
    description: libvirt storage pool of the disks, whose volumes are files. Required for VMs with disks.
    type: str
  vms:
    description:
      - The VMs, as C(lab.nodes) of the lab model lists them.
      - With O(state=present), each needs O(vms[].vm_name), O(vms[].uuid), O(vms[].vcpus) and O(vms[].memory_mib).
      - With O(state=absent), their names suffice; an empty list means all VMs of O(lab).
    type: list
    elements: dict
    default: []
    suboptions:
      vm_name:
        description: Name of the VM, up to 200 letters, digits, dots, hyphens and underscores.
        type: str
        required: true
      name:
        description: Name of the host that the VM stands for, in lower case. By default O(vms[].vm_name).
        type: str
      uuid:
        description:
          - UUID of the VM, by which its BMC knows it. Required with O(state=present); C(uuidgen) makes one.
          - A VM that is there keeps its own, and another is refused.
        type: str
      vcpus:
        description: Number of virtual CPUs, 255 at most. Required with O(state=present).
        type: int
      memory_mib:
        description: Memory in MiB, 128 at least. Required with O(state=present).
        type: int
      cpu_mode:
        description:
          - What CPU the guest sees. V(auto) is V(host-passthrough) under KVM, and V(maximum) otherwise.
        type: str
        choices: [auto, host-passthrough, host-model, maximum]
        default: auto
      machine:
        description: Machine type, V(q35) or one of its versions, such as V(pc-q35-7.2).
        type: str
        default: q35
      domain_type:
        description:
          - V(auto) is V(kvm) where a guest of a few instructions is seen to run under KVM, and V(qemu) otherwise. That
            is decided when the VM is made.
        type: str
        choices: [auto, kvm, qemu]
        default: auto
      firmware:
        description:
          - V(uefi-secure) enforces secure boot with the keys that the distribution enrols, and V(uefi) does not.
          - libvirt chooses the files by the distribution's own firmware descriptors.
          - The BMC may choose otherwise since. It is changed only when this option changes, and then the NVRAM is made
            anew.
        type: str
        choices: [uefi, uefi-secure, bios]
        default: uefi
      tpm:
        description: Whether the VM has an emulated TPM 2.0. The host needs swtpm for it.
        type: bool
        default: false
      disks:
        description: The disks, 20 at most. The first one is the root disk.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: Name of the volume. By default, the VM's name with the disk's number and format.
            type: str
          size_bytes:
            description: Size in bytes, a multiple of 512 from 1 MiB to 64 TiB.
            type: int
            required: true
          format:
            description: Format of the volume. Both are thin.
            type: str
            choices: [qcow2, raw]
            default: qcow2
          bus:
            description:
              - How the guest sees it. V(nvme) needs a libvirt that emulates it, and is refused by
                others.
            type: str
            choices: [scsi, virtio, sata, nvme]
            default: scsi
          serial:
            description: Serial number, 20 characters at most.
            type: str
          rotational:
            description: Whether the disk says that it rotates. Only V(scsi) and V(sata) can say so.
            type: bool
      nics:
        description: The network cards, 32 at most. Each is plugged into a network or a bridge.
        type: list
        elements: dict
        default: []
        suboptions:
          mac:
            description: MAC address.
            type: str
            required: true
          network:
            description: libvirt network that it is plugged into. It must be started.
            type: str
          bridge:
            description: Bridge of the host that it is plugged into.
            type: str
          model:
            description: Model of the card.
            type: str
            choices: [virtio, e1000e]
            default: virtio
          boot_order:
            description:
              - Place among the cards in the boot order that a new VM begins with, which is its disks, its cards and its
                CD-ROM drive. A card without is not booted from.
            type: int
          role:
            description: What the card is for. It has no meaning here, and may be given as well.
            type: str
      boot_mac:
        description: MAC address that the host boots from. By default, that of the card that is first in the boot order.
        type: str
      root_device_hints:
        description:
          - How the installer knows the root disk, by C(deviceName), C(hctl), C(model), C(vendor), C(serialNumber),
            C(minSizeGigabytes), C(wwn) or C(rotational). By default, by the serial number of the first disk.
        type: dict
      bmc:
        description:
          - Where the VM's BMC is, with C(protocol), C(host), C(port) and C(address). Only C(address), its URL, has a
            meaning here.
        type: dict
      role:
        description: What the host is for. It has no meaning here, and may be given as well.
        type: str
      installer:
        description: Whether the installer gets the host. It has no meaning here, and may be given as well.
        type: bool
      hypervisor:
        description: The machine that carries the VM. It has no meaning here, and may be given as well.
        type: str
      fqdn:
        description: The host's full name. It has no meaning here, and may be given as well.
        type: str
      ips:
        description: The host's addresses. They have no meaning here, and may be given as well.
        type: list
        elements: str
      network_config:
        description: The host's own network configuration. It has no meaning here, and may be given as well.
        type: dict
  exclusive:
    description:
      - Whether VMs of O(lab) that are not in O(vms) are removed, as O(state=absent) removes them, with their disks.
      - Otherwise they stay, and RV(former) names them.
    type: bool
    default: false
  recreate:
    description:
      - Whether a disk that cannot become as declared is destroyed and made anew, with nothing in it. Such a disk is
        larger than declared, or has another format. It is refused for a running VM, and if
        others depend on the disk.
      - Of role node_vms, this is C(node_vms_recreate).
    type: bool
    default: false
  protect:
    description:
      - Why no VM and no disk may be destroyed, for instance because a cluster is installed on them. What O(exclusive)
        or O(recreate) would destroy is refused then, and this text ends the message.
      - Empty, they may be.
    type: str
    default: ""
  state:
    description:
      - Whether the VMs are to be there, or gone. V(absent) powers them off, and removes them with their NVRAM, their
        TPM's state, all disks that were made for them, their logs and what libvirt has left of runs that
        ended with the host's own; and nothing else.
      - Nothing is removed if another VM uses one of the disks by now, or if an image is based on one, whether a VM has
        that image or it merely lies in a storage pool. An image that cannot be read counts as based on it.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Make the VMs of the model
  nometal.ipi.bmh_vm:
    lab: "{{ lab.name }}"
    pool: "{{ lab.storage_pool.name }}"
    vms: "{{ lab.nodes }}"

# A whole node, with all that it needs on the host.
- name: Make a storage pool for its disk
  nometal.ipi.storage_pool:
    name: nometal-single
    uuid: 4b1d7c52-90ae-4f36-8d1c-2f6a5be3c901
    path: /var/lib/libvirt/images/nometal-single

- name: Make a network for its card
  nometal.ipi.libvirt_bridge_net:
    name: nometal-single
    lab: single
    uuid: a90c6d3e-17f4-4b28-9e5d-c3b7f0826e14
    bridge: nm-single
    domain: single.lab.example.test
    addresses:
      - {cidr: 192.168.127.0/24, gateway: 192.168.127.1}
    dhcp:
      ranges:
        - {start: 192.168.127.100, end: 192.168.127.199}

- name: Make one node
  nometal.ipi.bmh_vm:
    lab: single
    pool: nometal-single
    vms:
      - vm_name: single-worker-0
        name: worker-0
        uuid: 7e2f9a14-3c5b-4d80-a6e1-58c0d94b7f23
        vcpus: 4
        memory_mib: 8192
        firmware: uefi-secure
        disks:
          - {size_bytes: 128849018880, serial: single-worker-0}
        nics:
          - {mac: "52:54:00:5d:a7:31", network: nometal-single, boot_order: 1}
  register: made

- name: Remove one VM with its disks
  nometal.ipi.bmh_vm:
    lab: single
    vms: [{vm_name: single-worker-0}]
    state: absent

- name: Remove all VMs of the lab
  nometal.ipi.bmh_vm:
    lab: demo
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order. Those of one kind are done at the same time.
  returned: success
  type: list
  elements: str
  sample: [define single-worker-0, create disk single-worker-0-0.qcow2]
vms:
  description: For each VM what a BareMetalHost needs.
  returned: success with O(state=present)
  type: list
  elements: dict
  contains:
    name:
      description: Name of the host.
      type: str
    vm_name:
      description: Name of the VM.
      type: str
    uuid:
      description: UUID, which is in the BMC's address.
      type: str
    boot_mac:
      description: MAC address that the host boots from.
      type: str
    boot_mode:
      description: V(legacy), V(UEFI) or V(UEFISecureBoot).
      type: str
    root_device_hints:
      description: How the installer knows the root disk.
      type: dict
    bmc_address:
      description: Address of the BMC, if one was given.
      type: str
    console:
      description: The file that holds all that the VM says on its serial console.
      type: str
    pending:
      description: What of a running VM takes effect with its next power cycle.
      type: list
      elements: str
  sample:
    - name: worker-0
      vm_name: single-worker-0
      uuid: 7e2f9a14-3c5b-4d80-a6e1-58c0d94b7f23
      boot_mac: "52:54:00:5d:a7:31"
      boot_mode: UEFISecureBoot
      root_device_hints: {serialNumber: single-worker-0}
      bmc_address: null
      console: /var/log/libvirt/qemu/single-worker-0-console.log
      pending: [memory_mib]
former:
  description: VMs of the owner that are not in O(vms), and stay.
  returned: success with O(state=present)
  type: list
  elements: str
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.declared import Declared
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.resource import LabVms

ARGUMENTS = {
    **argument_spec(Declared),
    "exclusive": {"type": "bool", "default": False},
    "recreate": {"type": "bool", "default": False},
    "protect": {"type": "str", "default": ""},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def main() -> None:
    run_module(ARGUMENTS, LabVms.run)


if __name__ == "__main__":
    main()
