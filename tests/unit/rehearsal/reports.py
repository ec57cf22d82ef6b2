"""Reports of rehearsals in which everything went well, to be spoilt by tests."""

from __future__ import annotations

from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import code_of

HOST_CHECKS = ("installer's bridge", "names on the host", "virtual addresses")
BOOTSTRAP_CHECKS = (
    *("boots", "address", "DHCP servers", "gateway", "names", "reverse names", "full-size frames", "way out"),
    "virtual addresses free",
)
NODE_CHECKS = (
    *("BMC answers", "BMC login", "wrong password refused", "other VMs hidden", "power and media"),
    *("boots from its medium", "address", "hostname", "names", "firmware", "hardware", "disks", "root disk"),
    *("other nodes", "virtual addresses", "disk written", "boots from its disk"),
)


def check(name: str, who: str, state: str = "ok", **values: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "expected": "it does",
        "seen": "it does",
        "advice": "",
        "code": code_of(name),
        "facts": {},
        "cause": None,
    }
    return {"check": name, "who": who, "state": state, **usual, **values}


def link(kind: str, master: str | None = None, **values: Any) -> dict[str, Any]:
    usual = {"mac": "52:54:00:00:00:99", "mtu": 1500, "up": True, "carrier": True, "peer": None, "addresses": []}
    return {"kind": kind, "master": master, **usual, **values}


def nic(number: int, bridge: str = "baremetal", **values: Any) -> dict[str, Any]:
    mac = f"52:54:00:00:00:{number:02x}"
    return {"mac": mac, "network": None, "bridge": bridge, "tap": f"vnet{number}", "unplugged": False, **values}


def network(name: str, role: str, bridge: str, **values: Any) -> dict[str, Any]:
    usual = {
        "state": "active",
        "forward": "nat",
        "routes_ipv6": False,
        "mtu": 1500,
        "addresses": [],
        "missing_addresses": [],
    }
    return {"name": name, "role": role, "bridge": bridge, "dnsmasq": True, **usual, **values}


def names(nodes: int) -> list[str]:
    return [f"control-plane-{number}" if number < 3 else f"worker-{number - 3}" for number in range(nodes)]


def picture(nodes: int = 4) -> dict[str, Any]:
    everybody = ["bootstrap", *names(nodes)]
    return {
        "host": "hypervisor",
        "uplinks": [{"family": "ipv4", "device": "eth0", "gateway": "198.51.100.1"}],
        "links": {
            "eth0": link("physical", addresses=["198.51.100.2/24"]),
            "nm-demo": link("bridge", addresses=["192.168.126.1/24"]),
            "nmn-demo": link("veth", "nm-demo", peer="nmb-demo"),
            "nmb-demo": link("veth", "baremetal", peer="nmn-demo"),
            "baremetal": link("bridge"),
            **{f"vnet{number}": link("tap", "baremetal") for number in range(len(everybody))},
        },
        "networks": [network("nometal-demo", "machine", "nm-demo")],
        "bridges": ["baremetal"],
        "veth_pairs": [
            {
                "name": "nmn-demo",
                "mtu": 1500,
                "ends": [{"name": "nmn-demo", "bridge": "nm-demo"}, {"name": "nmb-demo", "bridge": "baremetal"}],
            }
        ],
        "vms": {
            who: {"name": f"demo-{who}", "state": "running", "nics": [nic(number)]}
            for number, who in enumerate(everybody)
        },
        "bmc": [{"address": "192.168.126.1", "port": 8000, "protocol": "tcp", "listening": True, "by": ["python3"]}],
        "unread": [],
    }


def checks(nodes: int = 4) -> list[dict[str, Any]]:
    return [
        *(check(name, "host") for name in HOST_CHECKS),
        *(check(name, "bootstrap") for name in BOOTSTRAP_CHECKS),
        *(_of_node(name, who, number) for number, who in enumerate(names(nodes)) for name in NODE_CHECKS),
    ]


def _of_node(name: str, who: str, number: int) -> dict[str, Any]:
    value = {"address": f"192.168.126.{20 + number}", "hostname": who}.get(name, "it does")
    facts = {"addresses": [value]} if name == "address" else {}
    return check(name, who, expected=value, seen=value, facts=facts)


def report(nodes: int = 4) -> dict[str, Any]:
    return {
        "lab": "demo",
        "domain": "demo.lab.example.test",
        "ok": True,
        "began": "2026-01-02T03:04:05Z",
        "seconds": 63.2,
        "stages": [{"stage": "bootstrap VM boots", "seconds": 9.1}, {"stage": "nodes boot", "seconds": 20.0}],
        "checks": checks(nodes),
        "consoles": {},
        "picture": picture(nodes),
    }


def fail(report: dict[str, Any], name: str, *everybody: str, **values: str) -> None:
    report["ok"] = False
    for each in report["checks"]:
        if each["check"] == name and each["who"] in everybody:
            each.update({"state": "failed", "seen": "nothing", "advice": "Do this.", **values})
