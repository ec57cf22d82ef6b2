# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The views of a job that runs, on Ansible's own display."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from ansible import constants
from ansible.errors import AnsibleError
from ansible.utils.color import stringc

from ansible_collections.nometal.ipi.plugins.plugin_utils.live_view import Event, Screen, log_line, table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

TICK = 1.0  # seconds
# What these callbacks print is for programs.
QUIET_CALLBACKS = ("json", "jsonl", "null")
# ansible-runner has a terminal of its own, but keeps what is shown as events.
LINE_CALLBACKS = ("awx_display",)
# At this verbosity Ansible tells of each connection, in the middle of any table.
TALKATIVE = 3


def _controllers_terminal() -> int | None:
    return os.dup(1) if os.isatty(1) else None


def _show_lines_at_once() -> None:
    """Into a pipe they would wait for the end of the task."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


# Ansible's main process imports this, and then forks the worker that uses it. The worker has no stdout of its own.
TERMINAL = _controllers_terminal()
_show_lines_at_once()


class Silence:
    """The view of who must see nothing; the others are like it."""

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def show(self, changes: Sequence[Event], standing: Sequence[Event], elapsed: float | None) -> None:
        """What changed, where everybody stands, and how long the job has been running, if that is known."""


class Lines(Silence):
    """One line for each change."""

    def __init__(self, display: Any, prefix: str = "") -> None:
        self._display = display
        self._prefix = prefix

    def show(self, changes: Sequence[Event], standing: Sequence[Event], elapsed: float | None) -> None:  # noqa: ARG002
        for event in changes:
            color = constants.COLOR_ERROR if event.trouble else None
            self._display.display(f"{self._prefix}{log_line(event)}", color=color)


class Table(Silence):
    """One row for each subject, on a terminal; one line for each change in Ansible's log file, if there is one."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._screen = Screen(lambda text: str(stringc(text, constants.COLOR_ERROR)))
        self._standing: Sequence[Event] = ()
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Table:
        self._ticker.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._ticker.join()
        self._draw()

    def show(self, changes: Sequence[Event], standing: Sequence[Event], elapsed: float | None) -> None:
        for event in changes:
            self._display.display(log_line(event), log_only=True)
        with self._lock:
            self._standing = standing
            if elapsed is not None:
                self._started = time.monotonic() - elapsed
        self._draw()

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            width, height = _size()
            rows = table(self._standing, time.monotonic() - self._started, width, height)
            written = self._screen.redraw(rows, width, height)
            if written:
                self._display.display(written, screen_only=True, newline=False)


def _size() -> tuple[int, int]:
    """What may be written on: not the last column, where terminals differ, and not the row of the cursor."""
    try:
        columns, lines = os.get_terminal_size(TERMINAL if TERMINAL is not None else 1)
    except OSError:
        columns, lines = 0, 0
    return (columns or 80) - 1, (lines or 24) - 1


def callback_name() -> str:
    return str(constants.DEFAULT_STDOUT_CALLBACK).rpartition(".")[2]


def title(task: Any) -> str:
    """What a task shows begins with it where skipped tasks are hidden: Ansible shows its title with the result then."""
    try:
        at_once = constants.config.get_config_value(
            "display_skipped_hosts", plugin_type="callback", plugin_name=callback_name()
        )
    except AnsibleError:  # not every callback has this option
        return ""
    return "" if at_once else f"\n{task.get_name()}"


def view(display: Any, *, secret: bool, host: str | None, heading: str = "") -> Silence:
    """The view that suits the controller. `host` is given where several hosts are followed side by side."""
    callback = callback_name()
    if secret or callback in QUIET_CALLBACKS:
        return Silence()
    if heading:
        display.display(heading)
    if host is None and callback not in LINE_CALLBACKS and display.verbosity < TALKATIVE and _can_redraw():
        return Table(display)
    return Lines(display, f"{host}: " if host else "")


def _can_redraw() -> bool:
    return TERMINAL is not None and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("CI")
