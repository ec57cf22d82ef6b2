"""Faults on purpose: which requests meet which, again and again in the same way, and what their file may say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nometal_bmc.config.sections import ConfigError
from nometal_bmc.faults import rules
from nometal_bmc.faults.decisions import CurrentFaults, Decisions
from nometal_bmc.faults.rules import Fault, Faults, Rule

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
INSERT = f"{SYSTEM}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"


def asked(decisions: Decisions, count: int, node: str = "one") -> list[bool]:
    return [bool(list(decisions.of_request(node, "GET", SYSTEM))) for _request in range(count)]


def with_rule(seed: int = 7, **given: Any) -> Decisions:
    return Decisions(Faults(seed, (Rule(Fault.STATUS, **given),)))


def test_the_same_seed_gives_the_same_decisions() -> None:
    first, again, other = with_rule(rate=40), with_rule(rate=40), with_rule(seed=8, rate=40)
    decided = asked(first, 200)
    assert decided == asked(again, 200)
    assert decided != asked(other, 200)
    assert 50 < sum(decided) < 110


def test_decisions_about_a_node_do_not_depend_on_others() -> None:
    alone, beside = with_rule(rate=40), with_rule(rate=40)
    decided = []
    for _turn in range(50):
        asked(beside, 3, "two")
        decided += asked(beside, 1)
    assert decided == asked(alone, 50)
    assert asked(with_rule(rate=40), 50, "two") != decided


@pytest.mark.parametrize(
    ("given", "decided"),
    [
        ({}, "xxxxx"),
        ({"rate": 0}, "....."),
        ({"after": 2}, "..xxx"),
        ({"times": 2}, "xx..."),
        ({"after": 1, "times": 1}, ".x..."),
    ],
)
def test_a_fault_comes_after_so_many_requests_and_so_many_times(given: dict[str, Any], decided: str) -> None:
    assert "".join(".x"[met] for met in asked(with_rule(**given), 5)) == decided


@pytest.mark.parametrize(
    ("rule", "node", "method", "path", "met"),
    [
        (Rule(Fault.STATUS), "", "POST", "/redfish/v1/SessionService/Sessions", True),
        (Rule(Fault.STATUS, nodes=frozenset({"one"})), "one", "GET", SYSTEM, True),
        (Rule(Fault.STATUS, nodes=frozenset({"one"})), "two", "GET", SYSTEM, False),
        (Rule(Fault.STATUS, nodes=frozenset({"one"})), "", "GET", "/redfish/v1/", False),
        (Rule(Fault.LATENCY, methods=frozenset({"PATCH"})), "one", "GET", SYSTEM, False),
        (Rule(Fault.LATENCY, methods=frozenset({"PATCH"})), "one", "PATCH", SYSTEM, True),
        (Rule(Fault.REBOOT, path="*/VirtualMedia/*"), "one", "POST", INSERT, True),
        (Rule(Fault.REBOOT, path="*/VirtualMedia/*"), "one", "GET", SYSTEM, False),
        (Rule(Fault.POWER_STATE_WRONG), "one", "GET", SYSTEM, True),
        (Rule(Fault.POWER_STATE_WRONG), "one", "GET", f"{SYSTEM}/SecureBoot", False),
        (Rule(Fault.POWER_STATE_WRONG), "one", "PATCH", SYSTEM, False),
        (Rule(Fault.POWER_IGNORED), "one", "POST", RESET, True),
        (Rule(Fault.POWER_IGNORED), "one", "POST", INSERT, False),
        (Rule(Fault.BOOT_IGNORED), "one", "PATCH", SYSTEM, True),
        (Rule(Fault.BOOT_IGNORED), "one", "PATCH", f"{SYSTEM}/SecureBoot", False),
        (Rule(Fault.MEDIA_FAILED), "one", "POST", INSERT, True),
        (Rule(Fault.MEDIA_STALLED), "one", "POST", INSERT.replace("InsertMedia", "EjectMedia"), False),
        (Rule(Fault.CONNECTION_REFUSED), "", "GET", SYSTEM, False),
    ],
)
def test_a_rule_concerns_some_requests(rule: Rule, node: str, method: str, path: str, met: bool) -> None:
    assert list(Decisions(Faults(0, (rule,))).of_request(node, method, path)) == [rule] * met


def test_rules_are_met_in_their_order_and_only_until_one_ends_the_request() -> None:
    decisions = Decisions(Faults(0, (Rule(Fault.STATUS, after=1), Rule(Fault.REBOOT, after=1))))
    met = [next(decisions.of_request("one", "GET", SYSTEM), None) for _request in range(3)]
    assert [rule and rule.fault for rule in met] == [None, Fault.STATUS, Fault.STATUS]


def test_connections_have_rules_of_their_own() -> None:
    decisions = Decisions(Faults(0, (Rule(Fault.STATUS), Rule(Fault.CERTIFICATE_CHANGED, after=1, times=1))))
    assert [decisions.of_connection(Fault.CERTIFICATE_CHANGED) for _connection in range(3)] == [False, True, False]
    assert not decisions.of_connection(Fault.CONNECTION_REFUSED)


def written(path: Path, value: Any) -> None:
    path.with_suffix(".new").write_text(value if isinstance(value, str) else json.dumps(value))
    path.with_suffix(".new").replace(path)


def test_the_file_may_come_change_and_go(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "faults.json"
    current = CurrentFaults(path)
    assert current.decisions.faults == rules.NONE
    rule = {"fault": "status", "status": 503, "nodes": ["one"], "methods": ["GET"], "path": "*", "rate": 50}
    written(path, {"seed": 1, "rules": [rule]})
    first = current.decisions
    assert first.faults == Faults(1, (Rule(Fault.STATUS, frozenset({"one"}), frozenset({"GET"}), rate=50, status=503),))
    assert current.decisions is first
    written(path, "{")
    assert current.decisions is first
    assert caplog.text.count("Keeping the faults from before") == 1
    written(path, {"seed": 2, "rules": [{"fault": "reboot", "seconds": 5}]})
    assert current.decisions.faults.seed == 2
    assert "Faults on purpose, seed 2: reboot of 5 s" in caplog.text
    path.unlink()
    assert current.decisions.faults == rules.NONE
    assert current.decisions is not first


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "the file: expected an object"),
        ({"rules": []}, "the file: seed is missing"),
        ({"seed": 1, "rules": [], "more": 1}, "the file: unknown: more"),
        ({"seed": 1, "rules": [{"fault": "fire"}]}, "rules[0]: fault must be one of latency, "),
        (
            {"seed": 1, "rules": [{"fault": "latency", "milliseconds": "1"}]},
            "rules[0]: milliseconds must be of type int",
        ),
        ({"seed": 1, "rules": [{"fault": "latency", "colour": "red"}]}, "rules[0]: unknown: colour"),
    ],
)
def test_an_invalid_file_is_refused_in_words(tmp_path: Path, value: Any, text: str) -> None:
    written(tmp_path / "faults.json", value)
    with pytest.raises(ConfigError) as refused:
        rules.load(tmp_path / "faults.json")
    assert f"{tmp_path}/faults.json: {text}" in str(refused.value)


def test_rules_are_named_with_what_they_do() -> None:
    named = [Rule(Fault.LATENCY, milliseconds=5), Rule(Fault.STATUS, status=500), Rule(Fault.MEDIA_STALLED, seconds=9)]
    assert [str(rule) for rule in named] == ["latency of 5 ms", "status 500", "media-stalled for 9 s"]
    assert str(Rule(Fault.BOOT_IGNORED)) == "boot-ignored"
