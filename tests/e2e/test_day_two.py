"""Day two of a lab whose cluster is installed: its nodes follow lab_spec, by playbooks, real kubectl, BMCs and VMs.

The tests share the lab. Each says how many workers it needs, and the cluster follows if a test before has left others.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from support import installed_lab
from support.failures import ending
from support.installed_lab import AUDIT, KUBECONFIG
from support.stand_in.kubernetes import audit
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from subprocess import CompletedProcess

    from support.install_lab import InstallLab

CONTROL_PLANE = {"count": 3}
API = "openshift-machine-api"
HOSTS, MACHINES, NODES = "baremetalhosts.metal3.io", "machines.machine.openshift.io", "nodes"
STAGES_OF_NODES = "shrink nodes bmc grow"
BACKUPS = "/var/lib/nometal/install/lab/backups"
PAUSED = "baremetalhost.metal3.io/paused"
REMOVALS = "/var/log/removals-of-vms"
# The host's time of each VM whose definition goes.
WITNESS = "stdbuf -oL virsh event --event lifecycle --loop --timestamp"
RESET = re.compile(r"^(\S+) .*/ComputerSystem\.Reset 204 .* lab-(\S+) from ", re.MULTILINE)
UNDEFINED = re.compile(r"^(\S+ \S+): event 'lifecycle' for domain '?lab-([^' ]+)'?: Undefined", re.MULTILINE)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstallLab]:
    nodes = {"control_plane": CONTROL_PLANE, "workers": {"count": 2}}
    with installed_lab.start(tmp_path_factory.mktemp("lab"), nodes=nodes) as made:
        yield made


def has(lab: InstallLab, workers: int, spares: int = 0, **overrides: Any) -> None:
    """In lab_spec. Spares are registered."""
    more = {"spares": {"count": spares, "register": True}} if spares else {}
    lab.has_nodes(control_plane=CONTROL_PLANE, workers={"count": workers}, **more, overrides=overrides)


def given(lab: InstallLab, workers: int) -> None:
    """The cluster has them, also where this test runs alone."""
    has(lab, workers)
    if replicas(lab) != workers:
        play(lab)


def play(lab: InstallLab, *arguments: str, playbooks: str = "site") -> str:
    """What is shown of a run that goes well."""
    done = lab.follow(*arguments, playbooks=playbooks)
    assert done.returncode == 0, ending(done.stdout)
    return words_of(done)


def fails(lab: InstallLab, *arguments: str) -> str:
    done = lab.follow(*arguments)
    assert done.returncode != 0, ending(done.stdout)
    return words_of(done)


def words_of(done: CompletedProcess[str]) -> str:
    return " ".join(done.stdout.split())


def of_cluster(lab: InstallLab, kind: str) -> dict[str, Any]:
    said = ask(lab, "get", kind, "--output=json")
    return {item["metadata"]["name"]: item for item in json.loads(said)["items"]}


def ask(lab: InstallLab, *words: str) -> str:
    return lab.host.run(["kubectl", "--kubeconfig", KUBECONFIG, "--namespace", API, *words]).stdout


def workers(lab: InstallLab, of: str = "worker") -> list[str]:
    """Whose Nodes are ready."""
    return sorted(
        name
        for name, item in of_cluster(lab, NODES).items()
        if name.startswith(of)
        and any((each["type"], each["status"]) == ("Ready", "True") for each in item["status"]["conditions"])
    )


def states(lab: InstallLab) -> Mapping[str, str]:
    """Of workers and spares, as metal3 has them."""
    found = of_cluster(lab, HOSTS).items()
    return {name: item["status"]["provisioning"]["state"] for name, item in found if "control-plane" not in name}


def vms(lab: InstallLab, *options: str) -> set[str]:
    """Of workers and spares."""
    named = lab.host.run(["virsh", "list", "--name", *(options or ("--all",))]).stdout.split()
    return {name.removeprefix("lab-") for name in named if "control-plane" not in name}


def running(lab: InstallLab) -> dict[str, str]:
    """VMs with their numbers, of which each start takes another."""
    rows = [row.split() for row in lab.host.run(["virsh", "-q", "list"]).stdout.splitlines()]
    return {name: number for number, name, *_state in rows}


@pytest.mark.full
def test_another_run_leaves_the_cluster_as_it_is(lab: InstallLab) -> None:
    given(lab, workers=2)
    before = running(lab)
    play(lab)  # the lab was made before lab_spec had `install`, which the BMCs are told
    assert changes(lab) == 0
    assert running(lab) == before


@pytest.mark.full
def test_check_mode_foresees_workers_that_have_no_vms(lab: InstallLab) -> None:
    given(lab, workers=2)
    has(lab, workers=3)
    assert "register worker-2" in play(lab, "--check", "--diff")
    assert vms(lab) == {"worker-0", "worker-1"}


@pytest.mark.long
def test_workers_that_lab_spec_adds_join_the_cluster(lab: InstallLab) -> None:
    given(lab, workers=2)
    has(lab, workers=4)
    before = running(lab)
    shown = play(lab)
    assert "register worker-3" in shown
    assert "Not rehearsed, for nodes are in use" in shown
    assert before.items() <= running(lab).items()
    assert workers(lab) == ["worker-0", "worker-1", "worker-2", "worker-3"]
    assert {*states(lab).values()} == {"provisioned"}
    assert replicas(lab) == 4
    assert vms(lab, "--state-running") == {*workers(lab)}


@pytest.mark.full
def test_without_the_api_no_worker_leaves(lab: InstallLab) -> None:
    given(lab, workers=4)
    has(lab, workers=1)
    scenario(lab, api={"refuse": True})
    shown = fails(lab)
    scenario(lab)
    assert "worker-1, worker-2, worker-3 cannot be taken out of it. Nothing was changed." in shown
    assert vms(lab, "--state-running") == {"worker-0", "worker-1", "worker-2", "worker-3"}


@pytest.mark.full
def test_pods_that_may_not_be_evicted_are_named(lab: InstallLab) -> None:
    given(lab, workers=4)
    has(lab, workers=1)
    allow(lab, unavailable=0)
    shown = fails(lab, "-e", "cluster_nodes_drain_seconds=3")
    allow(lab, unavailable=1)
    assert re.search(r"worker-\d cannot be drained: .*router-default", shown)
    assert vms(lab, "--state-running") == {"worker-0", "worker-1", "worker-2", "worker-3"}
    assert workers(lab) == ["worker-0", "worker-1", "worker-2", "worker-3"]


def test_workers_leave_the_cluster_before_their_vms_go(lab: InstallLab) -> None:
    given(lab, workers=4)
    has(lab, workers=1)
    machines = {name: item["spec"]["consumerRef"]["name"] for name, item in of_cluster(lab, HOSTS).items()}
    began = float(lab.host.run("date +%s.%6N").stdout)
    lab.host.run(["systemd-run", "--unit=witness", "sh", "-c", f"exec {WITNESS} >{REMOVALS}"])
    play(lab)
    lab.host.run("systemctl stop witness")
    assert (workers(lab), replicas(lab), vms(lab)) == (["worker-0"], 1, {"worker-0"})
    assert {*states(lab)} == {"worker-0"}
    assert not [name for name in of_cluster(lab, "secrets") if re.match("worker-[123]", name)]
    cordoned, left = asked(lab, "patch"), asked(lab, audit.GONE)
    switched, undefined = resets(lab, began), removed(lab)
    for name in ("worker-1", "worker-2", "worker-3"):
        node, machine, host = left[NODES, name], left[MACHINES, machines[name]], left[HOSTS, name]
        assert cordoned[NODES, name] <= switched[name]
        assert max(node, machine) <= host <= undefined[name]
    assert {*undefined} == {*switched} == {"worker-1", "worker-2", "worker-3"}
    before = running(lab)
    assert changes(lab) == 0
    assert running(lab) == before


@pytest.mark.full
def test_a_spare_becomes_a_worker(lab: InstallLab) -> None:
    given(lab, workers=1)
    has(lab, workers=1, spares=1)
    play(lab)
    assert states(lab) == {"worker-0": "provisioned", "spare-0": "available"}
    assert (workers(lab), replicas(lab)) == (["worker-0"], 1)
    assert changes(lab) == 0

    has(lab, workers=2)
    play(lab)
    assert states(lab) == {"worker-0": "provisioned", "worker-1": "provisioned"}
    assert (workers(lab), replicas(lab), vms(lab)) == (["worker-0", "worker-1"], 2, {"worker-0", "worker-1"})


@pytest.mark.full
def test_a_worker_is_replaced(lab: InstallLab) -> None:
    given(lab, workers=2)
    before = identities(lab)
    play(lab, "-e", "cluster_nodes_replace=worker-1")
    after = identities(lab)
    assert (workers(lab), replicas(lab)) == (["worker-0", "worker-1"], 2)
    assert after["worker-0"] == before["worker-0"]
    assert all(new != old for new, old in zip(after["worker-1"], before["worker-1"], strict=True))
    assert changes(lab) == 0


@pytest.mark.full
@pytest.mark.parametrize("is_lost", [False, True], ids=["healthy", "lost"])
def test_a_node_of_the_control_plane_is_replaced(lab: InstallLab, *, is_lost: bool) -> None:
    """By the parts of site.yml that it takes. One is healthy, of the other its VM is lost with its disks."""
    before = identities(lab, of="control-plane")
    if is_lost:
        lab.host.run(["virsh", "destroy", "lab-control-plane-1"])
        lab.host.run(["virsh", "undefine", "lab-control-plane-1", "--nvram", "--remove-all-storage"])
    play(lab, "-e", "cluster_nodes_replace=control-plane-1", playbooks=STAGES_OF_NODES)
    after = identities(lab, of="control-plane")
    assert [name for name in before if before[name] == after[name]] == ["control-plane-0", "control-plane-2"]
    assert all(new != old for new, old in zip(after["control-plane-1"], before["control-plane-1"], strict=True))
    [operator] = of_cluster(lab, "etcds.operator.openshift.io").values()
    told = {each["type"]: each["message"] for each in operator["status"]["conditions"]}
    assert told["EtcdMembersAvailable"] == "3 members are available"
    assert not operator["spec"].get("unsupportedConfigOverrides")
    assert changes(lab, STAGES_OF_NODES) == 0


@pytest.mark.full
def test_another_password_in_the_cluster_is_noticed_and_mended(lab: InstallLab) -> None:
    given(lab, workers=2)
    secret = of_cluster(lab, HOSTS)["worker-1"]["spec"]["bmc"]["credentialsName"]
    ask(lab, "patch", "secret", secret, "--type=merge", "--patch", json.dumps({"stringData": {"password": "another"}}))
    wait_until("metal3 is refused", lambda: error_of(lab, "worker-1") == "registration error")
    assert "The BMC of worker-1 refuses the password that the cluster has" in play(lab, playbooks="status")
    assert "update worker-1 (login of its BMC)" in play(lab, playbooks="shrink grow")
    wait_until("metal3 is let in", lambda: not error_of(lab, "worker-1"))
    assert changes(lab) == 0


def test_the_cluster_stops_and_starts(lab: InstallLab) -> None:
    """More of it is in test_power_cluster.py and in tests/integration/cluster/test_power.py."""
    before = workers(lab)
    play(lab, "-e", "cluster_stop_shutdown_seconds=1", playbooks="stop")
    assert lab.host.run("virsh list --name").stdout.split() == []
    assert lab.host.run(["ls", BACKUPS]).stdout.split()
    play(lab, playbooks="start")
    assert workers(lab) == before
    assert not any(item["spec"].get("unschedulable") for item in of_cluster(lab, NODES).values())
    assert not any(PAUSED in item["metadata"].get("annotations", {}) for item in of_cluster(lab, HOSTS).values())


def scenario(lab: InstallLab, **told: Any) -> None:
    lab.scenario(audit=AUDIT, **told)


def changes(lab: InstallLab, playbooks: str = "site") -> int:
    done = lab.follow(playbooks=playbooks)
    assert done.returncode == 0, ending(done.stdout)
    *_so_far, number = re.findall(r"^hypervisor .* changed=(\d+)", done.stdout, re.MULTILINE)  # one after each playbook
    return int(number)


def replicas(lab: InstallLab) -> int:
    [only] = of_cluster(lab, "machinesets.machine.openshift.io").values()
    return int(only["spec"]["replicas"])


def error_of(lab: InstallLab, host: str) -> str:
    return str(of_cluster(lab, HOSTS)[host]["status"].get("errorType", ""))


def identities(lab: InstallLab, of: str = "worker") -> Mapping[str, tuple[str, str, str]]:
    """Of the host, its Machine and its Node, of each worker, or of others that are ready."""
    hosts, machines, nodes = (of_cluster(lab, kind) for kind in (HOSTS, MACHINES, NODES))

    def uids(name: str) -> tuple[str, str, str]:
        machine = machines[hosts[name]["spec"]["consumerRef"]["name"]]
        found = (hosts[name], machine, nodes[machine["status"]["nodeRef"]["name"]])
        first, second, third = (str(item["metadata"]["uid"]) for item in found)
        return first, second, third

    return {name: uids(name) for name in workers(lab, of)}


def allow(lab: InstallLab, unavailable: int) -> None:
    change = json.dumps({"spec": {"maxUnavailable": unavailable}})
    budget = ("poddisruptionbudget", "router-default", "--namespace=openshift-ingress")
    ask(lab, "patch", *budget, "--type=merge", "--patch", change)


def asked(lab: InstallLab, verb: str) -> Mapping[tuple[str, str], float]:
    """When it was first, by kind and name."""
    entries = audit.read(lab.host.run(["cat", AUDIT]).stdout)
    return {(entry.kind, entry.name): entry.time for entry in reversed(entries) if entry.verb == verb}


def resets(lab: InstallLab, since: float) -> Mapping[str, float]:
    """When a BMC first switched its VM, by what it logs."""
    log = lab.host.run(["journalctl", "--unit=nometal-bmc-lab", f"--since=@{since:.6f}", "--output=short-unix"]).stdout
    return {name: float(moment) for moment, name in reversed(RESET.findall(log))}


def removed(lab: InstallLab) -> Mapping[str, float]:
    """When the definition of each VM was."""
    seen = UNDEFINED.findall(lab.host.run(["cat", REMOVALS]).stdout)
    return {name: datetime.fromisoformat(moment).timestamp() for moment, name in seen}
