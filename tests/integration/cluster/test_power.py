"""A cluster is stopped and started by its API and its BMCs: in order, only what is the lab's, and what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import csrs, power_cluster
from support.stand_in.controllers import objects
from support.stand_in.controllers.certificates import DAY
from support.stand_in.controllers.objects import HOSTS, NAMESPACE, REQUESTS
from support.waiting import wait_until

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.power_cluster import PowerCluster

ALL = {*power_cluster.NAMES}
BY_START, BY_CLUSTER = "KubectlApprove", "NodeCSRApprove"
PAUSED = "baremetalhost.metal3.io/paused"
STOPPED = [
    "cordon control-plane-0, control-plane-1, control-plane-2, worker-0, worker-1",
    "drain worker-0, worker-1",
    "pause control-plane-0, control-plane-1, control-plane-2, worker-0, worker-1",
    "shut down worker-0, worker-1",
    "shut down control-plane-0, control-plane-2",
    "shut down control-plane-1",
]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[PowerCluster]:
    with power_cluster.start(tmp_path) as started:
        yield started


def paused(cluster: PowerCluster) -> set[str]:
    hosts = cluster.fake.store.list(HOSTS, NAMESPACE)
    return {objects.name(host) for host in hosts if PAUSED in objects.annotations_of(host)}


def approved(cluster: PowerCluster, *reasons: str) -> set[str]:
    found = cluster.fake.store.list(REQUESTS)
    return {objects.name(item) for item in found if objects.condition(item, "Approved").get("reason") in reasons}


def test_a_stop_and_a_start_after_four_days(cluster: PowerCluster) -> None:
    cluster.fake.mark("nodes", "worker-1", "kept", "yes")
    assert cluster.stop(check_mode=True)["steps"] == STOPPED
    assert (cluster.bmcs.asked, cluster.unschedulable()) == ([], set())

    stopped = cluster.stop(days=4)
    assert (stopped["steps"], stopped["forced"]) == (STOPPED, [])
    assert cluster.bmcs.asked == [
        *(f"GracefulShutdown {name}" for name in ("worker-0", "worker-1", "control-plane-0", "control-plane-2")),
        "GracefulShutdown control-plane-1",
    ]
    assert any("joined less than 25 hours ago" in warning for warning in stopped["warnings"])
    patched = [entry.kind for entry in cluster.api.server.audit.entries() if entry.verb == "patch"]
    assert patched[: 2 * len(ALL)] == ["nodes"] * len(ALL) + [HOSTS] * len(ALL)
    assert not cluster.stop()["changed"]

    waiting = requests_that_wait(cluster)
    cluster.rest(4 * DAY)
    started = cluster.start()
    assert [step for step in started["steps"] if not step.startswith("approve")] == [
        "switch on control-plane-0, control-plane-1, control-plane-2",
        "switch on worker-0, worker-1",
        "release control-plane-0, control-plane-1, control-plane-2, worker-0, worker-1",
        "uncordon control-plane-0, control-plane-1, control-plane-2, worker-0, worker-1",
    ]
    assert started["left"] == ["foreign-0", "foreign-1", "foreign-2"]
    assert len(waiting) == 37
    assert waiting <= approved(cluster, BY_START, BY_CLUSTER)
    assert {name for name in waiting if name.startswith("client")} <= approved(cluster, BY_START)
    assert not {*started["left"]} & approved(cluster, BY_START, BY_CLUSTER)
    assert (cluster.ready(), cluster.unschedulable(), paused(cluster)) == (ALL, set(), set())
    assert objects.annotations_of(cluster.node("worker-1"))["kept"] == "yes"

    again = cluster.start()
    assert (again["changed"], again["left"]) == (False, started["left"])


def requests_that_wait(cluster: PowerCluster) -> set[str]:
    """Forty, of which three are not the lab's; the names of the others."""
    nodes = cluster.nodes
    made = [csrs.client(f"client-{n}", nodes[n % 5].name) for n in range(30)]
    made += [csrs.serving(f"serving-{n}", nodes[4].name, dns=[nodes[4].name], ips=nodes[4].ips) for n in range(7)]
    foreign = [csrs.client("foreign-0", "worker-7"), csrs.client("foreign-1", nodes[0].name, unit="x")]
    foreign.append(csrs.serving("foreign-2", nodes[0].name, dns=[nodes[0].name], ips=["192.168.77.5"]))
    for request in [*made, *foreign]:
        cluster.fake.store.create(REQUESTS, csrs.object_of(request))
    return {request.name for request in made}


def test_what_others_have_cordoned_and_paused_stays_so(cluster: PowerCluster) -> None:
    cluster.api.kubectl("cordon", "worker-0")
    cluster.fake.mark(HOSTS, "worker-1", PAUSED, "by hand")
    cluster.stop()
    cluster.start()
    assert (cluster.unschedulable(), paused(cluster)) == ({"worker-0"}, {"worker-1"})


def test_what_others_have_cordoned_since_a_stop_stays_so(cluster: PowerCluster) -> None:
    """By hand, worker-0 was uncordoned after the stop, which leaves its annotation, and cordoned again."""
    cluster.stop()
    cluster.switch(on=True)
    wait_until("all are ready", lambda: cluster.has_quorum() and cluster.ready() == ALL)
    cluster.api.kubectl("uncordon", "worker-0")
    cluster.api.kubectl("cordon", "worker-0")
    assert "uncordon control-plane-0, control-plane-1, control-plane-2, worker-1" in cluster.start()["steps"]
    assert cluster.unschedulable() == {"worker-0"}
    assert "nometal.ipi/stopped" in objects.annotations_of(cluster.node("worker-0"))


def test_what_blocks_a_drain_is_named_and_the_node_is_stopped(cluster: PowerCluster) -> None:
    labels = {"app": "web"}
    place = {"name": "web", "namespace": "app"}
    cluster.fake.store.create(
        "poddisruptionbudgets.policy",
        {"metadata": place, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}},
    )
    pod: dict[str, Any] = {
        "metadata": {**place, "labels": labels},
        "spec": {"nodeName": "worker-0", "containers": [{"name": "web", "image": "web"}]},
    }
    cluster.fake.store.create("pods", pod)
    stopped = cluster.stop(drain_seconds=1)
    [warning] = [each for each in stopped["warnings"] if each.startswith("worker-0")]
    assert warning.startswith("worker-0: not drained in 1 s, and is stopped nevertheless: app/web: ")
    assert "disruption budget" in warning
    assert not cluster.has_quorum()


def test_a_cluster_that_is_not_healthy_or_does_not_answer_is_not_stopped(cluster: PowerCluster) -> None:
    cluster.bmcs.machines["lab-control-plane-0"].on = False
    cluster.fake.respec("control-plane-0", online=False)
    wait_until("it is missed", lambda: "control-plane-0" not in cluster.ready())
    with pytest.raises(OperatorError, match=r"(?s)Nothing was stopped.*control-plane-0 must be ready.*force=true"):
        cluster.stop()
    assert (cluster.bmcs.asked, cluster.unschedulable()) == ([], set())

    cluster.api.server.switches.unavailable = True
    cluster.api.server.look = lambda: cluster.api.server.switches
    with pytest.raises(OperatorError, match=r"Nothing was stopped\. Without the API"):
        cluster.stop()
    forced = cluster.stop(force=True)
    assert forced["steps"][0] == "shut down worker-0, worker-1"
    assert any("metal3 may switch nodes on again" in warning for warning in forced["warnings"])


def test_a_stop_that_was_killed_is_gone_on_with_although_the_api_is_gone(cluster: PowerCluster) -> None:
    cluster.stop()
    for name in ("lab-control-plane-1", "lab-worker-0"):
        cluster.bmcs.machines[name].on = True
    stopped = cluster.stop()
    assert stopped["steps"] == ["shut down worker-0", "shut down control-plane-1"]
    assert any("Continuing a stop" in warning for warning in stopped["warnings"])
    cluster.start()
    assert (cluster.ready(), cluster.unschedulable()) == (ALL, set())


def test_a_stop_that_was_killed_in_the_control_plane_is_gone_on_with(cluster: PowerCluster) -> None:
    """One of three is off, so that the control plane is not ready, and the API answers still."""
    cluster.stop()
    for name in ("lab-control-plane-0", "lab-control-plane-1"):
        cluster.bmcs.machines[name].on = True
    wait_until("it is missed", lambda: cluster.ready() == {"control-plane-0", "control-plane-1"})
    assert cluster.stop()["steps"] == ["shut down control-plane-0", "shut down control-plane-1"]


def test_after_a_power_cut_the_nodes_of_the_cluster_are_switched_on(cluster: PowerCluster) -> None:
    cluster.switch(on=False)
    assert cluster.start(check_mode=True)["steps"] == [
        "switch on control-plane-0, control-plane-1, control-plane-2",
        "switch on worker-0, worker-1",
    ]
    cluster.start()
    assert cluster.ready() == ALL


def test_a_start_that_stalls_says_why(cluster: PowerCluster) -> None:
    cluster.stop()
    cluster.findings = [Finding("node.console", "worker-1", "Its console ends with: error: no such device")]
    cluster.bmcs.machines["lab-worker-1"].system = False
    with pytest.raises(OperatorError) as stalled:
        cluster.start(nodes=30)
    assert "Nodes are not ready after 0 min: worker-1." in str(stalled.value)
    assert "no such device" in str(stalled.value)
    cluster.bmcs.machines["lab-worker-1"].system = True
    cluster.start()
    assert (cluster.ready(), cluster.unschedulable(), paused(cluster)) == (ALL, set(), set())

    cluster.switch(on=False)
    cluster.api.server.look = lambda: power_cluster.Switches(refuse=True)
    with pytest.raises(OperatorError, match="The API does not answer 0 min after the control plane was switched on"):
        cluster.start(api=1)
