"""What is told of a lab's cluster without asking it."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._install import place
from ansible_collections.nometal.ipi.plugins.modules import cluster_info

LOGS = Path(__file__).with_name("logs")
NOTED = {"commands": ["create cluster"], "current": "create cluster", "version": "4.20.3", "started": 1.0, "ended": 2.0}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> place.Place:
    monkeypatch.setattr(place, "INSTALLS", tmp_path)
    made = place.Place("demo")
    made.assets.mkdir(parents=True)
    return made


def note(lab: place.Place, **values: Any) -> None:
    lab.run.write_text(json.dumps({**NOTED, "exit_code": None, "signal": None, **values}))


def test_of_a_lab_without_one_it_says_so(lab: place.Place) -> None:
    told = cluster_info.info(lab)
    assert (told["state"], told["version"], told["kubeconfig"]) == ("nothing", "", "")


def test_one_that_was_installed(lab: place.Place) -> None:
    note(lab, exit_code=0)
    lab.kubeconfig.parent.mkdir()
    lab.kubeconfig.touch()
    told = cluster_info.info(lab)
    assert (told["state"], told["version"]) == ("installed", "4.20.3")
    assert (told["kubeconfig"], told["password_file"]) == (str(lab.kubeconfig), "")


def test_one_whose_end_nobody_noted_is_known_by_its_log(lab: place.Place) -> None:
    note(lab, ended=None)
    assert (cluster_info.info(lab)["state"], cluster_info.info(lab)["begun"]) == ("interrupted", False)
    lab.log.write_text((LOGS / "4.20.log").read_text())
    assert (cluster_info.info(lab)["state"], cluster_info.info(lab)["begun"]) == ("installed", True)


@pytest.mark.parametrize(("ending", "state"), [({"exit_code": 5}, "failed"), ({"signal": 9}, "interrupted")])
def test_one_that_failed(lab: place.Place, ending: dict[str, int], state: str) -> None:
    note(lab, **ending)
    assert cluster_info.info(lab)["state"] == state


def test_one_that_runs(lab: place.Place) -> None:
    note(lab, ended=None)
    with lab.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cluster_info.info(lab)["state"] == "running"
