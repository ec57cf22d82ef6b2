"""What is shown of a job, by tables, without Ansible."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.follow.terminal import Terminal

from ansible_collections.nometal.ipi.plugins.plugin_utils.live_view import (
    Board,
    Event,
    Row,
    Screen,
    clock,
    log_line,
    table,
)

HOST = Event(0.2, "host", "makes the disks")
BOOTS = Event(12.3, "worker-0", "boots from its medium")
LATE = Event(40.0, "worker-1", "does not answer", trouble=True)
STANDING = [HOST, BOOTS, LATE]


def line(at: float, who: str, state: str, **more: Any) -> str:
    return json.dumps({"at": at, "who": who, "state": state, **more})


def texts(rows: list[Row]) -> list[str]:
    return [row.text for row in rows]


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (BOOTS, "[  12.3 s] worker-0         boots from its medium"),
        (LATE, "[  40.0 s] worker-1         TROUBLE: does not answer"),
        (Event(1, "installer", "waits", part=0.07), "[   1.0 s] installer          7%  waits"),
        (Event(1, "installer", "gave up", trouble=True, part=1), "[   1.0 s] installer        100%  TROUBLE: gave up"),
        (Event(3725, "a-name-that-is-rather-long", "is off"), "[ 1:02:05] a-name-that-is-rather-long is off"),
    ],
)
def test_a_change_is_a_line_of_a_log(event: Event, shown: str) -> None:
    assert log_line(event) == shown


@pytest.mark.parametrize(
    ("seconds", "digits", "shown"),
    [(0, 1, "0.0 s"), (62.04, 1, "62.0 s"), (62.04, 0, "62 s"), (600, 1, "0:10:00"), (36061, 0, "10:01:01")],
)
def test_times_are_shown_as_people_read_them(seconds: float, digits: int, shown: str) -> None:
    assert clock(seconds, digits) == shown


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        ([line(1, "a", "is off"), line(2, "a", "is on")], [Event(1, "a", "is off"), Event(2, "a", "is on")]),
        ([line(1, "a", "is off"), line(2, "a", "is off")], [Event(1, "a", "is off")]),
        ([line(1, "a", "is off"), line(2, "b", "is off")], [Event(1, "a", "is off"), Event(2, "b", "is off")]),
        ([line(1, "a", "x"), line(2, "a", "x", trouble=True)], [Event(1, "a", "x"), Event(2, "a", "x", trouble=True)]),
        ([line(1, "a", "x", part=0.5), line(2, "a", "x", part=0.6)], [Event(1, "a", "x", part=0.5)]),
        (
            [line(1, "a", "x", part=7), line(2, "b", "x", part=-1)],
            [Event(1, "a", "x", part=1), Event(2, "b", "x", part=0)],
        ),
        ([line(1, "a", "x", part="much"), line(2, "a", "x", part=None)], [Event(2, "a", "x")]),
        ([line(1, "a", "says \x1b[2J\r\nso")], [Event(1, "a", "says [2J so")]),
        (['{"at": 1, "who": "a", "st', "", "[]", "3", '"at"', '{"at": 1}', "\0"], []),
        (['{"at": NaN, "who": "a", "state": "b"}', '{"at": 1e999, "who": "a", "state": "b"}'], []),
        (['{"at": "x", "who": "a", "state": "b"}', '{"at": null, "who": "a", "state": "b"}', "[" * 9999], []),
    ],
)
def test_only_changes_are_taken(lines: list[str], changes: list[Event]) -> None:
    board = Board()
    assert board.take(lines) == changes
    assert board.last == (changes[-1] if changes else None)


def test_a_table_has_a_row_for_each_subject() -> None:
    assert texts(table(STANDING, 62.7, 79, 23)) == [
        "who          since  state",
        "host         0.2 s  makes the disks",
        "worker-0    12.3 s  boots from its medium",
        "worker-1    40.0 s  TROUBLE: does not answer",
        "elapsed 63 s",
    ]


def test_what_is_known_by_its_part_has_a_bar() -> None:
    rows = texts(table([HOST, Event(1, "installer", "waits", part=0.5), Event(2, "x", "is done", part=1)], 3, 79, 23))
    assert rows[2:4] == [
        "installer     1.0 s  [##########----------] 50%  waits",
        "x             2.0 s  [####################]100%  is done",
    ]


def test_before_the_first_event_only_the_time_is_shown() -> None:
    assert texts(table([], 4, 79, 23)) == ["elapsed 4 s"]


@pytest.mark.parametrize(
    ("height", "shown"),
    [
        (4, ["host         0.2 s  ", "worker-0    12.3 s  ", "worker-1    40.0 s  ", "elapsed "]),
        (3, ["worker-1    40.0 s  ", "and 2 more: makes the disks (1), boots from its medium (1)", "elapsed "]),
        (2, ["and 3 more: ", "elapsed "]),
        (1, ["elapsed "]),
    ],
)
def test_what_does_not_fit_is_summed_up(height: int, shown: list[str]) -> None:
    rows = texts(table(STANDING, 62, 79, height))
    assert [row[: len(start)] for row, start in zip(rows, shown)] == shown
    assert len(rows) == height


def test_those_that_are_alike_are_counted() -> None:
    nodes = [Event(at, f"node-{at}", "is off") for at in range(50)]
    rows = texts(table([LATE, *nodes], 62, 79, 6))
    assert [row[:9] for row in rows[:4]] == ["worker-1 ", "node-47  ", "node-48  ", "node-49  "]
    assert rows[4] == "and 47 more: is off (47)"


@pytest.mark.parametrize("width", [1, 5, 20, 33, 79])
def test_no_row_is_wider_than_the_terminal(width: int) -> None:
    wide = Event(1, "名前の長いノード", "起動しています" * 9)
    for row in texts(table([*STANDING, wide], 62, width, 23)):
        assert sum(2 if ord(sign) > 0x3000 else 1 for sign in row) <= width


def drawn(terminal: Terminal, screen: Screen, standing: list[Event], elapsed: float) -> list[str]:
    rows = table(standing, elapsed, terminal.width, terminal.height - 1)
    terminal.write(screen.redraw(rows, terminal.width, terminal.height))
    return texts(rows)


@pytest.mark.parametrize("height", [3, 4, 5, 6, 24])
def test_a_table_is_redrawn_in_its_place(height: int) -> None:
    terminal, screen = Terminal(60, height), Screen()
    terminal.write("TASK [play | Follow it]\n")
    moved = Event(50, "host", "is ready")
    for elapsed, standing in enumerate([[], [HOST], [HOST, BOOTS], STANDING, [moved, BOOTS, LATE], [moved]]):
        rows = drawn(terminal, screen, standing, elapsed)
        assert terminal.text.splitlines() == ["TASK [play | Follow it]", *rows]


def test_only_what_changed_is_written() -> None:
    terminal, screen = Terminal(60, 24), Screen()
    drawn(terminal, screen, STANDING, 61)
    assert screen.redraw(table(STANDING, 61.2, 60, 23), 60, 24) == ""
    assert screen.redraw(table(STANDING, 62, 60, 23), 60, 24) == "\r\x1b[1Aelapsed 62 s\x1b[K\n"
    terminal.rewritten = 0
    drawn(terminal, screen, [HOST, Event(63, "worker-0", "is off"), LATE], 63)
    assert terminal.rewritten == 2


def test_another_size_of_the_terminal_draws_all_again() -> None:
    screen = Screen()
    screen.redraw([Row("x" * 50), Row("y")], 60, 24)
    assert screen.redraw([Row("x"), Row("y")], 30, 24) == "\r\x1b[3A\x1b[Jx\x1b[K\ny\x1b[K\n"


def test_a_trouble_has_a_colour_besides_its_word() -> None:
    screen = Screen(lambda text: f"<{text}>")
    assert screen.redraw([Row("a"), Row("b", trouble=True)], 60, 24) == "\x1b[Ja\x1b[K\n<b>\x1b[K\n"
