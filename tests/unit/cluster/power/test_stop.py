"""What a stop does that finds another's record, an API that fails in the middle, or nobody who takes a backup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.power_fakes import MASTERS, NODES, WORKERS, Bmcs, FakeCluster, Log

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Member, Operator
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.stop import GOES_ON, ClusterStop, Options
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


def stop(cluster: FakeCluster, record: Record, backup: Backup | None = None, **options: Any) -> dict[str, Any]:
    lab = Lab(NODES, Switching(cluster.bmcs, Log(), 100, cluster.time.clock), record)
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
