"""A cluster and its BMCs for stop and start, without a host: what they say is given, and time passes at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Power, Reset, Said
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Cluster, Member, Operator
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.requests import Judgement, Requests
from ansible_collections.nometal.ipi.plugins.module_utils._core.wait import Clock
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import BareMetalHost

MASTERS = [Node(f"master-{n}", f"demo-master-{n}", Role.CONTROL_PLANE) for n in range(3)]
WORKERS = [Node(f"worker-{n}", f"demo-worker-{n}") for n in range(2)]
NODES = [*MASTERS, *WORKERS]
HEARTBEAT_SECONDS = 10


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, who: str, state: str, *, trouble: bool = False) -> None:
        self.lines.append(f"{'! ' if trouble else ''}{who}: {state}")


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)


class Bmcs:
    """Of guests that shut down at once."""

    def __init__(self, on: Iterable[Node]) -> None:
        self.on = {node.vm_name for node in on}
        self.left: list[str] = []
        """After a start of the host, these are still to be switched on."""
        self.asked: list[str] = []

    def awaited(self) -> list[str]:
        return self.left

    def power(self, names: Iterable[str]) -> dict[str, Said]:
        return {name: Said(Power.ON if name in self.on else Power.OFF) for name in names}

    def reset(self, kind: Reset, names: Iterable[str]) -> dict[str, str]:
        for name in names:
            self.asked.append(f"{kind} {name[len('demo-') :]}")
            (self.on.add if kind is Reset.ON else self.on.discard)(name)
        return {}


@dataclass
class FakeCluster(Cluster):
    """What its API says of nodes is what it knew when they were heard last: of all, that they are ready."""

    client: Client = field(init=False)
    nodes: Sequence[Node] = field(default_factory=lambda: NODES)
    bmcs: Bmcs = field(default_factory=lambda: Bmcs(NODES))
    time: Time = field(default_factory=Time)
    dead: set[str] = field(default_factory=set)
    """Names of nodes whose kubelets do not come up."""
    known: dict[str, Member] = field(default_factory=dict)
    """By name, those that are other than ready and schedulable."""
    pending: list[Judgement] = field(default_factory=list)
    unsettled: list[Operator] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)
    """What the API does not do, by the names of methods."""
    done: list[str] = field(default_factory=list)

    def members(self) -> list[Member]:
        self._ask("members")
        return [self.known.get(node.name, Member(node, node.name)) for node in self.nodes]

    def heartbeats(self) -> dict[str, str]:
        now = str(self.time.now // HEARTBEAT_SECONDS)
        return {node.name: now if self._is_alive(node) else "before" for node in self.nodes}

    def requests(self) -> Requests:
        return Requests(list(self.pending))

    def approve(self, names: Sequence[str]) -> None:
        self.done += [f"approve {name}" for name in names]
        self.pending = [each for each in self.pending if each.request not in names]

    def cordon(self, member: Member) -> None:
        self._ask("cordon")
        self.done.append(f"cordon {member}")
        self.known[member.name] = replace(member, unschedulable=True, marked=True)

    def uncordon(self, member: Member) -> None:
        self.done.append(f"uncordon {member}")
        self.known[member.name] = replace(member, unschedulable=False, marked=False)

    def drain(self, member: Member, _seconds: int) -> list[str]:
        self.done.append(f"drain {member}")
        return []

    def hosts(self) -> list[BareMetalHost]:
        return []

    def operators(self) -> list[Operator]:
        self._ask("operators")
        return self.unsettled

    def expiries(self) -> dict[str, float]:
        return {}

    def _ask(self, what: str) -> None:
        if what in self.fails:
            raise ApiError("unreachable", f"The cluster's API does not do {what}.")

    def _is_alive(self, node: Node) -> bool:
        return node.vm_name in self.bmcs.on and node.name not in self.dead


def steps(result: dict[str, Any], *verbs: str) -> list[str]:
    return [step for step in result["steps"] if step.startswith(verbs)]
