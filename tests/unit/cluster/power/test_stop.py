"""What a stop does that finds another's record, an API that fails in the middle, or nobody who takes a backup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.power_fakes import MASTERS, NODES, WORKERS, Bmcs, FakeCluster, Log

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Member, Operator
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.stop import (
    GOES_ON,
    NO_NODE_TO_BACK_UP_BY,
    ClusterStop,
    Options,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.switching import Switching
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from pathlib import Path

ETCD_DEGRADED = Operator("etcd", ("Degraded",))


class Backup:
    def __init__(self, error: str = "") -> None:
        self.error = error
        self.taken: list[str] = []

    def take(self, node: str) -> str:
        if self.error:
            raise OperatorError(self.error)
        self.taken.append(node)
        return "/backups/etcd.tar"


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path, "demo")


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def stop(
    cluster: FakeCluster, record: Record, backup: Backup | None = None, *, check_mode: bool = False, **options: Any
) -> dict[str, Any]:
    lab = Lab(NODES, Switching(cluster.bmcs, Log(), 100, cluster.time.clock), record, check_mode)
    return ClusterStop(lab, cluster, Options(**options), list, backup, lambda: 0.0).run()


def test_the_record_of_an_old_stop_excuses_nothing(cluster: FakeCluster, record: Record) -> None:
    """The nodes were switched on by hand, and one was left cordoned."""
    record.add([node.vm_name for node in NODES])
    cluster.known["master-0"] = Member(MASTERS[0], "master-0", unschedulable=True, marked=True)
    cluster.unsettled = [ETCD_DEGRADED]
    with pytest.raises(OperatorError, match="etcd"):
        stop(cluster, record)
    cluster.fails = {"members"}
    with pytest.raises(OperatorError, match="Nothing was stopped"):
        stop(cluster, record)
    cluster.fails, cluster.unsettled, backup = set(), [], Backup()
    stop(cluster, record, backup)
    assert backup.taken == ["master-0"]


def test_a_stop_that_has_switched_nodes_off_goes_on(cluster: FakeCluster, record: Record) -> None:
    record.add([node.vm_name for node in NODES])
    cluster.bmcs = Bmcs(MASTERS)
    cluster.unsettled, backup = [ETCD_DEGRADED], Backup()
    assert "shut down master-0, master-1, master-2" in stop(cluster, record, backup)["steps"]
    assert backup.taken == []
    cluster.bmcs, cluster.fails = Bmcs(WORKERS), {"members"}
    assert any(GOES_ON in warning for warning in stop(cluster, record)["warnings"])


@pytest.mark.parametrize(("fails", "changed"), [("operators", False), ("cordon", True)])
def test_an_api_that_fails_in_the_middle_ends_it_unless_forced(
    cluster: FakeCluster, record: Record, fails: str, changed: bool
) -> None:
    cluster.fails = {fails}
    with pytest.raises(OperatorError, match=r"Nothing was stopped\.") as refused:
        stop(cluster, record)
    assert ("Nodes may be cordoned" in str(refused.value)) is changed
    assert cluster.bmcs.asked == []

    forced = stop(cluster, record, force=True)
    assert forced["steps"] == ["shut down worker-0, worker-1", "shut down master-0, master-1, master-2"]
    assert any(f"does not do {fails}" in warning for warning in forced["warnings"])


def test_a_backup_that_was_not_taken_is_no_step(cluster: FakeCluster, record: Record) -> None:
    with pytest.raises(OperatorError, match=r"the disk is full\. .*cluster_stop_backup=false"):
        stop(cluster, record, Backup("the disk is full."))
    forced = stop(cluster, record, Backup("the disk is full."), force=True)
    assert forced["steps"][0] == "cordon master-0, master-1, master-2, worker-0, worker-1"
    assert "the disk is full." in forced["warnings"]


def test_without_a_control_plane_that_is_ready_etcd_is_not_backed_up(cluster: FakeCluster, record: Record) -> None:
    cluster.known.update((node.name, Member(node, node.name, ready=False)) for node in MASTERS)
    forced = stop(cluster, record, backup := Backup(), force=True)
    assert (backup.taken, "back up etcd" in forced["steps"]) == ([], False)
    assert NO_NODE_TO_BACK_UP_BY in forced["warnings"]


def test_check_mode_shows_a_backup_only_where_one_can_be_taken(cluster: FakeCluster, record: Record) -> None:
    assert stop(cluster, record, Backup(), check_mode=True)["steps"][0] == "back up etcd"
    cluster.known.update((node.name, Member(node, node.name, ready=False)) for node in MASTERS)
    foreseen = stop(cluster, record, Backup(), check_mode=True, force=True)
    assert "back up etcd" not in foreseen["steps"]
    assert NO_NODE_TO_BACK_UP_BY in foreseen["warnings"]
