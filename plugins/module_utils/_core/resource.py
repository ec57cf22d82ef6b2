# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Callable, Generic, TypeVar, cast

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence
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
    target: str

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


class NotThereYetError(OperatorError):
    """What the port speaks to does not answer on this host, so for all we can see nothing exists there."""


State = TypeVar("State")


@dataclass(frozen=True)
class Reconciler(Generic[State]):
    """Brings one thing from what it is to what is desired. Check mode, changed and diff live here and nowhere else."""

    open_port: Callable[[], AbstractContextManager[Port]]
    plan: Callable[[State, State], Sequence[Step]]

    def run(self, desired: State, *, check_mode: bool) -> dict[str, Any]:
        try:
            with self.open_port() as port:
                current = port.read()
                steps = self.plan(current, desired)
                for step in [] if check_mode else steps:
                    port.apply(step)
        except NotThereYetError:
            if not check_mode:
                raise
            # On an empty host, check mode foresees what a real run would find once the packages are there: nothing.
            current = cast("State", None)
            steps = self.plan(current, desired)
        # An unchanged lab of a hundred machines would send the same quarter of a megabyte back twice.
        before, after = (_text(current), _text(desired)) if steps else ("", "")
        return {
            "changed": bool(steps),
            "steps": [str(step) for step in steps],
            "diff": {"before": before, "after": after},
        }


def _text(state: Any) -> str:
    return "" if state is None else json.dumps(asdict(state), indent=2, sort_keys=True, default=sorted) + "\n"
