#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: What a host is like, as far as a lab's stages ask
version_added: 0.1.0
description:
  - The distribution, packages, who may use C(/dev/kvm), the labs that are registered on the host, and users of the
    host, in one question.
  - Changes nothing.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.read_only
options:
  home:
    description: Directory in which labs are registered.
    type: path
    default: /var/lib/nometal
  packages:
    description: Whether to list packages.
    type: bool
    default: false
  users:
    description: Names of users to look for.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Ask what the host is like
  nometal.ipi.host_info:
  register: host

- name: Show the labs that are registered there
  ansible.builtin.debug:
    msg: "{{ host.labs | join(', ') }}"
"""

RETURN = r"""
distribution:
  description: The distribution.
  returned: always
  type: dict
  contains:
    name:
      description: Its name, with the release.
      type: str
    id:
      description: What it calls itself for programs.
      type: str
    family:
      description: C(Debian), C(RedHat) or another whose package manager is known; empty if it belongs to none.
      type: str
    release:
      description: Name and major version.
      type: str
    supported:
      description: The distributions that are supported, in words.
      type: str
  sample:
    name: Debian GNU/Linux 12 (bookworm)
    id: debian
    family: Debian
    release: Debian-12
    supported: Debian 12, Ubuntu 22.04, Fedora, or later
packages:
  description: Names of packages by state.
  returned: with O(packages=true)
  type: dict
  contains:
    installed:
      description: Those that are installed.
      type: list
      elements: str
    config-files:
      description: Those of which only the configuration is left.
      type: list
      elements: str
  sample: {installed: [libc6, qemu-utils], config-files: [dnsmasq]}
kvm_device:
  description: Who may use C(/dev/kvm). Null where there is none.
  returned: always
  type: dict
  contains:
    group:
      description: The group that it belongs to.
      type: str
    mode:
      description: Its mode.
      type: str
    group_writes:
      description: Whether the group may use it.
      type: bool
    others_write:
      description: Whether everybody may use it.
      type: bool
  sample: {group: kvm, mode: "0660", group_writes: true, others_write: false}
labs:
  description: The labs that are registered on the host.
  returned: always
  type: list
  elements: str
  sample: [demo]
users:
  description: By name, the users of O(users). Null for those that are missing.
  returned: always
  type: dict
  sample:
    nometal-bmc: {comment: BMCs of nometal.ipi, groups: [nometal-bmc, libvirt]}
    operator: null
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm_device import kvm_device
from ansible_collections.nometal.ipi.plugins.module_utils._observe.package_managers import packages
from ansible_collections.nometal.ipi.plugins.module_utils._observe.registered_labs import registered_labs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.system import distribution, supported
from ansible_collections.nometal.ipi.plugins.module_utils._observe.users import user_of

ARGUMENTS = {
    "home": {"type": "path", "default": "/var/lib/nometal"},
    "packages": {"type": "bool", "default": False},
    "users": {"type": "list", "elements": "str", "default": []},
}


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    system, device = distribution(), kvm_device()
    users = {name: user_of(name) for name in params["users"]}
    return {
        **({"packages": packages(system.family)} if params["packages"] else {}),
        "changed": False,
        "distribution": {
            "name": system.name,
            "id": system.id,
            "family": system.family,
            "release": system.release,
            "supported": supported(),
        },
        "kvm_device": asdict(device) if device else None,
        "labs": registered_labs(Path(params["home"])),
        "users": {name: asdict(user) if user else None for name, user in users.items()},
    }


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
