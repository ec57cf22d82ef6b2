#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: rehearsal_image
short_description: The image that the machines of a rehearsal boot
version_added: 0.1.0
description:
  - Makes an ISO of the host's own kernel, Python and C(ip), with an agent that is the guest's first process. Nothing in
    it is from elsewhere than the distribution.
  - It boots as a CD and, written to a disk as it is, as a disk; with BIOS and with UEFI. Where secure boot is enforced
    it boots if the distribution's boot loaders and kernel are signed.
  - What the host does not have, such as GRUB or a kernel in a container, is downloaded from the distribution's packages
    and unpacked, but never installed. The host's boot setup stays as it is.
  - A guest needs 256 MiB of memory with BIOS, and 320 MiB with UEFI, where the kernel is in memory twice for a moment.
  - An image is kept for as long as its agent, the builder, the distribution's release and Python stay the same. It is
    made beside its place, so that there is never half of one.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
options:
  path:
    description: Directory of the images, which is made and removed. All labs of a host share it.
    type: path
    default: /var/cache/nometal/rehearsal
  sources:
    description:
      - The files of the Python package C(agent), text by name. C(main.py) is run. Required with O(state=present).
    type: dict
  packages:
    description: Names of packages that hold what the host may lack. Required with O(state=present).
    type: dict
    suboptions:
      kernel:
        description:
          - Kernels with their modules, the best first. One that the distribution does not have, or that lacks a driver
            of a lab's machines, gives way to the next.
          - Where it takes several packages for one kernel, there are spaces between their names.
        type: list
        elements: str
        required: true
      bios:
        description: GRUB's modules for BIOS and C(grub-mkimage) with its libraries.
        type: list
        elements: str
        required: true
      signed:
        description: The signed boot loaders for UEFI.
        type: list
        elements: str
        required: true
      unsigned:
        description: GRUB's modules for UEFI, where there are no signed boot loaders.
        type: list
        elements: str
        required: true
      network:
        description: What holds C(ipmitool). Libraries that it needs are downloaded with it.
        type: list
        elements: str
        required: true
  network_boot:
    description:
      - Whether the image also holds what it takes to let machines boot from the network, in a file C(bootstrap.tar.gz).
        That is C(dnsmasq) and C(ipmitool), and boot loaders with their configuration.
    type: bool
    default: false
  sata_disks:
    description: Whether any machine has a SATA disk. Otherwise the kernel needs no driver for such disks.
    type: bool
    default: false
  state:
    description: Whether there is to be an image, or none at all.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Make the image
  nometal.ipi.rehearsal_image:
    sources: "{{ dict(files | map('basename') | zip(query('ansible.builtin.file', *files, rstrip=false))) }}"
    packages:
      kernel: [linux-image-cloud-amd64, linux-image-amd64]
      bios: [grub-pc-bin, grub-common]
      signed: [shim-signed, grub-efi-amd64-signed]
      unsigned: [grub-efi-amd64-bin]
      network: [ipmitool]
  vars:
    files: "{{ query('ansible.builtin.fileglob', 'agent/*.py') | sort }}"
  register: image

- name: Remove it
  nometal.ipi.rehearsal_image:
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [build image]
path:
  description: The ISO.
  returned: when there is an image
  type: str
  sample: /var/cache/nometal/rehearsal/image-0a1b2c3d4e5f/node.iso
sha256:
  description: Its checksum.
  returned: when there is an image
  type: str
size:
  description: Its size in bytes.
  returned: when there is an image
  type: int
secure_boot:
  description: Whether it boots where secure boot is enforced.
  returned: when there is an image
  type: bool
kept:
  description: With O(state=absent), what is not the collection's own in the directory, and stays.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: ["/var/cache/nometal/rehearsal/notes.txt (not made by nometal.ipi)"]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.store import RehearsalImage

KINDS = ("kernel", "bios", "signed", "unsigned", "network")
NAMES = {"type": "list", "elements": "str", "required": True}
ARGUMENTS = {
    "path": {"type": "path", "default": "/var/cache/nometal/rehearsal"},
    "sources": {"type": "dict"},
    "packages": {"type": "dict", "options": dict.fromkeys(KINDS, NAMES)},
    "network_boot": {"type": "bool", "default": False},
    "sata_disks": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
RULES = {"required_if": [("state", "present", ["sources", "packages"])]}


def main() -> None:
    run_module(ARGUMENTS, RehearsalImage.run, **RULES)


if __name__ == "__main__":
    main()
