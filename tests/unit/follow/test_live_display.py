"""Which view is chosen, and what it hands to Ansible's display."""

from __future__ import annotations

import types
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.plugin_utils import live_display
from ansible_collections.nometal.ipi.plugins.plugin_utils.live_view import Event

EVENTS = [Event(1, "host", "is ready"), Event(2, "worker-0", "is lost", trouble=True)]


class Shown:
    def __init__(self, verbosity: int = 0) -> None:
        self.verbosity = verbosity
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def display(self, text: str, **options: Any) -> None:
        self.calls.append((text, options))


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_display, "TERMINAL", 99)
    monkeypatch.setattr(live_display.os, "get_terminal_size", lambda _: (60, 24))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)


@pytest.mark.parametrize(
    ("situation", "view"),
    [
        ({}, "Table"),
        ({"verbosity": 2}, "Table"),
        ({"verbosity": 3}, "Lines"),
        ({"terminal": None}, "Lines"),
        ({"host": "hypervisor-1"}, "Lines"),
        ({"term": "dumb"}, "Lines"),
        ({"ci": "true"}, "Lines"),
        ({"callback": "awx_display"}, "Lines"),
        ({"callback": "ansible.posix.json"}, "Silence"),
        ({"secret": True}, "Silence"),
    ],
)
def test_the_view_suits_the_controller(monkeypatch: pytest.MonkeyPatch, situation: dict[str, Any], view: str) -> None:
    monkeypatch.setattr(live_display, "TERMINAL", situation.get("terminal", 99))
    monkeypatch.setenv("TERM", situation.get("term", "xterm"))
    monkeypatch.setenv("CI", situation.get("ci", ""))
    constants = {**vars(live_display.constants), "DEFAULT_STDOUT_CALLBACK": situation.get("callback", "default")}
    monkeypatch.setattr(live_display, "constants", types.SimpleNamespace(**constants))
    shown = Shown(situation.get("verbosity", 0))
    chosen = live_display.view(shown, secret=situation.get("secret", False), host=situation.get("host"))
    assert type(chosen).__name__ == view


def test_lines_name_the_host_where_there_are_several() -> None:
    shown = Shown()
    with live_display.view(shown, secret=False, host="hypervisor-1") as view:
        view.show(EVENTS, EVENTS, 2)
    assert [text for text, _ in shown.calls] == [
        "hypervisor-1: [   1.0 s] host             is ready",
        "hypervisor-1: [   2.0 s] worker-0         TROUBLE: is lost",
    ]


def test_a_table_is_for_the_screen_and_lines_are_for_the_log_file() -> None:
    shown = Shown()
    with live_display.view(shown, secret=False, host=None) as view:
        view.show(EVENTS, EVENTS, 2)
    logged = [text for text, options in shown.calls if options.get("log_only")]
    drawn = [(text, options) for text, options in shown.calls if options.get("screen_only")]
    assert [text.partition("] ")[2].split()[0] for text in logged] == ["host", "worker-0"]
    assert [options for _, options in drawn] == [{"screen_only": True, "newline": False}]
    assert "elapsed 2 s" in drawn[0][0]
