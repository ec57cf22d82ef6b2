"""How long a silent guest is waited for, by tables: what the host sees of it, and when it is given up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from unit.rehearsal.samples import lab_of, script_of

from ansible_collections.nometal.ipi.plugins.module_utils._agent.reports import Reports
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal import causes, evidence, judge_bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    FAILED,
    Check,
    Observations,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe import consoles
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import rehearsal, waiting
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.consoles import Consoles, Guest
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.waiting import Signs
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.watching import Guests, Watch, read_from

if TYPE_CHECKING:
    from collections.abc import Callable

GUEST = Guest("demo-0", Path("/var/log/libvirt/qemu/demo-0-console.log"))
LONGEST = 10_000


def given_up(seen: Callable[[int], Signs | None], patience: float = 1.0) -> tuple[int, str]:
    """At which second, and why; it is looked at every other second."""
    limit = waiting.limits(patience)
    wait = waiting.begun(0, seen(0))
    for second in range(2, LONGEST, 2):
        wait = waiting.continued(wait, second, seen(second))
        why = waiting.over(wait, second, limit)
        if why:
            return second, why
    return LONGEST, ""


@pytest.mark.parametrize(
    ("seen", "at", "why"),
    [
        pytest.param(lambda _at: None, 90, "done nothing", id="it is off"),
        pytest.param(lambda _at: Signs(), 90, "done nothing", id="nothing is seen of it"),
        pytest.param(lambda at: Signs(computed=at * 0.05), 90, "done nothing", id="only its clock ticks"),
        pytest.param(lambda at: Signs(computed=at), 90, "computed for 90 s", id="firmware in a busy loop"),
        pytest.param(lambda at: Signs(computed=2 * at), 46, "computed for 90 s", id="on both of its processors"),
        pytest.param(
            lambda at: Signs(computed=at / 3, starved=at * 2 / 3),
            270,
            "computed for 90 s",
            id="starved, in a busy loop",
        ),
        pytest.param(lambda at: Signs(starved=at), 360, "was waited for 360 s", id="starved altogether"),
        pytest.param(lambda at: Signs(output=at, computed=at), 360, "was waited for 360 s", id="it prints for ever"),
        pytest.param(lambda at: Signs(moved=at // 80), 360, "was waited for 360 s", id="it reads now and then"),
        pytest.param(lambda at: Signs(output=min(at, 200)), 290, "done nothing", id="it prints, then hangs"),
        pytest.param(
            lambda at: Signs(output=min(at, 100), computed=at), 190, "computed for 90 s", id="it prints, then loops"
        ),
        pytest.param(lambda at: Signs(computed=(at % 60) * 1.0), 360, "was waited for", id="it starts again and again"),
        pytest.param(lambda at: None if at > 100 else Signs(output=at), 190, "done nothing", id="it goes off"),
    ],
)
def test_who_makes_progress_is_waited_for_but_not_for_ever(
    seen: Callable[[int], Signs | None], at: int, why: str
) -> None:
    second, said = given_up(seen)
    assert (second, why in said) == (at, True), said
    assert given_up(seen, patience=2.0)[0] > at


def test_one_that_was_starved_for_minutes_may_still_come_up() -> None:
    """As on a host that does eight other things: it gets a tenth of a processor, and needs fifteen seconds of one."""
    wait = waiting.begun(0, Signs())
    for second in range(2, 152, 2):
        wait = waiting.continued(wait, second, Signs(computed=second / 10, starved=second * 0.9))
        assert waiting.over(wait, second, waiting.limits(1.0)) == ""


def test_guests_are_looked_at_every_few_seconds_and_lost_once() -> None:
    now, asked = [0.0], []

    def signs_of(guest: Guest) -> Signs:
        asked.append(guest)
        return Signs()

    watch = Watch(signs_of, clock=lambda: now[0])
    watch.begin("one", GUEST, waiting.limits(1.0))
    watch.begin("other", GUEST, waiting.limits(1.0))
    for now[0] in (10.0, 10.5, 11.0):
        assert watch.given_up() == {}
    assert len(asked) == 4  # at the beginning, and once since
    watch.end("other")
    now[0] = 91.0
    assert list(watch.given_up()) == ["one"]
    now[0] = 95.0
    assert watch.given_up() == {}


def test_signs_are_read_from_what_libvirt_counts() -> None:
    stats = {
        "vcpu.0.time": 2_000_000_000,
        "vcpu.0.delay": 500_000_000,
        "vcpu.1.time": 1_000_000_000,
        "vcpu.current": 2,
        "block.count": 2,
        "block.0.rd.bytes": 100,
        "block.1.wr.bytes": 20,
        "block.1.rd.times": 7,
    }
    assert read_from(stats, 5) == Signs(output=5, moved=120, computed=3.0, starved=0.5)


def test_a_node_that_the_host_gives_up_is_not_waited_for() -> None:
    reports = Reports(["one", "two"])
    reports.lose("one", "it has done nothing")
    assert reports.wait("one", ("medium",), 3600) == ("", None)
    assert reports.why_lost("one") == "it has done nothing"
    reports.add("two", "medium", {"uuid": "two"})
    reports.lose("two", "too late")
    assert reports.wait("two", ("medium",), 3600) == ("medium", {"uuid": "two"})


def test_patience_counts_for_all_that_guests_wait_for() -> None:
    usual, patient = script_of(lab_of()), script_of(lab_of(), patience=2.0)
    for key in ("seconds", "together", "patience"):
        assert patient[key] == 2 * usual[key]


def test_why_the_bootstrap_vm_was_given_up_is_said() -> None:
    observed = Observations(host={"lost": {"bootstrap": "it has done nothing for 90 s"}})
    [check] = judge_bootstrap.judge(lab_of(), observed)
    assert check.seen == "it has not come up: it has done nothing for 90 s"
    assert check.facts == {"silent": True}


@pytest.mark.parametrize(
    ("check", "who", "facts", "silent"),
    [
        ("boots", "bootstrap", {"silent": True}, True),
        ("boots from its medium", "one", {"silent": True}, True),
        ("boots from its disk", "lost", {"silent": False}, True),
        ("comes to its end", "bootstrap", {"silent": True}, True),
        ("boots from its disk", "one", {"silent": False}, False),
        ("BMC answers", "lost", {"step": "bmc", "failure": "silent"}, False),
    ],
)
def test_of_which_failures_the_console_and_the_load_are_named(
    check: str, who: str, facts: dict[str, object], silent: bool
) -> None:
    failed = Check(check, who, FAILED, "it boots", facts=facts)
    assert rehearsal.is_silence(failed, {"lost": "it has computed for 60 s"}) == silent
    assert not rehearsal.is_silence(replace(failed, state="ok"), {"lost": ""})


def test_last_words_are_the_consoles_last_line_and_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consoles, "CONSOLES", tmp_path)
    lab = lab_of()
    node = lab.nodes[0]
    console = tmp_path / f"{node.vm_name}-console.log"
    console.write_text("of an earlier rehearsal\n", encoding="utf-8")
    of_lab = Consoles(lab)
    of_lab.begin()
    assert of_lab.last_words(node.name).startswith("its console is empty; the host's load is ")
    with console.open("a", encoding="utf-8") as file:
        file.write("BdsDxe: loading\r\n\x1b[2JLoading kernel ...\n\n")
    said = of_lab.last_words(node.name)
    assert said.startswith("its console ends with `Loading kernel ...`; the host's load is ")
    assert said.endswith(" CPUs")
    assert list(of_lab.of({node.name, "bootstrap"})) == [node.name]


def test_a_verdict_of_silence_names_console_load_and_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consoles, "CONSOLES", tmp_path / "consoles")
    monkeypatch.setattr(rehearsal, "LABS", tmp_path / "labs")
    monkeypatch.setattr(evidence, "gather", lambda *_of: Mock())
    monkeypatch.setattr(causes, "explained", lambda _lab, _found, checks: checks)
    lab = lab_of()
    node = lab.nodes[0]
    for directory in (tmp_path / "consoles", tmp_path / "labs" / lab.name):
        directory.mkdir(parents=True)
    (tmp_path / "consoles" / f"{node.vm_name}-console.log").write_text("Loading kernel ...\n", encoding="utf-8")
    seen = rehearsal.Seen(lab, None, Mock(consoles=Consoles(lab)))
    seen.picture = {"host": "here"}
    failed = Check(
        "boots from its medium",
        node.name,
        FAILED,
        "it boots",
        "nothing heard in 240 s",
        "Look at it.",
        {"silent": True},
    )
    other = Check("BMC answers", node.name, FAILED, "yes", "timed out")
    said, same = seen.explain(Observations(), [failed, other])
    assert said.seen.startswith(
        "nothing heard in 240 s; its console ends with `Loading kernel ...`; the host's load is "
    )
    assert said.advice == f"Look at it. The report: {tmp_path}/labs/{lab.name}/rehearsal.html"
    assert same == other


def test_nodes_are_awaited_from_their_start_to_their_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, now = lab_of(), [0.0]
    node = lab.nodes[0].name
    guests = Guests(lab, Consoles(lab), 1.0, Watch(lambda _guest: None, clock=lambda: now[0]))

    def lost_at(second: float, *events: dict[str, object]) -> list[str]:
        for event in events:
            guests.hear(event)
        now[0] = second
        return list(guests.given_up())

    state: dict[str, object] = {"event": "state", "who": node}
    asks: dict[str, object] = {"event": "asks", "who": "bootstrap"}
    boots = {**state, "state": "boots from its medium"}
    assert lost_at(80) == []
    assert lost_at(200, {}, asks) == []  # the bootstrap VM has said its first word
    assert lost_at(250, boots) == []
    came = [
        {**state, "state": "looks around"},
        {"event": "step", "who": node, "step": "booted from medium", "ok": True},
    ]
    assert lost_at(340, *came) == []
    assert lost_at(360) == [node]
    failed = {"event": "step", "who": node, "step": "looked around", "ok": False}
    assert lost_at(900, boots, failed) == []
    assert lost_at(1900, boots, {**state, "state": "is done"}) == []
