"""What there is to do for an installation: the cases by name, and what holds for every combination of facts."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import situation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.decision import (
    ATTACH,
    CREATE,
    DESTROY_BOOTSTRAP,
    DONE,
    FRESH,
    MUST_RESTART,
    RESTART,
    RESUME,
    TEARDOWN,
    WAIT_FOR_BOOTSTRAP,
    WAIT_FOR_INSTALL,
    Decision,
    decide,
    note_of,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL_THREE = (WAIT_FOR_BOOTSTRAP, DESTROY_BOOTSTRAP, WAIT_FOR_INSTALL)
LAST_TWO = (DESTROY_BOOTSTRAP, WAIT_FOR_INSTALL)
LAST = (WAIT_FOR_INSTALL,)
HOW_FAR = ("infrastructure", "waiting", "bootstrapped", "bootstrap_destroyed", "complete")
PROGRESS = {"nothing": {}, **{name: dict.fromkeys(HOW_FAR[: at + 1], True) for at, name in enumerate(HOW_FAR)}}
RUNS: dict[str, Any] = {"there": True, "running": True}
OFF: dict[str, Any] = {"there": True, "running": False}
GONE: dict[str, Any] = {"there": False, "running": False}


def facts(progress: str, bootstrap: dict[str, Any] = GONE, **more: Any) -> Facts:
    known: dict[str, Any] = {
        "ran": True,
        "commands": (CREATE,),
        "current": CREATE,
        "has_metadata": progress != "nothing",
        "release": (4, 20),
        "version": "4.20.3",
        **PROGRESS[progress],
        "bootstrap_there": bootstrap["there"],
        "bootstrap_running": bootstrap["running"],
    }
    return Facts(**{**known, **more})


CASES: dict[str, tuple[Facts, str, tuple[str, ...], str]] = {
    "nothing was ever begun": (Facts(), FRESH, (CREATE,), "Nothing of this cluster"),
    "killed before it started": (Facts(has_metadata=True), FRESH, (CREATE,), "Nothing of this cluster"),
    "mistakes in the config": (facts("nothing", exit_code=3), FRESH, (CREATE,), "install-config is wrong"),
    "provisioning check failed": (facts("nothing", exit_code=1), FRESH, (CREATE,), "exit code 1"),
    "killed before it made anything": (facts("nothing", signal=9), FRESH, (CREATE,), "killed (SIGKILL)"),
    "a bootstrap VM of nobody": (
        Facts(bootstrap_there=True),
        MUST_RESTART,
        (CREATE,),
        "no installation of it is noted",
    ),
    "nodes of nobody": (Facts(nodes_in_use=("ha-0", "ha-1")), MUST_RESTART, (CREATE,), "came so far: ha-0, ha-1."),
    "nodes that no failed check has used": (
        facts("nothing", exit_code=1, nodes_in_use=("ha-0",)),
        MUST_RESTART,
        (CREATE,),
        "ha-0",
    ),
    "it runs": (facts("waiting", RUNS, running=True), ATTACH, (CREATE,), "is running"),
    "it runs by itself": (facts("waiting", RUNS, running=True, orphan=True), ATTACH, (CREATE,), "was killed"),
    "it is installed": (facts("complete", exit_code=0), DONE, (), "is installed"),
    "installed, and nobody noted it": (facts("complete"), DONE, (), "is installed"),
    "installed, then the host was rebooted": (facts("complete", exit_code=0, rebooted=True), DONE, (), "is installed"),
    "complete in the log, and yet it failed": (facts("complete", exit_code=6), RESUME, LAST, "did not initialize"),
    "success, in words that are not known": (facts("waiting", exit_code=0), RESUME, LAST, "ended"),
    "success, and the directory is gone": (
        facts("nothing", exit_code=0, has_metadata=False),
        MUST_RESTART,
        (CREATE,),
        "metadata.json",
    ),
    "infrastructure failed": (facts("infrastructure", OFF, exit_code=4), MUST_RESTART, (CREATE,), "exit code 4"),
    "infrastructure failed, nothing in the log": (facts("nothing", exit_code=4), MUST_RESTART, (CREATE,), "half made"),
    "any failure of an old release": (
        facts("infrastructure", OFF, exit_code=1, release=(4, 9)),
        MUST_RESTART,
        (CREATE,),
        "exit code 1. Terraform",
    ),
    "terraform was killed": (
        facts("infrastructure", RUNS, signal=9, release=(4, 15)),
        MUST_RESTART,
        (CREATE,),
        "Terraform",
    ),
    "killed while bootstrapping": (facts("waiting", RUNS, signal=9), RESUME, ALL_THREE, "at work"),
    "bootstrapping took too long": (facts("waiting", RUNS, exit_code=5), RESUME, ALL_THREE, "did not complete"),
    "interrupted while bootstrapping": (facts("waiting", RUNS, exit_code=8), RESUME, ALL_THREE, "asked to end"),
    "terraform had ended": (facts("waiting", RUNS, signal=9, release=(4, 12)), RESUME, ALL_THREE, "at work"),
    "the host was rebooted": (facts("waiting", OFF, rebooted=True), MUST_RESTART, (CREATE,), "started anew"),
    "somebody removed the bootstrap VM": (facts("waiting", GONE, exit_code=5), MUST_RESTART, (CREATE,), "is gone"),
    "metadata lost": (facts("waiting", RUNS, has_metadata=False), MUST_RESTART, (CREATE,), "metadata.json"),
    "killed before it removed the VM": (facts("bootstrapped", RUNS, signal=9), RESUME, LAST_TWO, "is removed"),
    "rebooted before it removed the VM": (facts("bootstrapped", OFF, rebooted=True), RESUME, LAST, "is removed"),
    "killed while it removed the VM": (facts("bootstrapped", GONE, signal=9), RESUME, LAST, "waited for"),
    "did not initialize": (facts("bootstrap_destroyed", exit_code=6), RESUME, LAST, "did not initialize"),
    "operators did not settle": (facts("bootstrap_destroyed", exit_code=7), RESUME, LAST, "did not settle"),
    "rebooted while it initialized": (facts("bootstrap_destroyed", rebooted=True), RESUME, LAST, "started anew"),
    "resumed, failed as before": (
        facts("waiting", RUNS, exit_code=5, commands=ALL_THREE, current=WAIT_FOR_BOOTSTRAP),
        RESUME,
        ALL_THREE,
        "did not complete",
    ),
    "resumed, stopped between": (
        facts("waiting", RUNS, exit_code=0, commands=ALL_THREE, current=WAIT_FOR_BOOTSTRAP),
        RESUME,
        LAST_TWO,
        "stopped after `wait-for bootstrap-complete`",
    ),
    "resumed, killed while removing": (
        facts("waiting", RUNS, signal=9, commands=ALL_THREE, current=DESTROY_BOOTSTRAP),
        RESUME,
        LAST_TWO,
        "is removed",
    ),
    "resumed, killed at the end": (
        facts("waiting", GONE, signal=9, commands=ALL_THREE, current=WAIT_FOR_INSTALL),
        RESUME,
        LAST,
        "waited for",
    ),
    "restart of what runs": (facts("waiting", RUNS, running=True, restart=True), ATTACH, (CREATE,), "is running"),
    "restart of a cluster": (facts("complete", exit_code=0, restart=True), DONE, (), "is installed"),
    "restart of one whose log is lost": (
        facts("nothing", exit_code=0, has_metadata=True, restart=True),
        RESUME,
        LAST,
        "",
    ),
    "restart of what could go on": (
        facts("waiting", RUNS, exit_code=5, restart=True),
        FRESH,
        (CREATE,),
        "removed first",
    ),
    "restart of what was killed": (
        facts("infrastructure", OFF, signal=9, restart=True),
        FRESH,
        (CREATE,),
        "removed first",
    ),
    "restart where nodes are nobody's": (Facts(restart=True, nodes_in_use=("a",)), FRESH, (CREATE,), "removed first"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_case(case: str) -> None:
    known, kind, commands, why = CASES[case]
    decision = decide(known)
    assert (decision.kind, decision.commands) == (kind, commands), decision
    assert why in decision.why


@pytest.mark.parametrize(("bootstrap", "removed"), [(RUNS, False), (OFF, True), (GONE, False)])
def test_a_bootstrap_vm_that_is_off_is_removed_by_us(bootstrap: dict[str, Any], removed: bool) -> None:
    assert decide(facts("bootstrapped", bootstrap, rebooted=True)).removes_bootstrap is removed


def combinations() -> Iterator[Facts]:
    for progress, bootstrap, current, exit_code, killed_by in itertools.product(
        PROGRESS,
        (RUNS, OFF, GONE),
        ((CREATE,), ALL_THREE, ALL_THREE[:1]),
        (None, 0, 1, 4, 5, 99),
        (None, 9, 250),
    ):
        known = facts(
            progress, bootstrap, commands=ALL_THREE, current=current[-1], exit_code=exit_code, signal=killed_by
        )
        flags = ("ran", "running", "rebooted", "restart", "has_metadata")
        for values in itertools.product((True, False), repeat=len(flags)):
            for release in ((4, 9), (5, 0), None):
                changed: dict[str, Any] = dict(zip(flags, values))
                yield replace(known, release=release, **changed)


def complaint(known: Facts, made: Decision) -> str:  # noqa: PLR0911 - a list of rules
    if not made.why.endswith(".") or "None" in made.why:
        return "says why in a sentence"
    if known.running:
        return "" if made.kind == ATTACH else "leaves what runs alone"
    if known.ran and known.complete and known.has_metadata and made.clears:
        return "leaves a cluster alone"
    if known.restart and made.kind not in (DONE, RESUME):
        return "" if made.kind == FRESH and made.clears else "restarts as it is told"
    if made.clears != (made.kind == MUST_RESTART):
        return "removes only what it is told to"
    if made.removes_bootstrap and (known.bootstrap_running or DESTROY_BOOTSTRAP in made.commands):
        return "leaves the bootstrap VM to the installer where that can remove it"
    if made.kind == FRESH:
        return "has made something" if known.infrastructure or known.bootstrap_there or known.succeeded else ""
    if made.kind == DONE:
        return "" if known.complete else "is not complete"
    if made.kind == MUST_RESTART:
        return "" if RESTART in made.why else "tells the way out"
    return resumption_complaint(known, made)


def resumption_complaint(known: Facts, made: Decision) -> str:
    if made.kind != RESUME or made.commands not in (ALL_THREE, LAST_TWO, LAST):
        return "goes on in one of three places"
    if not known.has_metadata:
        return "cannot go on"
    if WAIT_FOR_BOOTSTRAP in made.commands and not (known.waiting and known.bootstrap_running):
        return "waits for a bootstrap VM that does nothing"
    if DESTROY_BOOTSTRAP in made.commands and not known.bootstrap_running:
        return "has the installer switch off what is off"
    return ""


def test_what_holds_for_every_combination() -> None:
    complaints = ((known, made, said) for known in combinations() if (said := complaint(known, made := decide(known))))
    assert next(complaints, None) is None


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (
            facts("complete", exit_code=0, config_changed=True),
            ["not done by reinstalling", TEARDOWN, "removes it first"],
        ),
        (facts("complete", exit_code=0, restart=True), ["not reinstalled by a restart", TEARDOWN]),
        (facts("complete", exit_code=0, other_version="4.20.4"), ["4.20.4 is asked for, and 4.20.3 was installed"]),
        (facts("waiting", RUNS, running=True, config_changed=True), ["goes on with the old one", TEARDOWN]),
        (
            facts("waiting", RUNS, running=True, restart=True),
            ["not restarted, because the", TEARDOWN, "ends and removes"],
        ),
        (facts("waiting", RUNS, signal=9, config_changed=True), ["goes on with the old one", RESTART]),
        (facts("waiting", RUNS, signal=9, other_version="4.21.0"), ["began with 4.20.3"]),
        (facts("nothing", exit_code=0, has_metadata=True, restart=True), ["not restarted", TEARDOWN]),
    ],
)
def test_what_does_not_happen_is_noted(known: Facts, words: list[str]) -> None:
    note = note_of(known, decide(known))
    assert all(word in note for word in words), note
    assert sum(way in note for way in (TEARDOWN, RESTART)) == 1, note


@pytest.mark.parametrize(
    "known",
    [
        facts("complete", exit_code=0),
        facts("nothing", exit_code=3, config_changed=True, other_version="4.21.0"),
        facts("waiting", OFF, exit_code=5, config_changed=True, restart=True),
        Facts(),
    ],
)
def test_nothing_is_noted_where_all_is_as_asked_for(known: Facts) -> None:
    assert note_of(known, decide(known)) == ""


@pytest.mark.parametrize(
    ("version", "wanted", "other"),
    [
        ("4.20.3", "4.20.3", False),
        ("4.20.3", "4.20.4", True),
        ("4.20.3", "4.20.3-rc.1", True),
        ("4.20.3", "stable-4.20", False),
        ("4.20.3", "latest-4.21", True),
        ("5.0.0-ec.1", "candidate-5.0", False),
        ("4.20.0-okd-scos.9", "4.20.0-okd-scos.10", True),
        ("4.20.3", "", False),
        ("", "4.20.3", False),
        ("unreleased-master-12272-g349feecf1e", "stable-4.20", False),
        ("unreleased-master-12272-g349feecf1e", "4.20.3", False),
        ("unreleased-master-12272-g349feecf1e", "unreleased-master-12273-g449feecf1e", True),
        ("5.0-alpha.2-66-g1966debed4", "stable-4.20", True),
        ("4.20.3", "5.0-alpha.2-66-g1966debed4", True),
    ],
)
def test_another_version_is_known_from_what_is_asked_for(version: str, wanted: str, other: bool) -> None:
    assert situation.is_other(version, wanted) is other
