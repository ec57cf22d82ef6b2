"""A rehearsal in which everything went well, and a host on which nothing is wrong, to be spoilt by tests."""

from __future__ import annotations

from typing import Any

from unit.lab.samples import shipped

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Door, Evidence
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    HOST,
    OK,
    Check,
    Observations,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab, url_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BOOT_MODES
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.script import Secrets, Surroundings, script

PLAY = "0badcafe"
MACS = ("52:54:00:aa:bb:cc", "52:54:00:aa:bb:dd")
STEPS = (
    *("bmc", "login", "wrong password", "confinement", "power off", "insert", "boot from medium", "power on"),
    *("booted from medium", "looked around", "written", "power off again", "eject", "boot from disk", "power on again"),
    "booted from disk",
)


def lab_of(**spec: Any) -> Lab:
    model = lab_model({**shipped("rehearsal"), **spec})
    return from_dict(Lab, {**model, "lab": model["name"]})


def script_of(lab: Lab, surroundings: Surroundings | None = None, **options: Any) -> dict[str, Any]:
    logins = {node.vm_name: {"username": node.vm_name, "password": "secret"} for node in lab.nodes}
    return script(lab, PLAY, MACS, Secrets(logins, "CA"), surroundings or Surroundings(), **options)


def good(lab: Lab) -> Observations:
    told, observed = script_of(lab), Observations(finished=True)
    observed.seen = seen_by_bootstrap(lab, told)
    observed.host = {"clock": 1000.0, "virtual addresses": Check("virtual addresses", HOST, OK)}
    for node in lab.nodes:
        name = node.name
        observed.steps[name] = {step: {"step": step, "ok": True, "said": ""} for step in STEPS}
        observed.reports[name] = {
            "medium": report(node, "cd"),
            "seen": {"seen": seen_by_node(lab, told, name)},
            "written": {"device": "/dev/sda", "bytes": 1, "syncs": [1.0, 2.0]},
            "disk": report(node, "/dev/sda"),
        }
    return observed


def seen_by_bootstrap(lab: Lab, told: dict[str, Any]) -> dict[str, Any]:
    gateways4 = [gateway for gateway in lab.gateways if ":" not in gateway]
    servers6 = ["fe80::1"] if "ipv6" in lab.families else []
    return {
        "network": [{"link": "eth0", "mac": told["mac"], "servers4": gateways4, "servers6": servers6}],
        "addresses": [start for start, _end in lab.bootstrap_places()],
        "routes": [["default", gateway] for gateway in lab.gateways] + lab.bootstrap_routes(),
        "names": answers(lab, told["names"]),
        "reverse": [[address, lab.gateways[0], [lab.reverse_names()[address]], ""] for address in told["reverse"]],
        "clocks": [[server, 1000.5] for server in told["ntp"]],
        "frames": [[way["address"], way["bytes"], ""] for way in told["frames"]],
        "outside": [[way["kind"], way["address"], True] for way in told["outside"]],
        "held": [],
    }


def answers(lab: Lab, names: list[str]) -> list[list[Any]]:
    return [[name, lab.gateways[0], lab.names()[name], ""] for name in names]


def seen_by_node(lab: Lab, told: dict[str, Any], name: str) -> dict[str, Any]:
    own = next(node for node in told["nodes"] if node["name"] == name)
    return {
        "names": answers(lab, own["names"]),
        "peers": dict.fromkeys(own["peers"], ""),
        "vips": {url_of(address): "" for address in lab.all_vips},
    }


def report(node: Any, medium: str) -> dict[str, Any]:
    card = {"link": "eth0", "mac": node.nics[-1].mac, "addresses": list(node.ips), "dhcp6": None}
    booted = {"link": "eth1", "mac": node.boot_mac, "addresses": ["172.22.0.10"], "dhcp6": None}
    disks = [
        {"device": f"/dev/sd{'ab'[number]}", "serial": disk.serial, "size_bytes": disk.size_bytes}
        for number, disk in enumerate(node.disks)
    ]
    return {
        "medium": medium,
        "late": False,
        "cards": [card] if card["mac"] == node.boot_mac else [booted, card],
        "hostname": node.name,
        "firmware": "bios" if BOOT_MODES[node.firmware] == "legacy" else "uefi",
        "secure_boot": BOOT_MODES[node.firmware] == "UEFISecureBoot",
        "vcpus": node.vcpus,
        "memory_mib": node.memory_mib - 60,
        "disks": disks,
    }


def lab_evidence(lab: Lab) -> Evidence:
    """A host on which nothing is wrong."""
    links = {name: Link(name, "bridge") for name in (lab.machine_network.bridge, lab.bridge)}
    for pair in lab.veth_pairs:
        for end in pair.ends:
            links[end.name] = Link(end.name, "veth", master=end.bridge)
    return Evidence(
        links=links,
        networks={lab.machine_network.name: True},
        bmc_doors=[Door("192.168.126.1", 8000)],
        firewall="firewalld, zone libvirt",
        forwarding={"ipv4": True, "ipv6": True},
        rules=[Rule("table ip nat, chain LIBVIRT_PRT", "ip saddr 192.168.126.0/24 masquerade")],
        records=set(lab.names()),
    )
