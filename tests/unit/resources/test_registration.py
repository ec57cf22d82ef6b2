"""The record that registers a lab on a host."""

from __future__ import annotations

import grp
import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe.registered_labs import registered_labs
from ansible_collections.nometal.ipi.plugins.module_utils._resources.registration import record
from ansible_collections.nometal.ipi.plugins.module_utils._resources.registration.record import LabRecord

MODEL = {"name": "demo", "domain": "demo.lab.example.test"}


@pytest.fixture(autouse=True)
def of_this_user(monkeypatch: pytest.MonkeyPatch) -> None:
    user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
    monkeypatch.setattr(record, "DIRECTORY", files.Access(user, group, 0o755))
    monkeypatch.setattr(record, "FILE", files.Access(user, group, 0o644))


def run(home: Path, *, check_mode: bool = False, **params: Any) -> dict[str, Any]:
    return LabRecord.run({"lab": "demo", "model": MODEL, "home": str(home), **params}, check_mode=check_mode)


def test_records_the_model_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    directory = home / "labs/demo"
    foreseen = run(home, check_mode=True)
    assert not home.exists()
    made = run(home)
    assert made["steps"] == foreseen["steps"]
    assert made["steps"] == [
        *(f"make {path}" for path in (home, home / "labs", directory)),
        f"write {directory}/lab.json",
    ]
    assert json.loads((directory / "lab.json").read_text()) == MODEL
    assert (made["lab"], made["record"]) == ("demo", f"{directory}/lab.json")
    assert run(home)["changed"] is False
    assert registered_labs(home) == ["demo"]


def test_a_changed_model_is_written_and_shown(tmp_path: Path) -> None:
    run(tmp_path)
    changed = run(tmp_path, model={**MODEL, "domain": "other.example.test"})
    assert changed["steps"] == [f"write {tmp_path}/labs/demo/lab.json"]
    assert "demo.lab.example.test" in changed["diff"]["before"]
    assert "other.example.test" in changed["diff"]["after"]


def test_without_a_model_the_name_is_recorded(tmp_path: Path) -> None:
    assert run(tmp_path, model={})["record"].endswith("/labs/demo/registered")
    assert registered_labs(tmp_path) == ["demo"]


def test_modes_are_put_right_whatever_the_umask_was(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "labs").chmod(0o700)
    (tmp_path / "labs/demo/lab.json").chmod(0o600)
    assert run(tmp_path)["steps"] == [f"make {tmp_path}/labs", f"write {tmp_path}/labs/demo/lab.json"]
    assert (tmp_path / "labs/demo/lab.json").stat().st_mode & 0o777 == 0o644
    assert run(tmp_path)["changed"] is False


def test_a_directory_without_a_record_is_no_lab(tmp_path: Path) -> None:
    (tmp_path / "labs/other").mkdir(parents=True)
    (tmp_path / "labs/other/notes.txt").touch()
    assert registered_labs(tmp_path) == []


def test_a_name_that_is_no_lab_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="lab"):
        run(tmp_path, lab="../demo")
