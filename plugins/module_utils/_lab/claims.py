# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names, paths and addresses of a lab on its host, which no two labs may share."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_INFRA_NAME
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY, Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import NetworkRole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NAME, BRIDGE, CIDR = "lab_spec.name", "lab_spec.machine_network.bridge", "lab_spec.machine_network.cidr"
PATH, NODES, BMC = "lab_spec.storage_pool.path", "lab_spec.nodes", "lab_spec.bmc"
PROVISIONING = "lab_spec.provisioning_network"
"""Length of the cluster name's part in the installer's names."""


@dataclass(frozen=True)
class Claim:
    kind: str
    value: str
    what: str
    """Its use in the lab."""
    key: str
    """The key of lab_spec that sets it."""

    def __str__(self) -> str:
        return f"{self.kind} {self.value} ({self.what})"


def claims(model: Mapping[str, Any]) -> tuple[Claim, ...]:
    return tuple(dict.fromkeys([*_storage(model), *_networks(model), *_nodes(model), *_services(model)]))


def claims_of_name(lab: str) -> tuple[Claim, ...]:
    """Claims of a lab without a known model, derived from its name."""
    prefix, bmc = Identity(lab).prefix, {"endpoints": [{"protocol": "tcp"}]}
    return tuple(_storage({"name": lab, "storage_pool": {"name": prefix, "path": ""}, "bmc": bmc}))


def _storage(model: Mapping[str, Any]) -> Iterator[Claim]:
    pool = model["storage_pool"]
    yield Claim("storage pool", pool["name"], "its disks", NAME)
    if pool["path"]:
        default = f"{POOL_DIRECTORY}/{pool['name']}"
        yield Claim("directory", pool["path"], "its disks", NAME if pool["path"] == default else PATH)
    if any(endpoint["protocol"] == "tcp" for endpoint in model["bmc"]["endpoints"]):  # by IPMI there are none
        media = Identity(model["name"]).media_pool
        yield Claim("storage pool", media, "its virtual media", NAME)
        yield Claim("directory", f"{POOL_DIRECTORY}/{media}", "its virtual media", NAME)


def _networks(model: Mapping[str, Any]) -> Iterator[Claim]:
    yield Claim("domain", model["domain"], "its DNS domain", NAME)
    yield Claim("interface", model["bridge"], "its nodes' bridge", BRIDGE)
    for network in model["networks"]:
        is_provisioning = network["role"] == NetworkRole.PROVISIONING
        by_name = network["bridge"] not in (model["bridge"], network["name"])
        named = f"{PROVISIONING}.bridge" if is_provisioning else NAME if by_name else BRIDGE
        yield Claim("libvirt network", network["name"], f"its {network['role']} network", named)
        yield Claim("interface", network["bridge"], f"its {network['role']} network's bridge", named)
        for address in network["addresses"]:
            key = f"{PROVISIONING}.cidr" if is_provisioning else CIDR
            yield Claim("subnet", address["cidr"], f"its {network['role']} network", key)
    for pair in model["veth_pairs"]:
        if pair["state"] == "present":
            yield from (Claim("interface", pair[end]["name"], "an end of its veth pair", NAME) for end in ("a", "b"))


def _nodes(model: Mapping[str, Any]) -> Iterator[Claim]:
    for node in model["nodes"]:
        what = f"its node {node['name']}"
        yield Claim("VM", node["vm_name"], what, NAME)
        yield Claim("UUID", node["uuid"], what, NODES)
        yield from (Claim("MAC", nic["mac"].lower(), what, NODES) for nic in node["nics"])
    if model["install"] is not None:
        yield Claim("bootstrap VM", f"{model['name'][:LONGEST_INFRA_NAME]}-?????-bootstrap", "the installer's", NAME)


def _services(model: Mapping[str, Any]) -> Iterator[Claim]:
    for endpoint in model["bmc"]["endpoints"]:
        address = f"[{endpoint['address']}]" if ":" in endpoint["address"] else endpoint["address"]
        yield Claim("port", f"{address}:{endpoint['port']}/{endpoint['protocol']}", "its BMCs", BMC)


def clashes(own: Iterable[Claim], others: Iterable[Claim]) -> Iterator[tuple[Claim, Claim]]:
    known = list(others)
    return ((mine, theirs) for mine in own for theirs in known if _conflict(mine, theirs))


def _conflict(one: Claim, other: Claim) -> bool:
    if one.kind != other.kind:
        return {one.kind, other.kind} == {"VM", "bootstrap VM"} and _is_bootstrap(one.value, other.value)
    return CONFLICTS.get(one.kind, _same)(one.value, other.value)


def _same(one: str, other: str) -> bool:
    return one == other


def nested(one: str, other: str) -> bool:
    """Whether two directories are the same, or one is inside the other."""
    paths = (PurePosixPath(one), PurePosixPath(other))
    return paths[0] in (paths[1], *paths[1].parents) or paths[1] in paths[0].parents


def _overlap(one: str, other: str) -> bool:
    first, second = (ipaddress.ip_network(cidr, strict=False) for cidr in (one, other))
    return first.version == second.version and first.overlaps(second)


def _is_bootstrap(one: str, other: str) -> bool:
    pattern, name = (one, other) if "?" in one else (other, one)
    return re.fullmatch(re.escape(pattern).replace(r"\?", "[a-z0-9]"), name) is not None


CONFLICTS: dict[str, Callable[[str, str], bool]] = {"directory": nested, "subnet": _overlap}
