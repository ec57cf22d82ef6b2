"""Check mode, changed, diff, steps and errors of every module: one table, with a thing that is a number of bulbs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from ansible.module_utils import basic

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    NotThereYetError,
    OperatorError,
    refusals_of,
    run_module,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class Bulbs:
    lit: int


@dataclass
class Switchboard:
    lit: int | None
    done: list[str] = field(default_factory=list)

    def read(self) -> Bulbs | None:
        self.done.append("read")
        return None if self.lit is None else Bulbs(self.lit)

    def apply(self, step: Step) -> None:
        self.done.append(str(step))


class Lighting(Resource["Bulbs | None", Switchboard]):
    board: Switchboard
    there = True
    in_the_way: tuple[str, ...] = ()

    def desired(self) -> Bulbs | None:
        if self.params["lit"] < 0:
            raise OperatorError("lit: must be 0 or more.")
        return Bulbs(self.params["lit"]) if self.is_wanted else None

    @contextmanager
    def open(self) -> Iterator[Switchboard]:
        if not self.there:
            raise NotThereYetError("No switchboard answers.")
        yield self.board
        self.board.done.append("close")

    def conflicts(self) -> Iterator[str]:
        yield from self.in_the_way

    def plan(self, current: Bulbs | None, desired: Bulbs | None) -> Sequence[Step]:
        now, then = (state.lit if state else 0 for state in (current, desired))
        return [Step("light", str(number)) for number in range(now, then)]

    def finish(self, steps: Sequence[Step]) -> None:
        self.board.done.append(f"finish {len(steps)}")

    def result(self) -> dict[str, Any]:
        return {"watts": 40}

    def warnings(self) -> list[str]:
        return ["It is bright."] if self.params["lit"] > 1 else []


def lighting(**changes: Any) -> tuple[type[Lighting], Switchboard]:
    board = Switchboard(changes.pop("now", None))
    return type("ThisLighting", (Lighting,), {"board": board, **changes}), board


def asked(lit: int, state: str = "present") -> dict[str, Any]:
    return {"lit": lit, "state": state}


@pytest.mark.parametrize(
    ("now", "lit", "check_mode", "steps", "done"),
    [
        (None, 2, False, ["light 0", "light 1"], ["read", "light 0", "light 1", "close", "finish 2"]),
        (None, 2, True, ["light 0", "light 1"], ["read", "close"]),
        (1, 2, False, ["light 1"], ["read", "light 1", "close", "finish 1"]),
        (1, 2, True, ["light 1"], ["read", "close"]),
        (2, 2, False, [], ["read", "close", "finish 0"]),
        (2, 2, True, [], ["read", "close"]),
    ],
)
def test_what_is_done_and_what_is_told_of_it(
    now: int | None, lit: int, steps: list[str], done: list[str], *, check_mode: bool
) -> None:
    resource, board = lighting(now=now)
    result = resource.run(asked(lit), check_mode=check_mode)
    assert (result["steps"], board.done) == (steps, done)
    assert result["changed"] == bool(steps)
    assert result["watts"] == 40
    assert result["warnings"] == ["It is bright."]


def test_the_diff_shows_what_changes_and_nothing_of_what_does_not() -> None:
    shown = lighting(now=1)[0].run(asked(2), check_mode=True)["diff"]
    assert shown == {"before": '{\n  "lit": 1\n}\n', "after": '{\n  "lit": 2\n}\n'}
    assert lighting()[0].run(asked(1), check_mode=True)["diff"]["before"] == ""
    assert lighting(now=1)[0].run(asked(1), check_mode=True)["diff"] == {"before": "", "after": ""}


@pytest.mark.parametrize("check_mode", [False, True])
def test_all_that_stands_in_the_way_is_refused_before_anything_is_read(*, check_mode: bool) -> None:
    resource, board = lighting(in_the_way=("The fuse is out.", "The cable is cut."))
    with pytest.raises(OperatorError) as refused:
        resource.run(asked(1), check_mode=check_mode)
    assert str(refused.value) == "The fuse is out.\nThe cable is cut."
    assert board.done == []


def test_bad_arguments_are_refused_before_anything_is_opened() -> None:
    with pytest.raises(OperatorError, match="lit: must be 0 or more"):
        lighting(there=False)[0].run(asked(-1), check_mode=True)


def test_what_does_not_answer_yet_is_foreseen_in_check_mode_only() -> None:
    resource, board = lighting(there=False)
    assert resource.run(asked(1), check_mode=True)["steps"] == ["light 0"]
    with pytest.raises(NotThereYetError, match="No switchboard answers"):
        resource.run(asked(1), check_mode=False)
    assert board.done == []


def test_several_are_told_as_one() -> None:
    results = [lighting(now=now)[0].run(asked(2), check_mode=True) for now in (2, 1)]
    told = joined(results)
    assert (told["changed"], told["steps"]) == (True, ["light 1"])
    assert told["diff"] == [result["diff"] for result in results]
    assert told["warnings"] == ["It is bright."] * 2


def test_all_refusals_of_several_checks_are_collected() -> None:
    def refuse(text: str) -> None:
        raise OperatorError(text)

    assert refusals_of(lambda: refuse("one"), lambda: None, lambda: refuse("two")) == ["one", "two"]


class Ended(SystemExit):
    pass


class FakeModule:
    """What run_module asks of AnsibleModule."""

    made: FakeModule

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.params = {"name": "x"}
        self.check_mode = True
        self.warned: list[str] = []
        self.told: dict[str, Any] = {}
        FakeModule.made = self

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def exit_json(self, **result: Any) -> None:
        self.told = result
        raise Ended

    def fail_json(self, **result: Any) -> None:
        self.told = {**result, "failed": True}
        raise Ended


def told_by(monkeypatch: pytest.MonkeyPatch, run: Any, **options: Any) -> FakeModule:
    monkeypatch.setattr(basic, "AnsibleModule", FakeModule)
    with pytest.raises(Ended):
        run_module({"name": {"type": "str"}}, run, **options)
    return FakeModule.made


def test_a_module_returns_what_its_function_does_and_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
        return {"changed": check_mode, **params, "warnings": ["one", "two"]}

    module = told_by(monkeypatch, run, required_one_of=[["name"]])
    assert module.told == {"changed": True, "name": "x"}
    assert module.warned == ["one", "two"]
    assert module.options == {
        "argument_spec": {"name": {"type": "str"}},
        "supports_check_mode": True,
        "required_one_of": [["name"]],
    }


@pytest.mark.parametrize(
    ("error", "said"), [(OperatorError("Name another."), "Name another."), (OSError("It broke"), "It broke.")]
)
def test_a_module_fails_with_the_words_of_the_error(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def run(_params: dict[str, Any], **_options: bool) -> dict[str, Any]:
        raise error

    assert told_by(monkeypatch, run).told == {"failed": True, "msg": said}


def test_a_module_may_fail_with_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    module = told_by(monkeypatch, lambda _params, **_options: {"failed": True, "msg": "Begin anew.", "todo": "begin"})
    assert module.told == {"failed": True, "msg": "Begin anew.", "todo": "begin"}
