"""What counts as standing still."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import events
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import watch as stalls
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Host, Progress, Span
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage

BEGAN = 1000.0
MINUTE = usual.MINUTE
NODE = Node("worker-0", "demo-worker-0", "running", on_since=BEGAN, spoke_at=BEGAN - 100, packets=0)


def progress_in(stage: Stage | None, changed: float = BEGAN, **hosts: Host) -> Progress:
    return Progress(stage=stage, since=BEGAN, changed=changed, hosts=dict(hosts))


def kinds(progress: Progress, minutes: float, *nodes: Node, patience: float = 1.0) -> list[tuple[str, str]]:
    found = stalls.findings(progress, nodes, BEGAN + minutes * MINUTE, patience)
    return [(finding.subject, finding.code) for finding in found]


@pytest.mark.parametrize("stage", usual.STAGES)
def test_every_stage_has_its_limit(stage: Stage) -> None:
    limit = usual.STAGES[stage].limit / MINUTE
    assert kinds(progress_in(stage), limit) == []
    assert kinds(progress_in(stage), limit + 0.1) == [("installer", "installer.stands-still")]
    assert kinds(progress_in(stage), limit * 3, patience=3.0) == []
    assert kinds(progress_in(stage, changed=BEGAN + limit * MINUTE), limit + 0.1) == []


def test_the_limits_come_before_the_installers_own() -> None:
    assert usual.STAGES[Stage.API].limit < 20 * MINUTE
    assert all(usual.STAGES[stage].limit < 60 * MINUTE for stage in (Stage.BOOTSTRAP, Stage.INITIALIZE))
    assert usual.STAGES[Stage.CONSOLE].limit < 2 * MINUTE


@pytest.mark.parametrize("stage", [None, Stage.COMPLETE])
def test_before_and_after_nothing_stands_still(stage: Stage | None) -> None:
    assert kinds(progress_in(stage), 1000) == []


@pytest.mark.parametrize(
    ("state", "minutes", "found"),
    [("inspecting", 14, False), ("inspecting", 16, True), ("registering", 6, True), ("available", 19, False)],
)
@pytest.mark.parametrize("patience", [1.0, 0.01])
def test_hosts(state: str, minutes: float, found: bool, patience: float) -> None:
    progress = progress_in(Stage.CONTROL_PLANE, changed=BEGAN + 10 * MINUTE * patience, a=Host(state, BEGAN))
    assert kinds(progress, minutes * patience, patience=patience) == ([("a", "node.slow")] if found else [])
    assert kinds(replace(progress, stage=Stage.ETCD), 9) == []


def test_an_error_that_lasts_is_looked_into_before_the_state_is_suspect() -> None:
    progress = progress_in(Stage.CONTROL_PLANE, a=Host("inspecting", BEGAN, "inspection error: x", BEGAN + MINUTE))
    assert kinds(progress, 2.9) == []
    assert kinds(progress, 3.1) == [("a", "node.error")]
    assert kinds(replace(progress, changed=BEGAN + 10 * MINUTE), 16) == [("a", "node.error")], (
        "its state follows from that"
    )


@pytest.mark.parametrize(
    ("node", "hangs"),
    [
        (NODE, True),
        (replace(NODE, packets=None), True),
        (replace(NODE, spoke_at=BEGAN + 1), True),
        (replace(NODE, spoke_at=BEGAN + 9), False),
        (replace(NODE, packets=1), False),
        (replace(NODE, on_since=None), False),
        (replace(NODE, spoke_at=None), False),
        (replace(NODE, on_since=BEGAN + 5 * MINUTE), False),
    ],
)
def test_a_node_hangs_only_when_nothing_was_ever_heard_of_it(node: Node, hangs: bool) -> None:
    assert kinds(progress_in(Stage.COMPLETE), 11, node) == ([("worker-0", "node.hangs")] if hangs else [])


BOOTING = replace(NODE, spoke_at=BEGAN + 9, packets=9, quiet_since=BEGAN + 5 * MINUTE)


@pytest.mark.parametrize(
    ("node", "host", "minutes", "has_stopped"),
    [
        (BOOTING, Host("inspecting", BEGAN), 16, True),
        (BOOTING, Host("inspecting", BEGAN), 14, False),  # it may just be slow
        (
            replace(BOOTING, quiet_since=BEGAN + 7 * MINUTE),
            Host("inspecting", BEGAN),
            16,
            False,
        ),  # it still gives signs of life
        (replace(BOOTING, quiet_since=None), Host("inspecting", BEGAN), 16, False),
        (BOOTING, Host("inspecting", BEGAN, "inspection error: x", BEGAN), 16, False),  # metal3 boots it again
        (BOOTING, Host("provisioned", BEGAN), 16, False),
    ],
)
def test_a_boot_that_stops_halfway_while_it_is_inspected(
    node: Node, host: Host, minutes: float, has_stopped: bool
) -> None:
    progress = Progress(stage=Stage.CONTROL_PLANE, since=BEGAN, changed=BEGAN + 99 * MINUTE, hosts={node.name: host})
    assert ((node.name, "node.boot-stopped") in kinds(progress, minutes, node)) == has_stopped


def test_signs_of_life_are_remembered_from_look_to_look() -> None:
    signs = stalls.Signs()
    assert signs.noted(BOOTING, 10.0).quiet_since == 10.0
    assert signs.noted(BOOTING, 20.0).quiet_since == 10.0
    assert signs.noted(replace(BOOTING, packets=10), 30.0).quiet_since == 30.0
    assert signs.noted(replace(BOOTING, on_since=None), 40.0).quiet_since == BOOTING.quiet_since
    assert signs.noted(BOOTING, 50.0).quiet_since == 50.0


@pytest.mark.parametrize(
    ("node", "is_evidence"),
    [
        (replace(NODE, spoke_at=BEGAN + 9), True),
        (NODE, False),  # written before it was switched on, as by an earlier cluster
        (replace(NODE, spoke_at=BEGAN + 9, on_since=None), False),  # it is off
        (replace(NODE, spoke_at=None), False),
    ],
)
def test_a_console_is_evidence_of_what_runs_now_only(node: Node, is_evidence: bool) -> None:
    assert node.has_spoken == is_evidence


def part_of(*stages: Stage, minutes: float = 0.0) -> float:
    spans = [Span(stage, BEGAN, BEGAN) for stage in stages]
    told = Progress(stage=stages[-1], since=BEGAN, spans=spans)
    return round(events.part(told, BEGAN + minutes * MINUTE) * events.WHOLE / MINUTE, 1)


def test_how_much_of_the_whole_is_done() -> None:
    begun = (Stage.PREPARE, Stage.INFRASTRUCTURE, Stage.API, Stage.BOOTSTRAP, Stage.CONTROL_PLANE)
    assert events.part(Progress(), BEGAN) == 0
    assert part_of(Stage.PREPARE, minutes=0.5) == 0.5
    assert part_of(Stage.PREPARE, minutes=99) == 1
    assert part_of(*begun, minutes=5) == 21
    assert part_of(*begun, Stage.BOOTSTRAP, minutes=5) == 41
    older = (Stage.PREPARE, Stage.INFRASTRUCTURE, Stage.CONTROL_PLANE, Stage.API, Stage.BOOTSTRAP)
    assert part_of(*older) == 36
    assert part_of(*older, Stage.INITIALIZE) == part_of(Stage.INITIALIZE) == 54.5
    assert events.part(Progress(stage=Stage.COMPLETE), BEGAN) == 1


@pytest.mark.parametrize(
    ("stage", "minutes", "words"),
    [
        (None, 0, "begins"),
        (Stage.API, 0, "waits for the API (usually 10 min)"),
        (Stage.API, 4.9, "waits for the API (usually 10 min)"),
        (Stage.API, 7, "waits for the API (5 min, usually 10 min)"),
        (Stage.DESTROY_BOOTSTRAP, 0, "removes the bootstrap VM (usually 30 s)"),
        (Stage.INITIALIZE, 61, "waits for the cluster to initialize (60 min, usually 25 min)"),
        (Stage.COMPLETE, 61, "has installed the cluster"),
    ],
)
def test_what_is_told_of_a_stage(stage: Stage | None, minutes: float, words: str) -> None:
    assert events.installer(progress_in(stage), BEGAN + minutes * MINUTE) == words
