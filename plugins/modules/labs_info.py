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
  - Lists all labs that have something on the host, registered or not, with what they have and where their records are.
    It needs no C(lab_spec), and works on hosts without libvirt or its bindings too. libvirt's own files are read there.
  - Of one lab it reports, before the lab is removed, where its things are, and what its removal would take away from
    VMs of others.
  - What belongs to which lab is known by marks, by names and by UUIDs that follow from the lab's name.
  - A directory in which only others have files does not count as a lab's.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.read_only
  - nometal.ipi.libvirt
options:
  lab:
    description: Name of the lab. Without it, all labs are listed and no more is asked.
    type: str
  pool_uuid:
    description: UUID of the lab's storage pool. Without it, that which follows from the lab's name.
    type: str
  home:
    description: Directory of all that labs keep on the host.
    type: path
    default: /var/lib/nometal
"""

EXAMPLES = r"""
- name: List the labs
  nometal.ipi.labs_info:
  register: labs

- name: Ask before a lab is removed
  nometal.ipi.labs_info:
    lab: demo
  register: demo_and_others
"""

RETURN = r"""
labs:
  description: All labs that have something here, by name.
  returned: success
  type: list
  elements: dict
  sample:
    - name: demo
      registered: true
      recorded: 2026-11-19 11:20 UTC
      record: /var/lib/nometal/labs/demo/lab.json
      record_problem: ""
      domain: demo.lab.example.test
      has: [/var/lib/nometal/labs/demo, VM demo-worker-0, network nometal-demo]
table:
  description: The same for people.
  returned: success
  type: list
  elements: str
registered:
  description: Labs for which role nometal.ipi.host_prep has made the host ready.
  returned: success
  type: list
  elements: str
  sample: [demo]
libvirt:
  description: Why libvirt could not be asked, in which case its own files were read instead; else empty.
  returned: success
  type: str
  sample: ""
missing:
  description: What the Python of this module lacks to ask libvirt.
  returned: success
  type: list
  elements: str
  sample: []
own:
  description: What the lab has here.
  returned: with O(lab)
  type: list
  elements: str
  sample: [/var/lib/nometal/labs/demo, VM demo-worker-0, network nometal-demo]
in_libvirt:
  description: What of that is in libvirt.
  returned: with O(lab)
  type: list
  elements: str
  sample: [VM demo-worker-0, network nometal-demo]
storage_pool:
  description: The lab's storage pool with C(name), C(uuid) and C(path), the path as it was recorded.
  returned: with O(lab)
  type: dict
bridges:
  description: Bridges of the lab, and those into which its VMs are plugged.
  returned: with O(lab)
  type: list
  elements: str
  sample: [baremetal, nm-demo]
others:
  description: By name of each other lab, what it has here.
  returned: with O(lab)
  type: dict
  sample:
    other: [/var/lib/nometal/bmc/other, VM other-worker-0, network nometal-other]
in_use:
  description:
    - What of the lab others depend on, with its disks and media, be they VMs, or images that are based on one of them.
    - An image of which it cannot be known is named as well. As far as libvirt can be asked.
  returned: with O(lab)
  type: list
  elements: str
  sample: [volume mine.qcow2 of pool nometal-demo is a disk of VM mine (no lab)]
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    NotThereYetError,
    OperatorError,
    run_module,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import is_lab_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY, Identity
from ansible_collections.nometal.ipi.plugins.module_utils._observe import labs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect, missing_bindings
from ansible_collections.nometal.ipi.plugins.module_utils._observe.disk_users import volumes_in_use
from ansible_collections.nometal.ipi.plugins.module_utils._observe.media_files import is_medium
from ansible_collections.nometal.ipi.plugins.module_utils._observe.veth_entries import wirings_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.vm_users import (
    bridges_of,
    networks_in_use,
    things_of_labs,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.volume_marks import made_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str"},
    "pool_uuid": {"type": "str"},
    "home": {"type": "path", "default": str(labs.HOME)},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


@dataclass(frozen=True)
class InLibvirt:
    """By lab, what it has there; of the lab that is asked for, what others use and where its networks are."""

    things: Mapping[str, list[str]]
    in_use: list[str] = field(default_factory=list)
    bridges: frozenset[str] = frozenset()
    obstacle: str = ""
    """Why libvirt could not be asked."""


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    lab, home = params["lab"], Path(params["home"])
    if lab is not None and not is_lab_name(lab):
        raise OperatorError(
            f"lab: {lab!r} is not the name of a lab: lower case letters, digits and inner hyphens, 54 at most."
        )
    in_libvirt = asked_of_libvirt(params)
    found = labs.merged(labs.in_files(home), in_libvirt.things)
    listed = [entry(home, name, things) for name, things in sorted(found.items())]
    result = {
        "changed": False,
        "labs": listed,
        "table": table(listed),
        "registered": labs.registered(home),
        "libvirt": in_libvirt.obstacle,
        "missing": missing_bindings(),
    }
    return result if lab is None else {**result, **about(lab, home, found, in_libvirt)}


def about(lab: str, home: Path, found: Mapping[str, list[str]], in_libvirt: InLibvirt) -> dict[str, Any]:
    identity, record = Identity(lab), labs.record_of(home, lab)
    plugged = {plug.bridge for wiring in wirings_of(lab) for plug in wiring.plugs if plug.bridge}
    return {
        "own": found.get(lab, []),
        "in_libvirt": in_libvirt.things.get(lab, []),
        "storage_pool": {
            "name": identity.prefix,
            "uuid": identity.uuid_of("storage-pool"),
            "path": record.pool_path or f"{POOL_DIRECTORY}/{identity.prefix}",
        },
        "bridges": sorted({identity.network_bridge, *plugged, *in_libvirt.bridges}),
        "others": {name: things for name, things in found.items() if name != lab},
        "in_use": in_libvirt.in_use,
    }


def asked_of_libvirt(params: dict[str, Any]) -> InLibvirt:
    lab = params["lab"]
    try:
        with connect(params["libvirt_uri"]) as connection:
            things = things_of_labs(connection)
            if lab is None:
                return InLibvirt(things)
            uuid = params["pool_uuid"] or Identity(lab).uuid_of("storage-pool")
            kinds = {Identity(lab).uuid_of("media-pool"): is_medium, uuid: made_by(lab)}
            pools = [(pool, kinds.get(pool.UUIDString())) for pool in connection.listAllStoragePools()]
            volumes = [use for pool, ours in pools if ours for use in volumes_in_use(connection, pool, lab, ours)]
            in_use = [*volumes, *networks_in_use(connection, lab)]
            return InLibvirt(things, in_use, frozenset(bridges_of(connection, lab)))
    except NotThereYetError as error:
        return InLibvirt(labs.in_definitions(), obstacle=str(error))


def entry(home: Path, lab: str, things: list[str]) -> dict[str, Any]:
    record = labs.record_of(home, lab)
    return {
        "name": lab,
        "registered": lab in labs.registered(home),
        "recorded": record.recorded,
        "record": "" if record.problem else str(record.path),
        "record_problem": record.problem,
        "domain": record.domain,
        "has": things,
    }


def table(listed: list[dict[str, Any]]) -> list[str]:
    if not listed:
        return ["No lab has anything on this host."]
    return [line for lab in listed for line in _lines(lab)]


def _lines(lab: Mapping[str, Any]) -> Iterator[str]:
    yield f"{lab['name']} ({lab['domain'] or 'domain unknown'}): {_recorded(lab)}"
    files = [thing for thing in lab["has"] if thing.startswith("/")]
    others = [thing for thing in lab["has"] if thing not in files]
    yield from (f"    {', '.join(things)}" for things in (others, files) if things)


def _recorded(lab: Mapping[str, Any]) -> str:
    if lab["recorded"]:
        return f"recorded {lab['recorded']} in {lab['record']}"
    return "no record" if lab["record_problem"] == "none" else f"its record {lab['record_problem']}"


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
