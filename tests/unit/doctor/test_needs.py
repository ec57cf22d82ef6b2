# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs, needs_from

PARAMS: dict[str, Any] = {
    "name": "demo",
    "domain": "demo.example.test",
    "install": False,
    "prepared": False,
    "memory_mib": 1,
    "vcpus": 1,
    "disk_bytes": 1,
    "storage_pool": {"name": "nometal-demo", "uuid": "u", "path": "/pool"},
    "networks": [
        {"name": "demo", "uuid": "u", "bridge": "b", "addresses": [{"cidr": "10.0.0.1/24", "gateway": "10.0.0.1"}]}
    ],
    "vms": [{"vm_name": "demo-master-0", "uuid": "u", "role": "control-plane"}],
    "bridges": ["baremetal"],
    "shared_bridges": [],
    "own_links": [],
    "own_processes": [],
    "ports": [{"address": "10.0.0.1", "port": 8000, "protocol": "tcp"}],
    "qemu": "",
    "model": {},
}


def test_the_models_lists_are_taken_as_they_are() -> None:
    needs = needs_from(PARAMS)
    assert [str(subnet) for subnet in needs.networks[0].subnets] == ["10.0.0.0/24"]
    assert needs.vms[0].name == "demo-master-0"
    assert list(map(str, needs.ports)) == ["10.0.0.1:8000/tcp", "10.0.0.1:53/tcp", "10.0.0.1:53/udp"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("networks", [{"name": "n", "uuid": "u"}], "networks[0].bridge: missing; must be a text, such as some text"),
        (
            "networks",
            [{"name": "n", "uuid": "u", "bridge": "b", "addresses": "10.0.0.0/24"}],
            "networks[0].addresses: must be a list (got '10.0.0.0/24')",
        ),
        (
            "networks",
            [{"name": "n", "uuid": "u", "bridge": "b", "addresses": [{"cidr": "10.0.0.0/40"}]}],
            "networks[0].addresses[0].cidr: must be a network, such as 192.168.126.0/24 (got '10.0.0.0/40')",
        ),
        (
            "networks",
            [{"name": "n", "uuid": "u", "bridge": "b", "addresses": ["x"]}],
            "networks[0].addresses[0]: must be a mapping with keys such as cidr, gateway (got 'x')",
        ),
        (
            "networks",
            [{"name": "n", "uuid": "u", "bridge": "b", "addresses": [{}]}],
            "networks[0].addresses[0].cidr: missing; must be a network, such as 192.168.126.0/24",
        ),
        ("vms", [{"vm_name": "a"}], "vms[0].uuid: missing; must be a text, such as some text"),
        (
            "ports",
            [{"address": "here", "port": 1, "protocol": "tcp"}],
            "ports[0].address: must be an IP address, such as 192.168.126.1 (got 'here')",
        ),
        (
            "ports",
            [{"address": "::1", "port": 70000, "protocol": "tcp"}],
            "ports[0].port: must be a whole number from 1 to 65535 (got 70000)",
        ),
    ],
)
def test_bad_input_is_named(key: str, value: Any, message: str) -> None:
    with pytest.raises(OperatorError) as caught:
        needs_from({**PARAMS, key: value})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "vm", "own"),
    [
        ("demo", "demo-x7k2p-bootstrap", True),
        ("demo", "demo-2-x7k2p-bootstrap", False),
        ("demo", "demo-x7k2p", False),
        ("a-name-of-more-than-21-characters", "a-name-of-more-than-2-x7k2p-bootstrap", True),
        ("", "-x7k2p-bootstrap", False),
    ],
)
def test_the_installers_bootstrap_vm_is_known_by_its_name(name: str, vm: str, own: bool) -> None:
    assert Needs(name=name).is_own_vm(vm) is own


def test_the_bootstrap_vm_counts_only_for_an_installation() -> None:
    assert (Needs(memory_mib=1024, vcpus=2).all_memory_mib, Needs(vcpus=2).all_vcpus) == (1024, 2)
    assert (Needs(memory_mib=1024, install=True).all_memory_mib, Needs(vcpus=2, install=True).all_vcpus) == (7168, 6)
