"""Rehearsals of a lab that the playbooks have made, on the host that an inventory calls hypervisor."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import yaml
from support import modules, rehearsal_image

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from support.lab_host import LabHost

Checks = dict[tuple[str, str], dict[str, Any]]
"""By who and check."""
OF_A_REHEARSAL = "virsh list --all --name; virsh pool-list --all --name; ls -A /var/lib/libvirt/openshift-images"
HOMES = "ls -A /var/lib/nometal/rehearsal"


def model(inventory: Path) -> dict[str, Any]:
    spec = yaml.safe_load((inventory / "group_vars/all/lab.yml").read_text(encoding="utf-8"))["lab_spec"]
    return lab_model(spec, ["hypervisor"])


def arguments(inventory: Path, nodes: Collection[str] = ()) -> dict[str, Any]:
    """The module's, as the role gives them; with these nodes only, or with all."""
    lab = model(inventory)
    same = ("domain", "bridge", "networks", "veth_pairs", "vips", "bootstrap", "bmc", "ntp_servers")
    image = _image(inventory, lab["bmc"]["protocol"] != "redfish-virtualmedia")
    return {
        "lab": lab["name"],
        "image": image["path"],
        "secure_boot": image["secure_boot"],
        "nodes": [node for node in lab["nodes"] if not nodes or node["name"] in nodes],
        "provisioning_network": lab["provisioning_network"],
        **{key: lab[key] for key in same},
    }


@lru_cache
def _image(inventory: Path, network_boot: bool) -> dict[str, Any]:
    place = {"path": f"/{rehearsal_image.IN_HOST}", "network_boot": network_boot}
    made = modules.run_on(inventory, "rehearsal_image", {**rehearsal_image.arguments(), **place})
    assert not made["failed"], made["msg"]
    return made


def rehearse(inventory: Path, nodes: Collection[str] = ()) -> dict[str, Any]:
    """What the module returns. Checks may have failed; the module itself never does."""
    result = modules.run_on(inventory, "rehearsal", arguments(inventory, nodes))
    assert not result["failed"], result["msg"]
    return result


def checks(result: dict[str, Any], state: str = "failed") -> Checks:
    return {(check["who"], check["check"]): check for check in result["checks"] if check["state"] == state}


def left_behind(host: LabHost, inventory: Path) -> list[str]:
    """What a rehearsal has not put back: nodes that are on, disks with data, drives with media, things of its own."""
    lab = model(inventory)
    own = f"{lab['name']}-rehearsal-bootstrap"
    things = [f"{own} is there" for line in host.run(OF_A_REHEARSAL, check=False).stdout.split() if line == own]
    homes = host.run(HOMES, check=False).stdout.split()
    nodes = [trouble for node in lab["nodes"] for trouble in _left_in(host, node["vm_name"])]
    return [*things, *(f"its notes {home} are there" for home in homes), *nodes]


def _left_in(host: LabHost, vm: str) -> list[str]:
    found = []
    if host.run(["virsh", "domstate", vm]).stdout.strip() != "shut off":
        found.append(f"{vm} is on")
    devices = [line.split() for line in host.run(["virsh", "domblklist", vm, "--details"]).stdout.splitlines()[2:]]
    for _kind, device, target, source in filter(None, devices):
        if device == "cdrom" and source != "-":
            found.append(f"{vm} has {source} in {target}")
        if device == "disk" and _has_data(host, source):
            found.append(f"{vm} has data in {source}")
    return found


def _has_data(host: LabHost, path: str) -> bool:
    parts = json.loads(host.run(["qemu-img", "map", "--output=json", path]).stdout)
    return any(part["data"] and not part["zero"] for part in parts)
