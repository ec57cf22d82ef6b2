"""Notes down every task with its outcome and time, and kills the run at a chosen one. For support/interruption.py."""

# ruff: noqa: SLF001, ARG002 - Ansible hands its results to callbacks in private members, by signatures of its own
from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: interruption
type: aggregate
short_description: Record a run's tasks, and kill it at one of them
description:
  - Writes one line of JSON for each task and host to the file named by INTERRUPTION_RECORD.
  - Kills the process group when task INTERRUPTION_AT has ended, or INTERRUPTION_DELAY seconds after its start,
    or when INTERRUPTION_AFTER_CHANGES tasks have reported a change.
"""


def kill_run() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)


class CallbackModule(CallbackBase):
    """Tasks are counted as they start, so a task has the same number in every run that begins with the same host."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "interruption"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.record = Path(os.environ["INTERRUPTION_RECORD"])
        self.at = int(os.environ.get("INTERRUPTION_AT", "0"))
        self.changes_left = int(os.environ.get("INTERRUPTION_AFTER_CHANGES", "0"))
        self.delay = float(os.environ.get("INTERRUPTION_DELAY", "-1"))
        self.count = 0
        self.started: dict[tuple[str, str], tuple[int, float]] = {}

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self.count += 1
        self.started[host.get_name(), task._uuid] = (self.count, time.monotonic())
        if self.count == self.at and self.delay >= 0:
            threading.Timer(self.delay, kill_run).start()

    def v2_runner_on_ok(self, result: Any) -> None:
        self._ended(result, "changed" if result._result.get("changed") else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._ended(result, "failed")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._ended(result, "skipped")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._ended(result, "unreachable")

    def _ended(self, result: Any, outcome: str) -> None:
        number, start = self.started.get((result._host.get_name(), result._task._uuid), (0, 0.0))
        if not number:
            return
        entry = {
            "number": number,
            "name": result._task.get_name(),
            "outcome": outcome,
            "seconds": time.monotonic() - start,
        }
        with self.record.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        self.changes_left -= outcome == "changed"
        if (number == self.at and self.delay < 0) or (outcome == "changed" and self.changes_left == 0):
            kill_run()
