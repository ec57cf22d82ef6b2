"""What is told of a lab's cluster without asking it."""

from __future__ import annotations

import fcntl
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import nodes as diagnosis_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.modules import cluster_info

LOGS = Path(__file__).with_name("logs")
NOTED = {"commands": ["create cluster"], "current": "create cluster", "version": "4.20.3", "started": 1.0, "ended": 2.0}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> paths.Paths:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path)
    made = paths.Paths("demo")
    made.assets.mkdir(parents=True)
    return made


def note(lab: paths.Paths, **values: Any) -> None:
    lab.run.write_text(json.dumps({**NOTED, "exit_code": None, "signal": None, **values}))


def test_of_a_lab_without_one_it_says_so(lab: paths.Paths) -> None:
    told = cluster_info.info(lab)
    assert (told["state"], told["version"], told["kubeconfig"]) == ("nothing", "", "")


def test_one_that_was_installed(lab: paths.Paths) -> None:
    note(lab, exit_code=0)
    lab.kubeconfig.parent.mkdir()
    lab.kubeconfig.touch()
    told = cluster_info.info(lab)
    assert (told["state"], told["version"]) == ("installed", "4.20.3")
    assert (told["kubeconfig"], told["password_file"]) == (str(lab.kubeconfig), "")


def test_one_whose_end_nobody_noted_is_known_by_its_log(lab: paths.Paths) -> None:
    note(lab, ended=None)
    assert (cluster_info.info(lab)["state"], cluster_info.info(lab)["begun"]) == ("interrupted", False)
    lab.log.write_text((LOGS / "4.20.log").read_text())
    assert (cluster_info.info(lab)["state"], cluster_info.info(lab)["begun"]) == ("installed", True)


@pytest.mark.parametrize(("ending", "state"), [({"exit_code": 5}, "failed"), ({"signal": 9}, "interrupted")])
def test_one_that_failed(lab: paths.Paths, ending: dict[str, int], state: str) -> None:
    note(lab, **ending)
    assert cluster_info.info(lab)["state"] == state


def test_one_that_runs(lab: paths.Paths) -> None:
    note(lab, ended=None)
    with lab.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cluster_info.info(lab)["state"] == "running"


NODES = [
    {"name": "master-0", "vm_name": "demo-master-0", "installer": True},
    {"name": "worker-0", "vm_name": "demo-worker-0", "installer": True},
    {"name": "spare-0", "vm_name": "demo-spare-0", "installer": False},
]


def test_nodes_that_are_switched_off(lab: paths.Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    states = {"master-0": "off", "worker-0": "running", "spare-0": "off"}

    def look(_connection: Any, nodes: Any) -> list[Node]:
        return [Node(node["name"], node["vm_name"], states[node["name"]]) for node in nodes]

    monkeypatch.setattr(diagnosis_nodes, "connect", lambda _uri: nullcontext())
    monkeypatch.setattr(diagnosis_nodes, "look", look)
    assert cluster_info.info(lab, NODES)["off"] == ["master-0"]
    assert cluster_info.info(lab)["off"] == []


@pytest.mark.parametrize("error", [OperatorError("libvirt is away"), AttributeError("lxml is away")])
def test_a_libvirt_that_is_away_hides_nothing_else(
    lab: paths.Paths, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def connect(_uri: str) -> Any:
        raise error

    monkeypatch.setattr(diagnosis_nodes, "connect", connect)
    told = cluster_info.info(lab, NODES)
    assert (told["state"], told["off"]) == ("nothing", [])
