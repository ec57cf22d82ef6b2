"""In which order nodes are stopped and started, what becomes of those that do not obey, and of killed runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.power_fakes import Log, Time

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Power, Reset, Said
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import (
    Node,
    Record,
    order_of_start,
    order_of_stop,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import NOTHING_TO_START, Lab
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.switching import Switching
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LIMIT = 100.0
MASTERS = [
    Node(f"master-{n}", f"demo-master-{n}", Role.CONTROL_PLANE, macs=(f"52:54:00:00:00:0{n}",)) for n in range(3)
]
WORKERS = [Node(f"worker-{n}", f"demo-worker-{n}") for n in range(2)]
ARBITER = Node("arbiter-0", "demo-arbiter-0", Role.ARBITER)
SPARE = Node("spare-0", "demo-spare-0", Role.SPARE)
NODES = [*MASTERS, ARBITER, *WORKERS, SPARE]


class Bmcs:
    """Guests that take a while to shut down, by how many looks; those named as deaf never do."""

    def __init__(self, on: Iterable[Node], *, deaf: Iterable[Node] = (), paused: Iterable[Node] = ()) -> None:
        self.states = {node.vm_name: Power.OFF for node in NODES}
        self.states.update((node.vm_name, Power.ON) for node in on)
        self.states.update((node.vm_name, Power.PAUSED) for node in paused)
        self.deaf = {node.vm_name for node in deaf}
        self.asked: list[str] = []
        self.kept_off: list[str] = []
        """Those that were off already when they were asked to shut down, and had to stay so."""
        self.left: list[str] = []
        """After a start of the host, these are still to be switched on."""
        self.troubles: dict[str, str] = {}
        self.revived: list[str] = []
        """Switched on again once everything is off."""

    def awaited(self) -> list[str]:
        return self.left

    def power(self, names: Iterable[str]) -> dict[str, Said]:
        said = {name: Said(self.states[name], self.troubles.get(name, "")) for name in names}
        if self.revived and Power.ON not in self.states.values():
            self.states[self.revived.pop()] = Power.ON
        return said

    def reset(self, kind: Reset, names: Iterable[str]) -> dict[str, str]:
        named = [name for name in names if kind is not Reset.SHUT_DOWN or self.states[name] != Power.OFF]
        self.kept_off += [name.replace("demo-", "") for name in names if name not in named]
        self.asked += [f"{kind} {name.replace('demo-', '')}" for name in named]
        for name in named:
            if kind is not Reset.SHUT_DOWN:
                self.states[name] = Power.ON if kind is Reset.ON else Power.OFF
            elif name not in self.deaf:
                self.states[name] = Power.OFF
        return {}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path, "demo")


def lab(bmcs: Bmcs, record: Record, *, check_mode: bool = False) -> Lab:
    return Lab(NODES, Switching(bmcs, Log(), LIMIT, Time().clock), record, check_mode)


def test_workers_go_first_and_the_holder_of_the_api_last() -> None:
    holder = MASTERS[0].macs
    assert order_of_stop(NODES, holder) == [(*WORKERS, SPARE), (*MASTERS[1:], ARBITER), (MASTERS[0],)]
    assert order_of_stop(MASTERS) == [tuple(MASTERS)]
    assert order_of_stop([]) == []
    assert order_of_start([*WORKERS, *MASTERS]) == [tuple(MASTERS), tuple(WORKERS)]


def test_a_stop_and_a_start(record: Record, tmp_path: Path) -> None:
    bmcs = Bmcs([*MASTERS, WORKERS[0]])
    stopped = lab(bmcs, record).stop()
    assert stopped["steps"] == ["shut down worker-0", "shut down master-0, master-1, master-2"]
    assert (stopped["changed"], stopped["forced"]) == (True, [])
    assert bmcs.asked == ["GracefulShutdown worker-0", *(f"GracefulShutdown master-{n}" for n in range(3))]
    assert bmcs.kept_off == ["arbiter-0", "worker-1", "spare-0"]
    home = tmp_path / "labs/demo/stopped.json"
    assert home.stat().st_mode & 0o777 == 0o600
    assert lab(bmcs, record).stop() == {
        "changed": False,
        "steps": [],
        "switched": [],
        "forced": [],
        "left": [],
        "warnings": [],
    }

    bmcs.asked.clear()
    started = lab(bmcs, record).start()
    assert started["steps"] == ["switch on master-0, master-1, master-2", "switch on worker-0"]
    assert bmcs.asked == [*(f"On master-{n}" for n in range(3)), "On worker-0"]
    again = lab(bmcs, record).start()
    assert (again["changed"], again["warnings"]) == (False, [NOTHING_TO_START])


def test_check_mode_asks_only(record: Record, tmp_path: Path) -> None:
    bmcs, home = Bmcs([WORKERS[0]]), tmp_path / "labs/demo/stopped.json"
    assert lab(bmcs, record, check_mode=True).stop()["steps"] == ["shut down worker-0"]
    assert (bmcs.asked, bmcs.kept_off, home.exists()) == ([], [], False)
    lab(bmcs, record).stop()
    bmcs.asked.clear()
    assert lab(bmcs, record, check_mode=True).start()["steps"] == ["switch on worker-0"]
    assert (bmcs.asked, home.exists()) == ([], True)


def test_what_was_killed_goes_on(record: Record) -> None:
    """The first stop has come as far as the workers, the first start as far as the control plane."""
    bmcs = Bmcs([*MASTERS, *WORKERS])
    record.add([node.vm_name for node in [*MASTERS, *WORKERS]])
    bmcs.states.update((node.vm_name, Power.OFF) for node in WORKERS)
    assert lab(bmcs, record).stop()["switched"] == ["master-0", "master-1", "master-2"]
    bmcs.states.update((node.vm_name, Power.ON) for node in MASTERS)
    assert lab(bmcs, record).start()["switched"] == ["worker-0", "worker-1"]


def test_a_guest_that_does_not_hear_is_asked_again_and_then_forced(record: Record) -> None:
    bmcs = Bmcs(WORKERS, deaf=[WORKERS[1]])
    stopping = lab(bmcs, record)
    assert stopping.stop()["forced"] == ["worker-1"]
    assert bmcs.asked == [
        *("GracefulShutdown worker-0", "GracefulShutdown worker-1"),
        *("GracefulShutdown worker-1", "ForceOff worker-1"),
    ]
    log = stopping.switching.log
    assert isinstance(log, Log)
    assert log.lines == [
        *("worker-0: shuts down", "worker-1: shuts down", "worker-0: is off"),
        *("! worker-1: did not shut down in 100 s, and is switched off by force", "worker-1: is off"),
    ]


def test_a_paused_vm_hears_nothing(record: Record) -> None:
    bmcs = Bmcs([], paused=[WORKERS[0]])
    assert lab(bmcs, record).stop()["forced"] == ["worker-0"]
    assert bmcs.asked == ["ForceOff worker-0"]


def test_what_is_switched_on_again_is_stopped_again(record: Record) -> None:
    bmcs = Bmcs([WORKERS[0]])
    bmcs.revived = [WORKERS[0].vm_name]
    assert lab(bmcs, record).stop()["steps"] == ["shut down worker-0", "shut down worker-0 (on again)"]

    bmcs = Bmcs([WORKERS[0]])
    bmcs.revived = [WORKERS[0].vm_name] * 20
    with pytest.raises(OperatorError, match="Switched on again each time: worker-0"):
        lab(bmcs, record).stop()


def test_what_waits_to_be_switched_on_is_given_up(record: Record) -> None:
    """All nodes are off, soon after the host's start. One of them is started before it can be given up."""

    class Starting(Bmcs):
        def reset(self, kind: Reset, names: Iterable[str]) -> dict[str, str]:
            refused = super().reset(kind, names)
            if not self.asked:
                self.states[WORKERS[0].vm_name] = Power.ON
            return refused

    bmcs = Starting([])
    assert lab(bmcs, record).stop()["steps"] == ["shut down worker-0 (on again)"]
    assert bmcs.kept_off[: len(NODES)] == [node.name for node in NODES]


@pytest.mark.parametrize("on", [[], [MASTERS[0]]])
def test_what_waits_to_be_switched_on_is_switched_on_by_the_next_start(record: Record, on: list[Node]) -> None:
    bmcs = Bmcs(on)
    bmcs.left = [WORKERS[0].vm_name]
    assert lab(bmcs, record, check_mode=True).stop()["steps"][0] == "keep off worker-0"
    assert record.names() == []
    assert lab(bmcs, record).stop()["steps"][0] == "keep off worker-0"
    bmcs.left = []
    assert lab(bmcs, record).start()["switched"] == [*(node.name for node in on), "worker-0"]


def test_a_bmc_without_an_answer_stops_it_before_anything_is_switched(record: Record) -> None:
    bmcs = Bmcs(WORKERS)
    bmcs.troubles = {WORKERS[1].vm_name: "timed out"}
    with pytest.raises(OperatorError, match="worker-1: timed out"):
        lab(bmcs, record).stop()
    assert bmcs.asked == []


def test_a_bmc_that_does_not_do_it_is_named(record: Record) -> None:
    class Broken(Bmcs):
        def reset(self, kind: Reset, names: Iterable[str]) -> dict[str, str]:
            return dict.fromkeys(names, f"500: no {kind}")

    bmcs = Broken([])
    record.add([WORKERS[0].vm_name])
    with pytest.raises(OperatorError, match="worker-0: 500: no On"):
        lab(bmcs, record).start()
