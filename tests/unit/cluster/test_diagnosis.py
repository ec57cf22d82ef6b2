"""From what is seen to what is wrong and what to do."""

from __future__ import annotations

import ast
import json
import stat
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client, client_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import BareMetalHost
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import bootstrap as diagnosis_bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import bootstrap_services, heal
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import causes as diagnosis_causes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import diagnose as diagnosis
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import evidence as diagnosis_cluster
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import evidence as diagnosis_evidence
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import evidence as diagnosis_host
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import nodes as diagnosis_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.bootstrap import Bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.evidence import (
    Evidence,
    HostSeen,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.explanations import EXPLANATIONS
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node, nodes_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import watch as stalls
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.operators import Operators
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Host, Progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml, host
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

UTILS = Path(diagnosis.__file__).parents[1]
VIP = "192.168.126.2"
NAME = {"name": "demo-x7k2p-bootstrap"}
HOST = HostSeen(load=1.0, cores=8, api={VIP: ""}, api_name="api.demo.lab.example.test", api_addresses=[VIP])
BOOTSTRAP = Bootstrap("demo-x7k2p-bootstrap", "running", macs=["52:54:00:00:00:01"], address="192.168.126.130")
MAC, OTHER_MAC, FIXED = BOOTSTRAP.macs[0], "52:54:00:00:00:09", {"ips": ["192.168.126.9"]}
STATIC = {"mode": "static", "fixed_ips": FIXED["ips"]}
RESERVED = {"mode": "reserved", "fixed_ips": FIXED["ips"], "reserved_mac": OTHER_MAC}
NODE = Node("worker-0", "demo-worker-0", "running", by_medium=True, medium="/media/x.iso")
FINE = Evidence(host=HOST, bootstrap=BOOTSTRAP, nodes=[NODE])


def found(stage: Stage, evidence: Evidence, *suspects: str, late: bool = True, **progress: Any) -> list[Finding]:
    return diagnosis.findings(Progress(stage=stage, **progress), evidence, suspects, late=late)


def told(stage: Stage, evidence: Evidence, *suspects: str, late: bool = True, **progress: Any) -> list[str]:
    return [str(finding) for finding in found(stage, evidence, *suspects, late=late, **progress)]


def found_of_bootstrap(**others: Any) -> list[Finding]:
    silent = replace(FINE, host=replace(HOST, api={VIP: "No route to host"}))
    return found(Stage.API, replace(silent, bootstrap=replace(BOOTSTRAP, **others)))


def found_of_host(stage: Stage = Stage.API, **others: Any) -> list[Finding]:
    return found(stage, replace(FINE, host=replace(HOST, **others)))


def found_of_node(state: str, /, **others: Any) -> list[Finding]:
    evidence = replace(FINE, nodes=[replace(NODE, **others)], consoles={"worker-0": "last words"})
    return found(Stage.INITIALIZE, evidence, "worker-0", hosts={"worker-0": Host(state, 0.0)})


def text_of(findings: list[Finding]) -> str:
    return " ".join(map(str, findings))


def code_and_facts(findings: list[Finding], said: str) -> tuple[str, dict[str, Any]]:
    """Of the one that says it."""
    [finding] = [finding for finding in findings if said in str(finding)]
    return finding.code, dict(finding.facts)


@pytest.mark.parametrize("stage", list(Stage))
def test_where_all_is_well_nothing_is_found(stage: Stage) -> None:
    assert told(stage, FINE, "installer") == []


@pytest.mark.parametrize(
    ("others", "said", "code", "facts"),
    [
        ({"name": "", "state": ""}, "bootstrap: Its VM is gone", "bootstrap.gone", {}),
        ({"state": "off"}, "demo-x7k2p-bootstrap is off", "bootstrap.not-running", {**NAME, "state": "off"}),
        ({"state": "crashed"}, "is crashed", "bootstrap.not-running", {**NAME, "state": "crashed"}),
        ({"state": "paused", "no_room": True}, "Make room on the host", "bootstrap.disk-full", NAME),
        (
            *({"address": ""}, "MAC address 52:54:00:00:00:01, has no address", "bootstrap.no-address"),
            {**NAME, "macs": ["52:54:00:00:00:01"], "is_filtered": False},
        ),
        *(
            ({"address": "", **others}, said, f"bootstrap.{code}", {**NAME, "macs": ["52:54:00:00:00:01"], **facts})
            for others, said, code, facts in (
                (STATIC, "does not answer at its static address 192.168.126.9", "static-silent", FIXED),
                ({**STATIC, "has_carrier": False}, "is not on a bridge that is up", "no-carrier", {}),
                ({"has_carrier": False}, "is not on a bridge that is up", "no-carrier", {}),
                (RESERVED, "reserves 192.168.126.9 for 52:54:00:00:00:09", "other-mac", {**FIXED, "mac": OTHER_MAC}),
                ({**RESERVED, "reserved_mac": MAC}, "DHCP server has given", "no-address", {"is_filtered": False}),
            )
        ),
        *(
            ({"console": console}, said, code, {"console": console})
            for console, said, code in (
                ("error: unauthorized: x", "refuses the pull secret", "console.pull-secret"),
                ("Entering emergency mode", "Ignition failed", "console.ignition"),
                ("dial tcp: lookup quay.io: no such host", "cannot resolve names", "console.names"),
            )
        ),
        (
            *({"quiet_for": 3600.0, "console": "Booting"}, "silent for 60 min, since: Booting", "bootstrap.silent"),
            {"seconds": 3600.0, "console": "Booting"},
        ),
    ],
)
def test_the_bootstrap_vm(others: dict[str, Any], said: str, code: str, facts: dict[str, Any]) -> None:
    assert code_and_facts(found_of_bootstrap(**others), said) == (code, facts)


PULL = "Error: unable to pull quay.example.test/release: unauthorized: access to the resource is not authorized"
SERVICES = f"""release-image activating 7
bootkube inactive 0
crio active 0
kubelet active 0
--nometal--
{{"containers": [{{"metadata": {{"name": "etcd"}}, "state": "CONTAINER_EXITED"}},
 {{"metadata": {{"name": "etcd"}}, "state": "CONTAINER_RUNNING"}},
 {{"metadata": {{"name": "machine-config-server"}}, "state": "CONTAINER_EXITED"}}]}}
--nometal--
Pulling the release image...
{PULL}
--nometal--
--nometal--
--nometal--
"""


def test_services_of_the_bootstrap_vm_are_read() -> None:
    services = bootstrap_services.read(SERVICES)
    assert [(unit.name, unit.has_failed) for unit in services.units] == [
        ("release-image", True),
        *((name, False) for name in ("bootkube", "crio", "kubelet")),
    ]
    assert services.units[0].said == ["Pulling the release image...", PULL]
    assert services.exited == ["machine-config-server"]


@pytest.mark.parametrize("text", ["", "rubbish", "--nometal--", "bootkube\n--nometal--\n{}\n--nometal--"])
def test_what_is_no_answer_of_the_bootstrap_vm_says_nothing(text: str) -> None:
    assert not any(unit.has_failed for unit in bootstrap_services.read(text).units)


def test_the_service_that_failed_first_says_why() -> None:
    services = bootstrap_services.read(SERVICES)
    finding, _api = found_of_bootstrap(services=services)
    assert finding.code == "service.pull-secret"
    assert finding.facts == {"unit": "release-image", "said": PULL}


def test_a_service_that_fails_for_an_unknown_reason() -> None:
    text = SERVICES.replace(PULL, "Error: 7 of 9 checks have failed.")
    finding, _api = found_of_bootstrap(services=bootstrap_services.read(text))
    assert finding.code == "service.failed"
    assert "release-image.service fails again and again: Error: 7 of 9 checks have failed." in finding.text
    assert "machine-config-server" in finding.text


def test_a_release_image_that_is_tried_for_ever() -> None:
    services = bootstrap_services.read(SERVICES.replace("activating 7", "activating 0"))
    assert found_of_bootstrap(services=services)[0].code == "service.pull-secret"
    done = bootstrap_services.read(SERVICES.replace("activating 7", "active 0"))
    assert [finding.code for finding in found_of_bootstrap(services=done)] == ["api.not-held"]


def test_what_the_console_says_is_not_said_again() -> None:
    console = f"[ 12.3] release-image.sh: {PULL}"
    finding, _api = found_of_bootstrap(services=bootstrap_services.read(SERVICES), console=console)
    assert finding.code == "console.pull-secret"


def test_secrets_in_journals_are_masked() -> None:
    services = bootstrap_services.read(SERVICES.replace(PULL, "GET https://me:hidden@registry.example.test/v2/"))
    assert "hidden" not in repr(services)


def test_a_bootstrap_vm_that_is_no_more_needed() -> None:
    gone = replace(FINE, bootstrap=Bootstrap())
    assert told(Stage.INITIALIZE, gone) == []
    assert told(Stage.INFRASTRUCTURE, gone) == []
    assert told(Stage.CONTROL_PLANE, replace(gone, libvirt_trouble="It is away.")) == [
        "host: libvirt does not answer: It is away. See `systemctl status libvirtd`, or virtqemud."
    ]


@pytest.mark.parametrize(
    ("others", "said", "code", "facts"),
    [
        (
            {"api": {VIP: "No route to host"}},
            f"API: {VIP} does not answer on port 6443: No route to host. No machine holds",
            "api.not-held",
            {"vip": VIP, "error": "No route to host"},
        ),
        (
            {"api": {VIP: "Connection refused"}, "api_refused": [VIP]},
            "ssh core@192.168.126.130 journalctl",
            "api.not-up",
            {"vip": VIP, "error": "Connection refused", "address": "192.168.126.130"},
        ),
        (
            {"api_addresses": []},
            "names: The host's resolver does not know api.demo.lab.example.test",
            "names.wrong",
            {"name": "api.demo.lab.example.test", "addresses": [], "wanted": [VIP]},
        ),
        (
            {"api_addresses": ["192.0.2.7"]},
            f"is 192.0.2.7; it must be {VIP}",
            "names.wrong",
            {"name": "api.demo.lab.example.test", "addresses": ["192.0.2.7"], "wanted": [VIP]},
        ),
        (
            *({"load": 40.0}, "host: It is overloaded: load 40.0 on 8 processors", "host.overloaded"),
            {"load": 40.0, "cores": 8},
        ),
        ({"memory_available": 0.01}, "1% of its memory left", "host.overloaded", {"memory_available": 0.01}),
        (
            *({"pressure": {"cpu": 90.0, "io": 80.0, "memory": 1.0}}, "programs wait for cpu and io"),
            *("host.overloaded", {"waiting": ["cpu", "io"]}),
        ),
    ],
)
def test_the_host(others: dict[str, Any], said: str, code: str, facts: dict[str, Any]) -> None:
    assert code_and_facts(found_of_host(**others), said) == (code, facts)


def masters(*states: str) -> list[Node]:
    return [Node(f"master-{n}", f"demo-master-{n}", state) for n, state in enumerate(states)]


AFTER: dict[str, Any] = {
    "control_plane": ["master-0", "master-1"],
    "bootstrap_complete": True,
    "bootstrap_destroyed": True,
}


@pytest.mark.parametrize("stage", [Stage.API, Stage.INITIALIZE])
def test_an_api_that_does_not_answer_for_its_nodes_are_switched_off(stage: Stage) -> None:
    silent = replace(FINE, host=replace(HOST, api={VIP: "No route to host"}), nodes=[*masters("off", "off"), NODE])
    [said] = told(stage, silent, **AFTER)
    assert said.startswith(f"API: {VIP} does not answer on port 6443: No route to host.")
    assert "master-0, master-1 are switched off, and the cluster cannot come up without them" in said
    assert "`virsh start demo-master-0; virsh start demo-master-1`" in said
    assert "consoles" not in said


def test_an_api_whose_nodes_are_on_has_its_cause_on_their_consoles() -> None:
    silent = replace(FINE, host=replace(HOST, api={VIP: "No route to host"}), nodes=masters("running", "running"))
    assert "see their consoles" in " ".join(told(Stage.INITIALIZE, silent, **AFTER))


def test_a_node_that_is_off_is_told_also_where_the_others_answer() -> None:
    [said] = told(Stage.OPERATORS, replace(FINE, nodes=masters("running", "off")), **AFTER)
    assert said.startswith("control plane: master-1 is switched off, and the cluster cannot come up without it")


def test_nodes_are_off_as_long_as_they_are_being_installed_and_workers_may_be() -> None:
    off = replace(FINE, nodes=masters("off", "off"))
    assert told(Stage.BOOTSTRAP, off, control_plane=["master-0", "master-1"]) == []
    assert told(Stage.INITIALIZE, replace(FINE, nodes=[replace(NODE, state="off")]), **AFTER) == []


def test_a_libvirt_that_hangs_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, asked = threading.Event(), []

    @contextmanager
    def connect(uri: str) -> Iterator[None]:
        asked.append(uri)
        answer.wait(30)
        yield

    monkeypatch.setattr(diagnosis_nodes, "connect", connect)
    monkeypatch.setattr(diagnosis_nodes, "ANSWER_SECONDS", 0.1)
    lab = Installation(Paths("demo"), bmc_home=str(tmp_path), libvirt_uri="hangs:///")
    assert nodes_of(lab) == []
    assert "hangs:/// has said nothing" in diagnosis_evidence.gather(lab).libvirt_trouble
    assert len(asked) == 1, "one waits for it"
    answer.set()


def test_load_does_not_matter_where_nothing_took_long() -> None:
    busy = replace(FINE, host=replace(HOST, load=40.0))
    assert told(Stage.INFRASTRUCTURE, busy, "installer", late=False) == []
    assert len(told(Stage.INFRASTRUCTURE, busy, "installer")) == 1


def test_what_nobody_needs_yet_is_not_to_blame() -> None:
    nothing = Evidence(host=replace(HOST, api={VIP: "No route to host"}, api_addresses=[]), bmc_trouble="No BMCs here.")
    for stage in (Stage.PREPARE, Stage.INFRASTRUCTURE):
        assert told(stage, nothing, "installer") == []


def test_a_bootstrap_vm_that_was_reached_has_an_address() -> None:
    unseen = replace(FINE, bootstrap=replace(BOOTSTRAP, address=""))
    assert told(Stage.BOOTSTRAP, unseen) == []
    away = replace(unseen, host=replace(HOST, api={VIP: "timed out"}))
    assert "no address" not in " ".join(told(Stage.BOOTSTRAP, away, api_up=True))


def test_the_api_without_a_bootstrap_vm() -> None:
    assert "Control plane nodes hold the address" in text_of(found_of_host(Stage.INITIALIZE, api={VIP: "timed out"}))


def test_another_cluster_at_the_api() -> None:
    assert "Another cluster answers" in " ".join(told(Stage.API, FINE, api_trouble="x509: unknown authority"))


@pytest.mark.parametrize(
    ("port", "place", "evidence", "is_told"),
    [
        (67, "table inet mine, chain in", {}, False),
        (67, "table inet mine, chain in", {"bootstrap": replace(BOOTSTRAP, address="")}, True),
        (67, "table inet nometal-demo, chain guard", {"bootstrap": replace(BOOTSTRAP, address="")}, False),
        (6443, "table inet mine, chain out", {}, False),
        (6443, "table inet mine, chain out", {"host": replace(HOST, api={VIP: "timed out"})}, True),
        (8000, "table inet mine, chain in", {"bmcs": {"demo-worker-0": {"address": "https://a:8000/x"}}}, False),
        (
            *(8000, "table inet mine, chain in"),
            *({"bmcs": {"demo-worker-0": {"address": "https://a:8000/x", "trouble": "timed out"}}}, True),
        ),
    ],
)
def test_a_packet_filter_of_what_others_use_as_well(port: int, place: str, evidence: Any, is_told: bool) -> None:
    silent = {"host": replace(HOST, api={VIP: "No route to host"})} if "bootstrap" in evidence else {}
    seen = replace(FINE, **{**silent, **evidence}, rules=[Rule(place, f"udp dport {port} drop")])
    findings = told(Stage.API, seen)
    assert any("Remove that rule" in said for said in findings) is is_told
    assert not any(said.startswith("API: ") for said in findings)


@pytest.mark.parametrize(
    ("mac", "said"),
    [
        ("52:54:00:00:00:99", "is held by 52:54:00:00:00:99"),
        ("52:54:00:00:00:01", "nothing comes back"),
        ("", "No machine"),
    ],
)
def test_who_holds_the_address_of_the_api(mac: str, said: str) -> None:
    [told_of] = told(
        Stage.API, replace(FINE, host=replace(HOST, api={VIP: "timed out"}, api_macs={VIP: mac} if mac else {}))
    )
    assert said in told_of


@pytest.mark.parametrize(
    ("stage", "progress", "is_early"),
    [
        (Stage.BOOTSTRAP, {}, True),
        (Stage.API, {}, True),
        (Stage.BOOTSTRAP, {"bootstrap_complete": True}, False),
        (Stage.INITIALIZE, {"bootstrap_complete": True, "bootstrap_destroyed": True}, False),
    ],
)
def test_a_control_plane_node_that_holds_the_address_of_the_api_too_early(
    stage: Stage, progress: dict[str, Any], is_early: bool
) -> None:
    node = replace(NODE, name="control-plane-1", macs=["52:54:00:00:00:21"], address="192.168.126.21")
    host = replace(HOST, api={VIP: "timed out"}, api_macs={VIP: node.macs[0]})
    known = {"control_plane": ["control-plane-0", "control-plane-1"], **progress}
    findings = [
        each for each in found(stage, replace(FINE, nodes=[node], host=host), **known) if each.code == "api.held-early"
    ]
    assert [each.facts["node"] for each in findings] == (["control-plane-1"] if is_early else [])
    if is_early:
        assert f"`{heal.shown('192.168.126.21')}`" in str(findings[0])


@pytest.mark.parametrize("unknown", [{"bootstrap": Bootstrap("", "missing")}, {"nodes": []}])
def test_who_is_a_stranger_at_the_api_is_known_only_with_all_machines_of_the_lab(unknown: dict[str, Any]) -> None:
    host = replace(HOST, api={VIP: "timed out"}, api_macs={VIP: "52:54:00:00:00:99"})
    assert "is held by" not in " ".join(told(Stage.API, replace(FINE, host=host, **unknown)))


def test_a_packet_filter() -> None:
    rules = [Rule("table inet mine, chain in", "tcp dport 6180 drop"), Rule("t", "tcp dport 6183 accept")]
    assert "`tcp dport 6180 drop` in table inet mine" in " ".join(told(Stage.API, replace(FINE, rules=rules)))


@pytest.mark.parametrize(
    ("state", "others", "said", "code", "facts"),
    [
        (
            "inspecting",
            {"state": "missing"},
            "Its VM demo-worker-0 is not there",
            "node.no-vm",
            {"vm": "demo-worker-0"},
        ),
        (
            *("inspecting", {"state": "off"}, "It is off, while Ironic has it inspecting"),
            *("node.not-on", {"state": "off", "wanted": "inspecting"}),
        ),
        ("inspecting", {"medium": ""}, "Its drive is empty", "node.empty-drive", {}),
        ("inspecting", {}, "Its console ends with: last words", "node.console", {"console": "last words"}),
        ("available", {"state": "off"}, "Its console ends with", "node.console", {"console": "last words"}),
    ],
)
def test_nodes(state: str, others: dict[str, Any], said: str, code: str, facts: dict[str, Any]) -> None:
    findings = found_of_node(state, **others)
    assert code_and_facts(findings, said) == (code, facts)
    assert {finding.subject for finding in findings} == {"worker-0"}


def test_nodes_that_boot_from_the_network_have_no_medium() -> None:
    assert "drive" not in text_of(found_of_node("inspecting", medium="", by_medium=False))


def test_nodes_that_nobody_suspects_are_left_out() -> None:
    off = replace(FINE, nodes=[replace(NODE, state="off")])
    hosts = {"worker-0": Host("inspecting", 0.0)}
    assert told(Stage.CONTROL_PLANE, off, hosts=hosts) == []
    assert told(Stage.CONTROL_PLANE, off, "installer", hosts=hosts) != []
    assert told(Stage.CONTROL_PLANE, off, "installer", hosts={"worker-0": Host("provisioned", 0.0)}) == []


def test_bmcs() -> None:
    silent = replace(FINE, bmcs={"demo-worker-0": {"trouble": "timed out", "failure": "timeout"}})
    [said] = told(Stage.API, silent)
    assert said.startswith("worker-0: Its BMC: No answer, not even on the host itself: timed out. Packets are filtered")
    assert told(Stage.API, replace(FINE, bmc_trouble="No BMCs here.")) == ["BMC: No BMCs here."]


def test_bmcs_of_which_none_answers_are_told_together_and_what_metal3_says_of_them_not() -> None:
    nodes = [NODE, replace(NODE, name="worker-1", vm_name="demo-worker-1")]
    hosts = {node.name: Host("registering", 0.0, "registration error: Connection refused") for node in nodes}
    answers = [
        (["[Errno 111] Connection refused"] * 2, "", "playbooks/bmc.yml repairs it"),
        (["401: No.", "429: Too many failed logins."], "login-refused", "`operator` is refused"),
    ]
    for troubles, failure, advice in answers:
        bmcs = {node.vm_name: {"trouble": said, "failure": failure} for node, said in zip(nodes, troubles)}
        evidence = replace(FINE, nodes=nodes, bmcs=bmcs)
        [said] = told(Stage.CONTROL_PLANE, evidence, hosts=hosts)
        assert said.startswith("BMC: Those of all nodes: ")
        assert advice in said


def test_what_metal3_says_of_several_is_told_once_and_explains_the_rest() -> None:
    nodes = [replace(NODE, state="off"), replace(NODE, name="worker-1", vm_name="demo-worker-1", state="off")]
    said = "inspection error: POST /{} returned 400. InsertMedia: Connection refused"
    hosts = {node.name: Host("inspecting", 0.0, said.format(node.name)) for node in nodes}
    [told_of] = told(Stage.CONTROL_PLANE, replace(FINE, nodes=nodes), "installer", hosts=hosts)
    assert told_of.startswith("worker-0: inspection error: POST /worker-0 returned 400.")
    assert told_of.endswith("The same goes for worker-1.")


def test_metal3_knows_more_than_the_log() -> None:
    hosts = {"a": Host("inspecting", 0.0, "inspection error: old"), "b": Host("available", 0.0, "old")}
    metal = [
        BareMetalHost("a", "inspecting", "registration error", "401 Unauthorized"),
        BareMetalHost("b", "provisioned"),
    ]
    [said] = told(Stage.INITIALIZE, replace(FINE, metal_hosts=metal), hosts=hosts)
    assert said.startswith("a: registration error: 401 Unauthorized. Its BMC refuses the password")


def test_an_error_that_metal3_no_longer_has_is_over() -> None:
    hosts = {"a": Host("registering", 0.0, "registration error: old"), "b": Host("inspecting", 0.0, "inspection error")}
    metal = [BareMetalHost("a", "inspecting")]  # of b, the cluster says nothing
    [said] = told(Stage.CONTROL_PLANE, replace(FINE, metal_hosts=metal), hosts=hosts)
    assert said.startswith("b: inspection error")


def test_a_static_address_makes_no_rule_about_dhcp_suspect() -> None:
    rule = Rule("table inet mine, chain input", "udp dport 67 drop")
    static = replace(BOOTSTRAP, address="", mode="static", fixed_ips=["192.168.126.9"])
    silent = replace(FINE, host=replace(HOST, api={VIP: "No route to host"}), rules=[rule])
    assert [each.code for each in found(Stage.API, replace(silent, bootstrap=static))] == ["bootstrap.static-silent"]
    leased = found(Stage.API, replace(silent, bootstrap=replace(static, mode="pool")))
    assert [each.code for each in leased] == ["host.filtered", "bootstrap.no-address"]


@pytest.mark.parametrize(
    ("card", "links", "has_carrier"),
    [
        ("<target dev='vnet0'/>", {"vnet0": Link("vnet0", master="baremetal"), "baremetal": Link("baremetal")}, True),
        ("<target dev='vnet0'/>", {"vnet0": Link("vnet0")}, False),
        ("<target dev='vnet0'/>", {"vnet0": Link("vnet0", master="a"), "a": Link("a", up=False)}, False),
        ("<target dev='vnet0'/><link state='down'/>", {}, False),
        ("", {}, True),
    ],
)
def test_whether_a_card_is_plugged_in(card: str, links: dict[str, Link], has_carrier: bool) -> None:
    root = domain_xml.parsed(f"<domain><devices><interface type='bridge'>{card}</interface></devices></domain>")
    assert diagnosis_bootstrap.has_carrier(root, links) == has_carrier


def test_operators() -> None:
    evidence = replace(FINE, operators={"dns": "Degraded: x", "console": "", "etcd": "y"})
    operators = Operators(waiting=("console", "dns"), hindrances=["Could not update c"])
    assert told(Stage.INITIALIZE, evidence, operators=operators) == [
        "operators: console is not available",
        "operators: dns: Degraded: x",
        "operators: Could not update c",
    ]
    assert told(Stage.API, evidence, operators=operators) == []


def assert_says(cause: diagnosis_causes.Cause | None, code: str, advice: str) -> None:
    assert (cause.code if cause else "") == code
    assert advice in (f"{cause.message} {cause.advice}" if cause else "")


def test_every_code_has_its_explanation() -> None:
    files = [*(UTILS / "diagnosis").glob("*.py"), *(UTILS / "progress").glob("*.py")]
    calls = [node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    said = [node.args[0] for node in calls if ast.unparse(node.func) == "found"]
    codes = {code.value for code in said if isinstance(code, ast.Constant)}
    assert len(codes) > 15
    assert codes <= EXPLANATIONS.keys()
    named = {row.code for row in (*diagnosis_causes.METAL, *diagnosis_causes.CONSOLE)}
    named |= {row.code.replace("console", "service") for row in diagnosis_causes.CONSOLE}
    chosen = {"bmc.password", "bmc.timeout", "bmc.no-answer", "metal.other", "api.not-held", "api.nothing-comes-back"}
    standstills = {stalls.STANDS_STILL, stalls.SLOW, stalls.ERROR, stalls.HANGS, stalls.STOPPED}
    assert EXPLANATIONS.keys() == codes | named | chosen | standstills


@pytest.mark.parametrize(
    ("message", "code", "advice"),
    [
        ("Failed to insert virtual media: InsertMedia timed out", "metal.medium", "must reach the API address"),
        ("Could not inspect: timeout reached while inspecting the node", "metal.agent", "never reached Ironic"),
        ("Timeout reached while waiting for callback for node x", "metal.agent", "never reached Ironic"),
        ("Failed to get power state: HTTP 401 Unauthorized", "metal.password", "refuses the password"),
        (
            "HTTP GET /x returned code 429. There were too many failed logins; try again in 4 s.",
            "metal.password",
            "refuses the password",
        ),
        ("certificate verify failed: unable to get local issuer certificate", "metal.certificate", "is not trusted"),
        (
            "No suitable device was found for deployment using these hints {'serial': 'x'}",
            "metal.root-device",
            "None of its disks fits",
        ),
        (
            "Unable to connect to https://192.168.126.1:8000: Connection refused",
            "metal.unreachable",
            "is not reached from inside",
        ),
        (
            "MAC address 52:54:00:00:00:01 conflicts with existing node x: in use",
            "metal.mac",
            "Another host has its MAC",
        ),
        ("Failed to change power state to 'power on'", "metal.power", "did not switch it"),
        ("something unheard of", "", ""),
    ],
)
def test_what_metal3_says(message: str, code: str, advice: str) -> None:
    assert_says(diagnosis_causes.of_metal(message), code, advice)


@pytest.mark.parametrize(
    ("words", "code", "advice"),
    [
        ("write failed: No space left on device", "console.disk-full", "disk is full"),
        ("Kernel panic - not syncing: VFS", "console.broke-down", "broke down"),
        ("x509: certificate signed by unknown authority", "console.certificate", "does not trust"),
        ("net/http: TLS handshake timeout", "console.outside", "no way out"),
        ("BdsDxe: failed to load Boot0001", "console.nothing-to-boot", "nothing to boot"),
        ("Fedora login:", "", ""),
    ],
)
def test_what_consoles_say(words: str, code: str, advice: str) -> None:
    assert_says(diagnosis_causes.of_console(words), code, advice)


ANSWERS = {
    "baremetalhosts": [
        {
            "metadata": {"name": "a"},
            "status": {
                "provisioning": {"state": "inspecting"},
                "errorType": "inspection error",
                "errorMessage": "https://me:PLANT@bmc failed\n" + "x" * 900,
            },
        },
        {"metadata": {"name": "b"}},
    ],
    "clusteroperators": [
        {
            "metadata": {"name": "dns"},
            "status": {"conditions": [{"type": "Degraded", "status": "True", "message": "m"}]},
        },
        {"metadata": {"name": "etcd"}, "status": {"conditions": [{"type": "Available", "status": "False"}]}},
        {"metadata": {"name": "fine"}, "status": {"conditions": [{"type": "Available", "status": "True"}]}},
        {"metadata": {"name": "new"}},
    ],
}


def program(tmp_path: Path, answers: str) -> Client:
    path, paths = tmp_path / "oc", Paths("demo")
    asserted = f"assert '--kubeconfig={paths.kubeconfig}' in sys.argv"
    path.write_text(f"#!/usr/bin/env python3\nimport json, sys\n{asserted}\n{answers}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Client(path, paths.kubeconfig, tmp_path)


def test_the_cluster_is_asked_by_its_client(tmp_path: Path) -> None:
    items = f"{ANSWERS!r}[sys.argv[2].partition('.')[0]]"
    client = program(tmp_path, f"print(json.dumps({{'kind': 'List', 'items': {items}}}))")
    first, second = diagnosis_cluster.metal_hosts(client)
    assert (first.state, first.error_type, second) == ("inspecting", "inspection error", BareMetalHost("b"))
    assert first.error_message.startswith("https://***@bmc failed x")
    assert len(first.error_message) < 420
    assert diagnosis_cluster.operators(client) == {"dns": "m", "etcd": ""}


@pytest.mark.parametrize("answers", ["sys.exit(1)", "print('no json')", "print('[]')", 'print(\'{"kind": "List"}\')'])
def test_a_cluster_that_does_not_answer(tmp_path: Path, answers: str) -> None:
    assert diagnosis_cluster.metal_hosts(program(tmp_path, answers)) == []


def test_without_a_cluster_nobody_is_asked() -> None:
    assert client_of(Paths("demo")) is None


def test_the_hosts_own_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  1000 kB\nMemAvailable:  30 kB\n")
    (tmp_path / "cpu").write_text("some avg10=1.00 avg60=2.50 avg300=0 total=1\nfull avg10=0\n")
    (tmp_path / "io").write_text("rubbish")
    monkeypatch.setattr(host, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(diagnosis_host, "PRESSURE", tmp_path)
    seen = diagnosis_host.look("", ["127.0.0.1"])
    assert (seen.memory_available, seen.pressure) == (0.03, {"cpu": 2.5})
    assert seen.api == {"127.0.0.1": "Connection refused"}
    assert seen.api_refused == ["127.0.0.1"]
    assert (seen.api_name, list(seen.api_addresses)) == ("", [])
    assert json.dumps(seen.load)
