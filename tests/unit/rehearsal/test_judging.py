"""What is made of what guests and host have seen: all well, and each thing that can be wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable

import pytest
from unit.rehearsal.samples import good, lab_evidence, lab_of

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal import causes
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    FAILED,
    SKIPPED,
    Check,
    Observations,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Firmware
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.rehearsal import judged

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

NETWORK_V6 = {"cidr_v6": "fd2e:6f44:5dd8::/64"}
LABS: dict[str, dict[str, Any]] = {
    "usual": {},
    "ipv6": {"machine_network": NETWORK_V6},
    "dual": {"machine_network": {"cidr": "192.168.126.0/24", **NETWORK_V6}},
    **{str(firmware): {"firmware": str(firmware)} for firmware in Firmware},
    "isolated": {"machine_network": {"cidr": "192.168.126.0/24", "forward": "isolated"}},
    "static": {"bootstrap": {"address": "static", "ip": "192.168.126.9"}},
    "ipmi": {"bmc": {"protocol": "ipmi"}, "provisioning_network": {"mode": "managed", "cidr": "172.22.0.0/24"}},
}


def failed(lab: Lab, observed: Observations) -> list[Check]:
    return [check for check in judged(lab, observed) if check.state == FAILED]


@pytest.mark.parametrize("spec", LABS.values(), ids=LABS)
def test_what_is_as_the_lab_says_is_well(spec: dict[str, Any]) -> None:
    lab = lab_of(**spec)
    checks = judged(lab, good(lab))
    assert [check for check in checks if check.state == FAILED] == []
    assert len(checks) > 4 * 14


def spoil_bootstrap(topic: str, value: Any) -> Callable[[Observations], None]:
    return lambda observed: observed.seen.update({topic: value})


def spoil_node(place: str, key: str, value: Any) -> Callable[[Observations], None]:
    return lambda observed: observed.reports["worker-0"][place].update({key: value})


def spoil_step(step: str, said: str, failure: str = "") -> Callable[[Observations], None]:
    event = {"step": step, "ok": False, "said": said, "failure": failure}
    return lambda observed: observed.steps["worker-0"].update({step: event})


def lose(place: str) -> Callable[[Observations], None]:
    return lambda observed: observed.reports["worker-0"].__delitem__(place)


def all_of(*spoils: Callable[[Observations], None]) -> Callable[[Observations], None]:
    def spoil(observed: Observations) -> None:
        for each in spoils:
            each(observed)

    return spoil


GATEWAY = "192.168.126.1"
SPOILT: dict[str, tuple[Callable[[Observations], None], str, str, str]] = {
    # what is spoilt, who fails, at which check, what is told
    "bootstrap silent": (lambda observed: observed.seen.clear(), "bootstrap", "boots", "has not come up"),
    "no address": (spoil_bootstrap("addresses", []), "bootstrap", "address", "none"),
    "address of the wrong pool": (
        spoil_bootstrap("addresses", ["192.168.126.225"]),
        "bootstrap",
        "address",
        "192.168.126.225",
    ),
    "second server": (
        spoil_bootstrap("network", [{"servers4": [GATEWAY, "192.168.126.66"], "servers6": []}]),
        "bootstrap",
        "DHCP servers",
        "192.168.126.66",
    ),
    "second server of IPv6": (
        spoil_bootstrap("network", [{"servers4": [GATEWAY], "servers6": ["fe80::1", "fe80::66"]}]),
        "bootstrap",
        "DHCP servers",
        "fe80::66",
    ),
    "no default route": (spoil_bootstrap("routes", []), "bootstrap", "gateway", "no default route"),
    "name missing": (
        spoil_bootstrap("names", [["api.rehearsal.lab.example.test", GATEWAY, [], "no such name"]]),
        "bootstrap",
        "names",
        "api.rehearsal.lab.example.test is no such name (asked 192.168.126.1)",
    ),
    "name elsewhere": (
        spoil_bootstrap("names", [["api.rehearsal.lab.example.test", GATEWAY, ["192.0.2.1"], ""]]),
        "bootstrap",
        "names",
        "is 192.0.2.1",
    ),
    "reverse name": (
        spoil_bootstrap("reverse", [["192.168.126.5", GATEWAY, [], "no such name"]]),
        "bootstrap",
        "reverse names",
        "192.168.126.5 is no such name",
    ),
    "small frames": (
        spoil_bootstrap("frames", [[GATEWAY, 1500, "no answer"]]),
        "bootstrap",
        "full-size frames",
        "1500 bytes to 192.168.126.1: no answer",
    ),
    "no way out": (
        spoil_bootstrap("outside", [["ping", "198.51.100.1", False]]),
        "bootstrap",
        "way out",
        "no answer from 198.51.100.1",
    ),
    "virtual address taken": (
        spoil_bootstrap("held", ["192.168.126.5"]),
        "bootstrap",
        "virtual addresses free",
        "already used by another host",
    ),
    "bmc silent": (
        spoil_step("bmc", f"{GATEWAY} port 8000: timed out", "silent"),
        "worker-0",
        "BMC answers",
        "timed out",
    ),
    "bmc password": (spoil_step("login", "401 No."), "worker-0", "BMC login", "401"),
    "bmc open": (spoil_step("wrong password", "answered with 200"), "worker-0", "wrong password refused", "200"),
    "not confined": (spoil_step("confinement", "/x is answered with 200"), "worker-0", "other VMs hidden", "200"),
    "medium": (spoil_step("insert", "400 unreachable"), "worker-0", "power and media", "insert: 400 unreachable"),
    "never reports": (
        all_of(
            spoil_step("booted from medium", "nothing heard in 105 s", "nothing-heard"), lose("medium"), lose("disk")
        ),
        "worker-0",
        "boots from its medium",
        "nothing heard",
    ),
    "hostname": (spoil_node("medium", "hostname", "unnamed"), "worker-0", "hostname", "unnamed"),
    "firmware": (spoil_node("medium", "firmware", "bios"), "worker-0", "firmware", "bios"),
    "secure boot": (spoil_node("medium", "secure_boot", True), "worker-0", "firmware", "uefi-secure"),
    "memory": (spoil_node("medium", "memory_mib", 100), "worker-0", "hardware", "100 MiB"),
    "disk": (spoil_node("medium", "disks", []), "worker-0", "disks", "nothing"),
    "hints": (spoil_node("written", "device", ""), "worker-0", "root disk", "no disk is as the hints say"),
    "read-only": (
        all_of(
            spoil_node("written", "trouble", "[Errno 30] Read-only file system"), spoil_node("written", "errno", 30)
        ),
        "worker-0",
        "disk written",
        "Read-only",
    ),
    "medium again": (
        all_of(spoil_step("booted from disk", "it started from its medium again"), lose("disk")),
        "worker-0",
        "boots from its disk",
        "its medium again",
    ),
    "never ends": (lambda observed: setattr(observed, "finished", False), "bootstrap", "comes to its end", "silent"),
}


@pytest.mark.parametrize(("spoil", "who", "check", "told"), SPOILT.values(), ids=SPOILT)
def test_what_is_wrong_is_named_with_what_to_do(
    spoil: Callable[[Observations], None], who: str, check: str, told: str
) -> None:
    lab = lab_of()
    observed = good(lab)
    spoil(observed)
    wrong = causes.explained(lab, lab_evidence(lab), failed(lab, observed))
    found = {(each.who, each.check): each for each in wrong}
    assert told in found[who, check].seen
    assert json.loads(json.dumps(found[who, check].to_dict()))["facts"] == found[who, check].facts
    if check != "comes to its end":
        assert found[who, check].advice


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("bootstrap silent", {"silent": True}),
        ("no address", {"addresses": [], "servers": []}),
        ("address of the wrong pool", {"addresses": ["192.168.126.225"], "servers": []}),
        ("second server", {"servers": [GATEWAY, "192.168.126.66"]}),
        ("second server of IPv6", {"servers": [GATEWAY, "fe80::1", "fe80::66"]}),
        ("no default route", {"routes": []}),
        ("name missing", {"names": ["api.rehearsal.lab.example.test"], "unanswered": False}),
        ("reverse name", {"names": ["api.rehearsal.lab.example.test"], "unanswered": False}),
        ("small frames", {"addresses": [GATEWAY]}),
        ("no way out", {"answers": []}),
        ("virtual address taken", {"addresses": ["192.168.126.5"]}),
        ("bmc silent", {"step": "bmc", "failure": "silent"}),
        ("bmc password", {"step": "login", "failure": ""}),
        ("medium", {"step": "insert", "failure": ""}),
        ("never reports", {"silent": True}),
        ("read-only", {"device": "/dev/sda", "is_read_only": True}),
        ("medium again", {"silent": False}),
        ("never ends", {"silent": True}),
    ],
)
def test_facts(name: str, facts: dict[str, Any]) -> None:
    spoil, who, check, _told = SPOILT[name]
    lab = lab_of()
    observed = good(lab)
    spoil(observed)
    assert by_name(lab, observed)[who, check].facts == facts


def test_a_name_server_that_does_not_answer_is_told_from_one_that_does_not_know() -> None:
    lab = lab_of()
    observed = good(lab)
    name = "api.rehearsal.lab.example.test"
    spoil_bootstrap("names", [[name, GATEWAY, [], "no answer"]])(observed)
    assert by_name(lab, observed)["bootstrap", "names"].facts == {"names": [name], "unanswered": True}


def test_a_wrong_mac_is_named_as_such() -> None:
    lab = lab_of()
    observed = good(lab)
    observed.reports["worker-0"]["medium"]["cards"][0]["mac"] = "52:54:00:00:00:66"
    [wrong] = [check for check in failed(lab, observed) if check.check == "MAC address"]
    assert (wrong.expected, wrong.seen) == (lab.node("worker-0").boot_mac, "52:54:00:00:00:66")


def by_name(lab: Lab, observed: Observations) -> dict[tuple[str, str], Check]:
    return {(check.who, check.check): check for check in judged(lab, observed)}


def test_what_cannot_come_to_anything_is_told_as_not_tried_and_is_no_failure_of_its_own() -> None:
    lab, observed = lab_of(), Observations()
    observed.stop("Link nmb-rehearsal is down")
    checks = judged(lab, observed)
    assert {check.state for check in checks} == {SKIPPED}
    assert {check.seen for check in checks} == {"not tried: Link nmb-rehearsal is down"}
    assert {check.who for check in checks} == {"bootstrap", *(node.name for node in lab.nodes)}


def test_after_a_step_that_failed_the_rest_is_told_as_not_tried() -> None:
    lab = lab_of()
    observed = good(lab)
    observed.steps["worker-0"] = {"bmc": {"step": "bmc", "ok": False, "said": "timed out"}}
    observed.reports["worker-0"] = {}
    found = by_name(lab, observed)
    assert found["worker-0", "BMC answers"].state == FAILED
    for check in ("boots from its medium", "boots from its disk"):
        assert found["worker-0", check].seen == "not tried: what comes before it has failed"


def test_without_an_address_nothing_is_said_of_routes() -> None:
    lab, observed = lab_of(), Observations()
    observed.seen.update({"network": [{"servers4": [], "servers6": []}], "addresses": [], "routes": []})
    observed.stop("the bootstrap VM has no address")
    assert {check.check for check in failed(lab, observed)} == {"address", "DHCP servers"}


def test_a_bootstrap_vm_that_libvirt_does_not_start_is_told_in_libvirts_words() -> None:
    observed = Observations(host={"boots": "Cannot get interface MTU on 'baremetal'"})
    observed.stop("the bootstrap VM cannot be started")
    [wrong] = failed(lab_of(), observed)
    assert (wrong.check, wrong.seen) == ("boots", "Cannot get interface MTU on 'baremetal'")


def test_what_broke_the_bootstrap_vms_play_is_told() -> None:
    lab = lab_of()
    observed = good(lab)
    observed.finished = False
    observed.add({"event": "broke", "who": "bootstrap", "said": "OSError('No such device')"})
    assert by_name(lab, observed)["bootstrap", "comes to its end"].seen == "OSError('No such device')"


def test_an_address_of_another_server_is_told_with_the_server() -> None:
    lab = lab_of()
    observed = good(lab)
    observed.seen["network"][0]["dhcp4"] = {"server": "192.168.126.66"}
    observed.seen["addresses"] = ["192.168.126.200"]
    observed.reports["worker-0"]["medium"]["cards"][0].update(
        {"dhcp4": {"server": "192.168.126.66"}, "addresses": ["192.168.126.201"]}
    )
    found = by_name(lab, observed)
    assert found["bootstrap", "address"].seen == "192.168.126.200 from DHCP server 192.168.126.66"
    assert found["worker-0", "address"].seen == "192.168.126.201 from DHCP server 192.168.126.66"
    assert found["worker-0", "address"].facts == {"addresses": ["192.168.126.201"], "servers": ["192.168.126.66"]}


def test_a_server_that_was_heard_later_counts() -> None:
    lab = lab_of()
    observed = good(lab)
    observed.seen["servers"] = [GATEWAY, "192.168.126.66"]
    assert by_name(lab, observed)["bootstrap", "DHCP servers"].seen == f"answers of {GATEWAY}, 192.168.126.66"


def test_a_node_that_never_came_up_is_missed_by_nobody_else() -> None:
    lab = lab_of()
    observed = good(lab)
    del observed.reports["worker-0"]["medium"]
    [address] = lab.node("worker-0").ips
    observed.reports["control-plane-0"]["seen"]["seen"]["peers"][address] = "no answer"
    assert ("control-plane-0", "other nodes") not in {(check.who, check.check) for check in failed(lab, observed)}


def test_with_another_mac_the_address_is_not_told_as_wrong_too() -> None:
    lab = lab_of()
    observed = good(lab)
    for place in ("medium", "disk"):
        observed.reports["worker-0"][place]["cards"] = [{"mac": "52:54:00:00:00:66", "addresses": [], "dhcp6": None}]
    assert [check.check for check in failed(lab, observed)] == ["MAC address"]


def test_an_isolated_lab_that_gets_out_is_none() -> None:
    lab = lab_of(machine_network={"cidr": "192.168.126.0/24", "forward": "isolated"})
    observed = good(lab)
    observed.seen["outside"] = [["ping", "198.51.100.1", True]]
    [wrong] = failed(lab, observed)
    assert (wrong.check, wrong.seen) == ("way out", "answers of 198.51.100.1 (ping)")


def test_nodes_that_never_came_up_are_not_counted_among_those_that_answer() -> None:
    lab = lab_of()
    observed = good(lab)
    spoil_step("booted from medium", "nothing heard")(observed)
    observed.reports["worker-0"] = {}
    for name in ("control-plane-0", "control-plane-1", "control-plane-2"):
        observed.reports[name]["seen"]["seen"]["peers"]["192.168.126.30"] = "no answer"
    others = [check for check in judged(lab, observed) if check.check == "other nodes"]
    assert {check.expected for check in others} == {"3 addresses answer; 1 of nodes that are not up were left out"}
