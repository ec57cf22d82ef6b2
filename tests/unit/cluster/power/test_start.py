"""Seeing a start through: nodes that do not come back, what the API said before, and which requests are approved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from support.power_fakes import MASTERS, NODES, WORKERS, Bmcs, FakeCluster, Log, steps

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Member, Operator
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node, Record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.requests import (
    BOOTSTRAPPER,
    CLIENT,
    Judgement,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.start import IS_HEARD, ClusterStart, Limits
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.switching import Switching
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIMITS = Limits(api=100, nodes=200, operators=300, silence=20, quiet=60)
CONSOLE = Operator("console", ("Available",))


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Of a stop that has switched all off."""
    made = Record(tmp_path, "demo")
    made.add([node.vm_name for node in NODES])
    return made


@pytest.fixture
def cluster() -> FakeCluster:
    marked = {node.name: Member(node, node.name, unschedulable=True, marked=True) for node in NODES}
    return FakeCluster(bmcs=Bmcs([]), known=marked)


def start(cluster: FakeCluster, record: Record) -> dict[str, Any]:
    lab = Lab(NODES, Switching(cluster.bmcs, Log(), 100, cluster.time.clock), record)
    return ClusterStart(lab, cluster, lambda _names: [], LIMITS, cluster.time.clock).run()


def test_all_come_back(cluster: FakeCluster, record: Record) -> None:
    start(cluster, record)
    assert cluster.done == [f"uncordon {node.name}" for node in NODES]
    assert record.names() == []


@pytest.mark.parametrize("dead", ["master-1", "worker-0"])
def test_one_dead_node_is_named_after_the_others_are_back(cluster: FakeCluster, record: Record, dead: str) -> None:
    cluster.dead = {dead}
    with pytest.raises(OperatorError, match=f"Nodes are not ready after 3 min: {dead}\\."):
        start(cluster, record)
    assert cluster.bmcs.on == {node.vm_name for node in NODES}
    assert cluster.done == [f"uncordon {node.name}" for node in NODES]
    assert record.names()  # the next start goes on
    assert cluster.time.now < 2 * LIMITS.nodes  # it is not waited for twice

    cluster.dead.clear()
    start(cluster, record)
    assert record.names() == []


def test_without_a_majority_of_the_control_plane_nothing_else_is_started(cluster: FakeCluster, record: Record) -> None:
    cluster.dead = {"master-0", "master-2"}
    with pytest.raises(OperatorError, match="master-0, master-2"):
        start(cluster, record)
    assert cluster.bmcs.on == {node.vm_name for node in MASTERS}
    assert cluster.done == []


def test_a_node_that_this_run_has_not_switched_on_has_to_be_heard_too(cluster: FakeCluster, record: Record) -> None:
    """The run before has switched it on and was killed. What the API says of it is from before the stop."""
    cluster.bmcs.on = {node.vm_name for node in NODES}
    cluster.dead = {WORKERS[1].name}
    with pytest.raises(OperatorError, match=r": worker-1\."):
        start(cluster, record)
    cluster.dead.clear()
    assert steps(start(cluster, record), "switch on") == []


@dataclass
class SlowOperators(FakeCluster):
    """What its operators say is from before the stop, for a while."""

    reconciles: Sequence[float] = (20, 100)

    def operators(self) -> list[Operator]:
        since, until = self.reconciles
        return [CONSOLE] if since <= self.time.now < until else []


def test_what_operators_said_before_the_stop_does_not_count(cluster: FakeCluster, record: Record) -> None:
    slow = SlowOperators(bmcs=cluster.bmcs, known=cluster.known)
    start(slow, record)
    assert slow.time.now > slow.reconciles[1]


def test_where_nothing_was_done_nothing_is_waited_for(record: Record) -> None:
    record.remove()
    running = FakeCluster()
    assert not start(running, record)["changed"]
    assert running.time.now < LIMITS.quiet


def test_operators_that_do_not_settle_are_named(cluster: FakeCluster, record: Record) -> None:
    cluster.unsettled = [CONSOLE]
    [warning] = start(cluster, record)["warnings"]
    assert "have not settled in 5 min: console (not available)" in warning


def first(name: str, node: Node, reason: str = "") -> Judgement:
    """A kubelet's request for the certificate with which it speaks to the API."""
    return Judgement(name, f"system:node:{node.name}", CLIENT, reason, node, BOOTSTRAPPER)


def test_a_kubelet_that_is_heard_gets_no_first_certificate(cluster: FakeCluster, record: Record) -> None:
    """Whoever has the bootstrapper's credentials may ask in its name."""
    cluster.dead, cluster.pending = {"worker-1"}, [first("forged", WORKERS[0]), first("needed", WORKERS[1])]

    @dataclass
    class Revived(FakeCluster):
        def approve(self, names: Sequence[str]) -> None:
            super().approve(names)
            self.dead -= {"worker-1"} if "needed" in names else set()

    revived = Revived(bmcs=cluster.bmcs, known=cluster.known, dead=cluster.dead, pending=cluster.pending)
    started = start(revived, record)
    assert [step for step in revived.done if step.startswith("approve")] == ["approve needed"]
    assert started["left"] == ["forged"]
    [warning] = started["warnings"]
    assert warning.startswith("Certificate request left: forged (system:node:worker-0, ")
    assert warning.endswith(IS_HEARD)


def test_requests_that_wait_no_longer_are_not_reported(cluster: FakeCluster, record: Record) -> None:
    @dataclass
    class Deciding(FakeCluster):
        """Somebody decides on one of them meanwhile."""

        def operators(self) -> list[Operator]:
            self.pending = self.pending[-1:]
            return []

    foreign = [first(name, WORKERS[0], "it is not for a node of the lab") for name in ("gone", "stays")]
    started = start(Deciding(bmcs=cluster.bmcs, known=cluster.known, pending=foreign), record)
    assert (started["left"], len(started["warnings"])) == (["stays"], 1)


def test_a_node_is_heard_by_the_name_that_it_has_in_the_cluster(cluster: FakeCluster, record: Record) -> None:
    """It was found by its address."""

    class Renamed(FakeCluster):
        def heartbeats(self) -> dict[str, str]:
            return {f"{name}.lan": beat for name, beat in super().heartbeats().items()}

    named = {node.name: Member(node, f"{node.name}.lan") for node in NODES}
    with pytest.raises(OperatorError, match=r": worker-1\."):
        start(Renamed(bmcs=cluster.bmcs, known=named, dead={"worker-1"}), record)
