"""Logs as installers of each family of releases write them, whole and cut short: what is told, and what is to be done.

They are in `logs`; where one is cut, the installer ended just then, whatever for.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.redact import Redactor
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import log
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import INSTALLER, Teller
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import glance
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import DOING, Stage, begun_by
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import decision, run, situation
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

LOGS = Path(__file__).with_name("logs")
WITH_TERRAFORM = ("4.10", "4.14")
"""Of whose hosts the log tells no errors."""
WHOLE = (*WITH_TERRAFORM, "4.16", "4.18", "4.20", "4.22", "5.0")
PLANTED = "PLANT-eddSe-CRETp-A55Wd"
WANTED = situation.Wanted(
    bridges=(),
    nodes=(),
    bmc_home=Path("/nowhere"),
    version="",
    config_digest="",
    restart=False,
    libvirt_uri="test:///default",
)


@pytest.fixture
def lab_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "installs")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    made = paths.Paths("demo")
    made.assets.mkdir(parents=True)
    return made


def text_of(name: str, end: Stage | None = None) -> str:
    """Up to the line that begins that stage, and with it."""
    lines = (LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines(keepends=True)
    begins = [at for at, line in enumerate(lines) for entry in log.entries(line) if begun_by(entry.msg) is end]
    return "".join(lines[: begins[0] + 1] if end else lines)


def ended(lab_paths: Paths, text: str, version: str, **how: Any) -> dict[str, Any]:
    """As it is noted by the runner, with what the installer has left."""
    lab_paths.log.write_text(text, encoding="utf-8")
    if how.get("has_metadata", bool(text)):
        lab_paths.metadata.write_text('{"infraID": "demo-x7k2p"}')
    noted = {"commands": ["create cluster"], "current": "create cluster", "version": version, "boot_id": run.boot_id()}
    lab_paths.run.write_text(
        json.dumps({**noted, "started": 1.0, "ended": 2.0, "exit_code": None, "signal": None, **how})
    )
    return glance(Installation(lab_paths))


@pytest.mark.parametrize(
    ("name", "end", "how", "state", "words", "to_do"),
    [
        ("", None, {"exit_code": 1}, "failed", "a fatal error, as of the checks", "fresh"),
        ("", None, {"exit_code": 3}, "failed", "the install-config is wrong", "fresh"),
        ("4.20", Stage.PREPARE, {"exit_code": 1}, "failed", "refused before anything was made", "fresh"),
        ("4.20", Stage.INFRASTRUCTURE, {"exit_code": 4}, "failed", "the bootstrap VM, or what", "must_restart"),
        ("4.20", Stage.API, {"exit_code": 5}, "failed", "the API did not come up in time", "must_restart"),
        ("4.20", Stage.BOOTSTRAP, {"signal": 9}, "interrupted", "it was killed by SIGKILL", "must_restart"),
        ("4.20", Stage.DESTROY_BOOTSTRAP, {"exit_code": 8}, "interrupted", "it was asked to end", "resume"),
        ("4.20", Stage.INITIALIZE, {"exit_code": 6}, "failed", "the cluster did not initialize in time", "resume"),
        ("4.20", Stage.OPERATORS, {"exit_code": 7}, "failed", "operators did not settle in time", "resume"),
        ("4.20", None, {"exit_code": 0}, "installed", "installed", "done"),
        ("4.20", None, {"ended": None}, "installed", "installed", "done"),
        ("4.10", Stage.INITIALIZE, {"exit_code": 1}, "failed", "the cluster did not initialize in time", "resume"),
        ("4.12-terraform-error", None, {"exit_code": 4}, "failed", "the bootstrap VM, or what", "must_restart"),
        ("okd-api-timeout", None, {"exit_code": 5}, "failed", "the API did not come up in time", "must_restart"),
        ("4.20-resumed", None, {"signal": 15}, "interrupted", "it was killed by SIGTERM", "resume"),
    ],
)
def test_how_it_ended_and_what_is_to_be_done(  # noqa: PLR0913, PLR0917 - a table
    lab_paths: Paths, name: str, end: Stage | None, how: dict[str, Any], state: str, words: str, to_do: str
) -> None:
    """No bootstrap VM is there any more: where one is needed, it starts over."""
    version = f"{name[:4]}.3" if name[:1] == "4" else "4.20.3"
    told = ended(lab_paths, text_of(name, end) if name else "", version, **how)
    assert told["state"] == state
    assert words in told["words"]
    assert decision.decide(situation.look(lab_paths, WANTED)).kind == to_do


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("okd-api-timeout", "The bootstrap machine failed to download the release image"),
        ("4.12-terraform-error", "Error: could not contact Ironic API: context deadline exceeded"),
    ],
)
def test_errors_are_told(lab_paths: Paths, name: str, error: str) -> None:
    assert error in ended(lab_paths, text_of(name), "4.12.3", exit_code=1)["errors"]


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_told_while_it_is_followed(lab_paths: Paths, name: str) -> None:
    """Each stage once, and the share of the whole grows until it is all."""
    progress = Progress(control_plane=["control-plane-0", "control-plane-1", "control-plane-2"])
    teller = Teller(lab_paths.events, started=0.0)
    for entry in log.entries(text_of(name)):
        progress.add(entry)
        teller.tell_progress(progress, entry.at)
    told = [json.loads(line) for line in lab_paths.events.read_text(encoding="utf-8").splitlines()]
    of_installer = [event for event in told if event["who"] == INSTALLER]
    doing = [event["state"].partition(" (")[0] for event in of_installer]
    assert list(dict.fromkeys(doing)) == list(dict.fromkeys(DOING[span.stage] for span in progress.spans))
    parts = [event["part"] for event in of_installer]
    assert parts == sorted(parts)
    assert parts[-1] == 1
    assert {event["who"] for event in told} - {INSTALLER} == {"operators", *progress.control_plane}
    assert len(teller.troubles) == (name not in WITH_TERRAFORM)
    assert all(re.match("control-plane-1: .*timeout reached", trouble) for trouble in teller.troubles)
    assert PLANTED not in json.dumps(told)


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_a_bundle_has_the_whole_log_but_its_password(path: Path) -> None:
    before = path.read_text(encoding="utf-8").splitlines()
    after = Redactor([]).text(path.read_text(encoding="utf-8")).splitlines()
    assert PLANTED not in "\n".join(after)
    assert [line for line in before if PLANTED not in line] == [
        line for line, original in zip(after, before) if PLANTED not in original
    ]
