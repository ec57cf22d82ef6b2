"""By whom the cluster is asked before its nodes are switched."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.stop import WITHOUT_API
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.modules import cluster_power

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class Lab:
    kubeconfig: Path
    lab: str = "demo"


@dataclass
class Client:
    error: str = ""

    def get(self, _kind: str) -> list[Mapping[str, Any]]:
        if self.error:
            raise ApiError("unreachable", self.error)
        return []


@dataclass
class Host:
    paths: Any
    clients: list[Client] = field(default_factory=list)
    """At most one."""

    def client_for(self, outcome_of_installation: str, **params: Any) -> tuple[Any, list[str]]:
        given = {"lab": "demo", "tools": "/tools", "state": "stopped", "force": False, **params}
        return cluster_power.client_for(given, self.paths, outcome_of_installation)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(Lab(tmp_path / "kubeconfig"))
    monkeypatch.setattr(cluster_power, "client_of", lambda *_: next(iter(made.clients), None))
    return made


def test_a_lab_without_a_cluster_is_not_asked(host: Host) -> None:
    host.clients = [Client("must not be asked")]
    assert host.client_for(outcome.NOTHING) == (None, [])
    assert host.client_for(outcome.FAILED) == (None, [])


@pytest.mark.parametrize("state", [outcome.FAILED, outcome.INTERRUPTED])
def test_a_cluster_is_asked_although_its_installation_has_failed(host: Host, state: str) -> None:
    host.paths.kubeconfig.touch()
    host.clients = [Client()]
    assert host.client_for(state) == (host.clients[0], [])
    host.clients = [Client("connection refused.")]
    client, [warning] = host.client_for(state)
    assert client is None
    assert warning.startswith("connection refused. The lab's installation has not succeeded")
    host.clients = []
    client, [warning] = host.client_for(state)
    assert "no `oc` in /tools" in warning


def test_an_installed_cluster_is_asked_unless_forced(host: Host) -> None:
    host.clients = [Client("its own affair")]
    assert host.client_for(outcome.INSTALLED) == (host.clients[0], [])
    host.clients = []
    assert host.client_for(outcome.INSTALLED, force=True) == (None, [WITHOUT_API])
    for params in ({}, {"state": "started", "force": True}):
        with pytest.raises(OperatorError, match="cannot be asked"):
            host.client_for(outcome.INSTALLED, **params)
