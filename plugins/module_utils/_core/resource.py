# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Generic, TypeVar, cast

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, refuse_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Protocol

    class Port(Protocol):
        """The live system as one kind of thing: read it, and carry out single steps on it."""

        def read(self) -> Any: ...

        def apply(self, step: Step) -> None: ...


@dataclass(frozen=True)
class Step:
    """One change, in the words of the system that carries it out: define, start, undefine."""

    verb: str
    target: Any
    """A name, names, or what shows itself as text."""
    remark: str = ""
    """What was wrong, or where something goes."""

    def __str__(self) -> str:
        target = ", ".join(self.target) if isinstance(self.target, tuple) else self.target
        return f"{self.verb} {target} ({self.remark})" if self.remark else f"{self.verb} {target}"


State = TypeVar("State")
PortOf = TypeVar("PortOf", bound="Port")


def _beside_others(*, check_mode: bool) -> AbstractContextManager[None]:  # noqa: ARG001 - as of a lock
    return nullcontext()


class Resource(Generic[State, PortOf]):
    """One thing that a module brings from what it is to what is desired.

    Check mode, changed and diff live in `reconcile` and nowhere else. It calls the other methods in this order.
    """

    port: PortOf
    alone: ClassVar[Callable[..., AbstractContextManager[None]]] = _beside_others
    """Where no other call of the module may run meanwhile, `one_at_a_time` of its name."""

    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        self.params = params
        self.check_mode = check_mode

    @classmethod
    def run(cls, params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
        """What `run_module` is given."""
        resource = cls(params, check_mode=check_mode)
        with cls.alone(check_mode=check_mode):
            return resource.reconcile()

    @property
    def is_wanted(self) -> bool:
        return self.params["state"] == "present"

    def desired(self) -> State:
        """Read from the arguments; what is wrong with them on any host is refused."""
        raise NotImplementedError

    def open(self) -> AbstractContextManager[PortOf]:
        raise NotImplementedError

    def conflicts(self) -> Iterable[str]:
        """All that stands in the way on this host. Nothing is changed, in check mode or not, if there is any."""
        return ()

    def plan(self, current: State, desired: State) -> Sequence[Step]:
        raise NotImplementedError

    def finish(self, steps: Sequence[Step]) -> None:
        """After the steps, except in check mode."""

    def result(self) -> dict[str, Any]:
        """What the module returns beside changed, steps and diff."""
        return {}

    def warnings(self) -> list[str]:
        return []

    def reconcile(self) -> dict[str, Any]:
        desired = self.desired()
        current, steps = self._carry_out(desired)
        if not self.check_mode:
            self.finish(steps)
        # An unchanged lab of a hundred machines would send the same quarter of a megabyte back twice.
        before, after = (_text(current), _text(desired)) if steps else ("", "")
        return {
            "changed": bool(steps),
            "steps": [str(step) for step in steps],
            "diff": {"before": before, "after": after},
            **self.result(),
            "warnings": self.warnings(),
        }

    def _carry_out(self, desired: State) -> tuple[State, Sequence[Step]]:
        try:
            with self.open() as self.port:
                refuse_all(list(self.conflicts()))
                current = self.port.read()
                steps = self.plan(current, desired)
                for step in [] if self.check_mode else steps:
                    self.port.apply(step)
        except NotThereYetError:
            if not self.check_mode:
                raise
            # On an empty host, check mode foresees what a real run would find once the packages are there: nothing.
            current = cast("State", None)
            steps = self.plan(current, desired)
        return current, steps


def joined(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of several resources of one kind that a module changes in one call."""
    return {
        "changed": any(result["changed"] for result in results),
        "steps": [step for result in results for step in result["steps"]],
        "diff": [result["diff"] for result in results],
        "warnings": [warning for result in results for warning in result["warnings"]],
    }


def _text(state: Any) -> str:
    return "" if state is None else json.dumps(asdict(state), indent=2, sort_keys=True, default=sorted) + "\n"
