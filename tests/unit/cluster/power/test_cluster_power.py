"""By whom the cluster is asked before its nodes are switched, and what happens when two runs come at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.stop import WITHOUT_API
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome
from ansible_collections.nometal.ipi.plugins.module_utils._core import lock
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.modules import cluster_power

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths


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


def test_a_start_waits_until_a_stop_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "RUN", tmp_path / "run")
    monkeypatch.setattr(lock, "LOCKS", tmp_path / "run/locks")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    begun, ends, ran = threading.Event(), threading.Event(), []

    def switch(params: dict[str, Any], _paths: Paths, *, check_mode: bool) -> dict[str, Any]:
        ran.append("looks" if check_mode else params["state"])
        if params["state"] == "stopped":
            begun.set()
            assert ends.wait(60)
            ran.append("has stopped")
        return {}

    def run(state: str, *, check_mode: bool = False) -> threading.Thread:
        given = ({"lab": "demo", "state": state},)
        thread = threading.Thread(target=cluster_power.run, args=given, kwargs={"check_mode": check_mode})
        thread.start()
        return thread

    monkeypatch.setattr(cluster_power, "switch", switch)
    stopping = run("stopped")
    assert begun.wait(60)
    run("started", check_mode=True).join(60)
    starting = run("started")
    starting.join(0.2)
    ends.set()
    for thread in (stopping, starting):
        thread.join(60)
    assert ran == ["stopped", "looks", "has stopped", "started"]
