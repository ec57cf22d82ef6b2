"""The bmc_faults module: what it writes for the service, what it refuses, and what bmc_info says of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import faults
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.faults import BmcFaults
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict, to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.faults import NEEDS, FaultRule
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcFault
from nometal_bmc.faults import rules
from nometal_bmc.faults.rules import Fault

if TYPE_CHECKING:
    from pathlib import Path

STATUS = {"fault": "status", "status": 503, "rate": 30, "nodes": ["demo-worker-0"], "methods": ["GET"], "path": "/a*"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "demo").mkdir()
    systems = [{"name": "demo-worker-0"}, {"name": "demo-worker-1"}]
    (tmp_path / "demo/config.json").write_text(json.dumps({"systems": systems}))
    return tmp_path


def run(home: Path, *given: dict[str, Any], seed: int = 0, check_mode: bool = False, lab: str = "demo") -> list[str]:
    params = {"lab": lab, "home": str(home), "seed": seed, "rules": list(given)}
    result = BmcFaults.run(params, check_mode=check_mode)
    assert result["changed"] == bool(result["steps"])
    return list(result["steps"])


def refusal(home: Path, *given: dict[str, Any], **how: Any) -> str:
    with pytest.raises(OperatorError) as refused:
        run(home, *given, **how)
    return str(refused.value)


def test_faults_are_written_changed_and_removed(home: Path) -> None:
    file = home / "demo/faults.json"
    assert run(home) == []
    assert run(home, STATUS, check_mode=True) == ["write faults"]
    assert not file.exists()
    assert run(home, STATUS) == ["write faults"]
    assert run(home, STATUS) == run(home, STATUS, check_mode=True) == []
    assert run(home, STATUS, seed=1) == ["write faults"]
    file.chmod(0o600)
    assert run(home, STATUS, seed=1) == ["write faults"]
    assert file.stat().st_mode & 0o777 == 0o644
    assert run(home, check_mode=True) == ["remove faults"]
    assert run(home) == ["remove faults"]
    assert not file.exists()


def test_the_service_has_the_same_faults() -> None:
    assert {str(fault) for fault in Fault} == {str(fault) for fault in BmcFault}
    assert {str(fault) for fault in Fault if fault.of_connections} == {"connection-refused", "certificate-changed"}


def test_the_service_reads_what_is_written(home: Path) -> None:
    written = [{"fault": str(fault), **({NEEDS[fault]: 500} if fault in NEEDS else {})} for fault in BmcFault]
    run(home, *written, STATUS, seed=9)
    read = rules.load(home / "demo/faults.json")
    assert read.seed == 9
    assert [str(rule.fault) for rule in read.rules[:-1]] == [str(fault) for fault in BmcFault]
    one = frozenset({"demo-worker-0"})
    assert read.rules[-1] == rules.Rule(Fault.STATUS, one, frozenset({"GET"}), "/a*", rate=30, status=503)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"fault": "status"}, "rules[0].status: missing; status needs it"),
        ({"fault": "reboot", "seconds": 1, "status": 503}, "rules[0].status: must be left out with reboot"),
        ({"fault": "fire"}, "rules[0].fault: must be one of latency, "),
        (
            {"fault": "power-ignored", "nodes": ["other"]},
            "rules[0].nodes: must be VMs with BMCs of the lab: demo-worker-0, demo-worker-1 (got 'other')",
        ),
    ],
)
def test_what_is_wrong_is_named_and_changes_nothing(home: Path, rule: dict[str, Any], said: str) -> None:
    assert said in refusal(home, rule)
    assert not (home / "demo/faults.json").exists()


def test_a_lab_without_bmcs(home: Path) -> None:
    assert run(home, lab="other") == []
    assert refusal(home, STATUS, lab="other") == "Lab other has no BMCs on this host. Run playbooks/bmc.yml."
    assert run(home, STATUS, lab="other", check_mode=True) == ["write faults"]
    assert refusal(home, lab="../demo").startswith("lab: must be lower case letters")


def test_what_bmc_info_says_of_them(home: Path) -> None:
    assert to_dict(faults.of_lab(home / "demo")) == {"seed": 0, "rules": []}
    run(home, STATUS, seed=3)
    [rule] = to_dict(faults.of_lab(home / "demo"))["rules"]
    assert (rule["fault"], rule["status"], rule["times"]) == ("status", 503, None)
    (home / "demo/faults.json").write_text("{")
    with pytest.raises(OperatorError, match=r"faults.json cannot be read: .*\. Run playbooks/bmc.yml\."):
        faults.of_lab(home / "demo")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fault": "boot-ignored"}, "boot-ignored"),
        ({"fault": "latency", "milliseconds": 800, "rate": 20}, "latency 800 ms (20 %)"),
        (
            {"fault": "reboot", "seconds": 20, "after": 30, "times": 1},
            "reboot 20 s (after 30 requests, at most 1 time)",
        ),
        (STATUS, "status 503 (30 %, GET, /a*, only demo-worker-0)"),
    ],
)
def test_rules_in_words(given: dict[str, Any], said: str) -> None:
    assert str(from_dict(FaultRule, given)) == said
