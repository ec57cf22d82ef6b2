"""The picture of a lab on a real libvirtd and kernel: what is there, and what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report import findings
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report.page import page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

NETWORK = """
<network><name>demo</name><forward mode='nat'/><bridge name='nm-demo' stp='off'/>
<ip address='192.0.2.1' prefix='24'><dhcp><range start='192.0.2.10' end='192.0.2.20'/></dhcp></ip></network>
"""
VM = """
<domain type='qemu'><name>demo-one</name><memory unit='MiB'>32</memory><os><type arch='x86_64'>hvm</type></os>
<devices>
<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='baremetal'/></interface>
<interface type='network'><mac address='52:54:00:00:00:02'/><source network='demo'/></interface>
</devices></domain>
"""
LINKS = """
ip link add uplink up type veth peer name outside
ip link set outside up
ip address add 198.51.100.2/24 dev uplink
ip route add default via 198.51.100.1
ip link add baremetal up type bridge
ip link add nmn-demo up master nm-demo type veth peer name nmb-demo
ip link set nmb-demo up master baremetal
"""
LAB: dict[str, Any] = {
    "lab": "demo",
    "networks": [
        {
            "name": "demo",
            "role": "machine",
            "bridge": "nm-demo",
            "mtu": 1500,
            "forward": "nat",
            "addresses": [{"cidr": "192.0.2.0/24", "family": "ipv4", "gateway": "192.0.2.1", "prefix": 24}],
        },
        {"name": "absent", "role": "provisioning", "bridge": "prov", "mtu": 1500, "forward": "isolated"},
    ],
    "bridge": "baremetal",
    "veth_pairs": [
        {
            "name": "nmn-demo",
            "mtu": 1500,
            "a": {"name": "nmn-demo", "bridge": "nm-demo"},
            "b": {"name": "nmb-demo", "bridge": "baremetal"},
        }
    ],
    # The first is dnsmasq's.
    "bmc": {
        "endpoints": [
            {"address": "192.0.2.1", "port": 53, "protocol": "tcp"},
            {"address": "192.0.2.1", "port": 8000, "protocol": "tcp"},
        ]
    },
}
READ = """
import json, sys
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._observe.picture import Scene, read

lab, vms = from_dict(Lab, json.load(sys.stdin)), {"bootstrap": "demo-bootstrap", "one": "demo-one"}
scene = Scene(lab.networks, [lab.bridge], lab.veth_pairs, vms, lab.bmc.endpoints)
with connect("qemu:///system") as connection:
    print(json.dumps(read(connection, scene)))
"""


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        started.run(["virsh", "net-create", "/dev/stdin"], input=NETWORK)
        started.run(["sh", "-e"], input=LINKS)
        started.run(["virsh", "define", "/dev/stdin"], input=VM)
        yield started


def picture(libvirtd: PrivateLibvirtd) -> dict[str, Any]:
    path = f"PYTHONPATH={ROOT / 'playbooks' / 'collections'}"
    done = libvirtd.run(["env", path, "/usr/bin/python3", "-c", READ], input=json.dumps(LAB))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def told(found: dict[str, Any]) -> list[str]:
    return [str(finding) for finding in findings.in_picture(found)]


def test_what_is_there_and_what_is_not(libvirtd: PrivateLibvirtd) -> None:
    found = picture(libvirtd)
    assert found["unread"] == []
    assert found["uplinks"] == [{"family": "ipv4", "device": "uplink", "gateway": "198.51.100.1"}]
    links = found["links"]
    assert links["nm-demo"]["kind"] == "bridge"
    assert links["nm-demo"]["addresses"] == ["192.0.2.1/24"]
    assert links["uplink"]["addresses"] == ["198.51.100.2/24"]
    assert (links["nmb-demo"]["master"], links["nmb-demo"]["peer"]) == ("baremetal", "nmn-demo")
    assert "lo" not in links
    assert [(each["state"], each["dnsmasq"]) for each in found["networks"]] == [("active", True), ("missing", None)]
    assert [each["listening"] for each in found["bmc"]] == [True, False]
    assert found["bmc"][0]["by"][0].startswith("dnsmasq (pid ")
    assert found["vms"]["bootstrap"] == {"name": "demo-bootstrap", "state": "missing", "nics": []}
    assert found["vms"]["one"]["state"] == "off"
    assert [(nic["bridge"], nic["network"], nic["tap"]) for nic in found["vms"]["one"]["nics"]] == [
        ("baremetal", None, None),
        ("nm-demo", "demo", None),
    ]
    assert told(found) == [
        "libvirt network absent is not there",
        "BMC service: nothing listens on 192.0.2.1:8000/tcp",
    ]


def test_a_running_vm_and_what_breaks_beneath_it(libvirtd: PrivateLibvirtd) -> None:
    libvirtd.run(["virsh", "start", "demo-one"])
    well = picture(libvirtd)
    taps = [nic["tap"] for nic in well["vms"]["one"]["nics"]]
    assert [(well["links"][tap]["kind"], well["links"][tap]["master"]) for tap in taps] == [
        ("tap", "baremetal"),
        ("tap", "nm-demo"),
    ]
    assert not [text for text in told(well) if text.startswith(("one", "nm", "baremetal"))]

    libvirtd.run(["ip", "link", "set", "nmb-demo", "down"])
    libvirtd.run(["ip", "link", "set", taps[0], "nomaster"])
    libvirtd.run(["ip", "link", "delete", taps[1]])
    broken = picture(libvirtd)
    assert {
        "nmb-demo is down",
        f"one: tap {taps[0]} is on no bridge, not on baremetal",
        f"one: tap {taps[1]} is missing",
    } <= {*told(broken)}
    assert "nmb-demo is down" in page({"lab": "demo", "ok": False, "picture": broken})


def test_links_are_seen_without_the_tools_too(libvirtd: PrivateLibvirtd) -> None:
    found = json.loads(
        libvirtd.run(
            [
                *("env", f"PYTHONPATH={ROOT / 'playbooks' / 'collections'}", "PATH=/nowhere"),
                *("/usr/bin/python3", "-c", READ),
            ],
            input=json.dumps(LAB),
        ).stdout
    )
    assert {"baremetal", "nmb-demo", "nmn-demo"} <= set(found["links"])
    assert not [unread for unread in found["unread"] if unread.startswith(("links", "default routes"))]
    assert page({"lab": "demo", "ok": False, "picture": found})
