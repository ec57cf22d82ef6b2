"""How what is planned is carried out, and for how long it is waited."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.following import Follower, StalledError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.plan import Plan
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.states import Waiting
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import Teller
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.wait import Clock

if TYPE_CHECKING:
    from pathlib import Path

MINUTE = 60.0
REFUSED = ApiError("unreachable", "The cluster's API: connection refused")


@dataclass
class Port:
    """Of a cluster in which nothing is to be seen."""

    failures: list[ApiError] = field(default_factory=list)
    """Of the steps that come first."""
    applied: list[str] = field(default_factory=list)

    def read(self) -> Seen:
        return Seen()

    def apply(self, step: Step) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.applied.append(str(step))


class Bench:
    def __init__(self, directory: Path) -> None:
        self.seconds = 0.0
        self.port = Port()
        self.events = directory / "run/nodes.jsonl"
        clock = Clock(lambda: self.seconds, self._sleep)
        port: Any = self.port
        self.follower = Follower(port, Teller(self.events), lambda _stalled, _seen: [], clock=clock)

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def follow(self, plans: Callable[[], Plan]) -> None:
        self.follower.follow(lambda _seen: plans())

    @property
    def told(self) -> Sequence[str]:
        return [json.loads(line)["state"] for line in self.events.read_text().splitlines()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_step_that_does_not_reach_the_api_is_tried_again(bench: Bench) -> None:
    """While the API moves with the control plane node that holds its address, more often than a step is repeated."""
    bench.port.failures = [REFUSED] * 9
    bench.follow(lambda: Plan([Step("release", "a")] if not bench.port.applied else []))
    assert bench.port.applied == bench.follower.steps == ["release a"]
    assert str(REFUSED) in bench.told


def test_steps_that_never_reach_the_api_are_given_up(bench: Bench) -> None:
    bench.port.failures = [REFUSED] * 999
    with pytest.raises(ApiError, match="connection refused"):
        bench.follow(lambda: Plan([Step("release", "a")]))
    assert 10 * MINUTE < bench.seconds < 11 * MINUTE


def test_a_step_that_is_refused_is_not_repeated(bench: Bench) -> None:
    bench.port.failures = [ApiError("forbidden", "The cluster's API: no")]
    with pytest.raises(ApiError, match="no"):
        bench.follow(lambda: Plan([Step("release", "a")]))
    assert bench.seconds == 0


def test_what_the_cluster_does_not_keep_is_not_repeated_for_ever(bench: Bench) -> None:
    with pytest.raises(OperatorError, match="does not keep what was done 3 times: release a"):
        bench.follow(lambda: Plan([Step("release", "a")]))
    assert bench.port.applied == ["release a"] * 3


@pytest.mark.parametrize(("state", "minutes"), [("registering", 17), ("provisioning", 35), ("inspecting", 14)])
def test_hosts_that_are_slow_are_waited_for(bench: Bench, state: str, minutes: int) -> None:
    """Real ones take 17 minutes to register, and half an hour or more for their image."""
    bench.follow(lambda: Plan(waits=[Waiting("a", state)] if bench.seconds < minutes * MINUTE else []))
    with pytest.raises(StalledError):
        bench.follow(lambda: Plan(waits=[Waiting("a", state)]))
    assert bench.seconds < 3 * minutes * MINUTE
