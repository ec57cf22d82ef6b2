#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: labs_info
short_description: Which labs have something on a host, and what of one lab others use
version_added: 0.1.0
description:
  - Tells, before a lab is removed, what its removal would take away from VMs of others.
  - Tells also which other labs have something on the host, registered or not; for them the host stays as it is.
    A directory in which only somebody else has files is no lab's.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.libvirt
attributes:
  check_mode:
    support: full
    description: It never changes anything.
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  pool_uuid:
    description: UUID of the lab's storage pool. Without it, no volumes are looked at.
    type: str
  home:
    description: Directory of all that labs keep on the host.
    type: path
    default: /var/lib/nometal
"""

EXAMPLES = r"""
- name: Ask before the lab is removed
  nometal.ipi.labs_info:
    lab: demo
    pool_uuid: 0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e70
  register: demo_and_others
"""

RETURN = r"""
registered:
  description: Labs for which role nometal.ipi.host_prep has made the host ready.
  returned: success
  type: list
  elements: str
  sample: [demo]
others:
  description: By name of each other lab, what it has here.
  returned: success
  type: dict
  sample:
    other: [/var/lib/nometal/bmc/other, VM other-worker-0, network nometal-other]
in_use:
  description:
    - What of the lab others depend on, with its disks and media, be they VMs, or images that are based on one of them.
    - An image of which it cannot be known is named as well.
  returned: success
  type: list
  elements: str
  sample: [volume mine.qcow2 of pool nometal-demo is a disk of VM mine (no lab)]
"""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host import registration, removal
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.disk_users import volumes_in_use
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.storage_pool import made_by
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm_users import networks_in_use, things_of_labs
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import NotThereYetError
from ansible_collections.nometal.ipi.plugins.module_utils._redfish import layout
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.media_files import is_medium

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "pool_uuid": {"type": "str"},
    "home": {"type": "path", "default": "/var/lib/nometal"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def run(params: dict[str, Any]) -> dict[str, Any]:
    home = Path(params["home"])
    registered, bmcs = directories(home / "labs", registration.KNOWN), directories(home / "bmc", layout.KNOWN)
    in_libvirt, in_use = asked_of_libvirt(params)
    others: dict[str, list[str]] = defaultdict(list)
    for things in (registered, bmcs, in_libvirt):
        for lab, found in things.items():
            others[lab] += found
    others.pop(params["lab"], None)
    return {"changed": False, "registered": sorted(registered), "others": dict(others), "in_use": in_use}


def directories(of_labs: Path, known: Iterable[str]) -> dict[str, list[str]]:
    """One in which only somebody else has something is no lab's."""
    found = of_labs.iterdir() if of_labs.is_dir() else ()
    return {path.name: [str(path)] for path in found if removal.has_known(path, known)}


def asked_of_libvirt(params: dict[str, Any]) -> tuple[Mapping[str, list[str]], list[str]]:
    try:
        with connect(params["libvirt_uri"]) as connection:
            lab = params["lab"]
            kinds = {Identity(lab).uuid_of("media-pool"): is_medium, params["pool_uuid"]: made_by(lab)}
            pools = [(pool, kinds.get(pool.UUIDString())) for pool in connection.listAllStoragePools()]
            volumes = [use for pool, ours in pools if ours for use in volumes_in_use(connection, pool, lab, ours)]
            return things_of_labs(connection), [*volumes, *networks_in_use(connection, lab)]
    except NotThereYetError:  # nor has anybody anything in it
        return {}, []


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        module.exit_json(**run(module.params))
    except OperatorError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
