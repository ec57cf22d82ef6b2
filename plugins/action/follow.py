# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of M(nometal.ipi.follow) that runs on the controller: it shows what the module finds on the managed host."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.nometal.ipi.plugins.plugin_utils import live_display
from ansible_collections.nometal.ipi.plugins.plugin_utils.live_view import Board, clock

ARGUMENTS = {
    "job": {"type": "str", "required": True},
    "events": {"type": "str", "required": True},
    "limit": {"type": "int", "default": 3600},
}
LOOK_SECONDS = 20
BOOKKEEPING = ("ansible_job_id", "finished", "results_file", "started")
FAILURES = {
    "gone": "The job {job} is not known on this host: there is no {path}. It was removed, or another user started it.",
    "died": "The job {job} died and left no result: it was killed, it crashed, or the host restarted.{cause}",
    "stopped": "The job {job} was stopped: it ran for longer than `async` of its task allows.",
    "late": "The job {job} has not ended within the limit of {limit} s. It goes on.",
}


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        arguments = self.validate_argument_spec(ARGUMENTS)[1]
        directory = self._remote_expand_user(self.get_shell_option("async_dir", default="~/.ansible_async"))
        board = Board()
        with self._view(task_vars or {}) as view:
            seen = self._followed(arguments, directory, board, view, task_vars)
        if seen.get("failed"):
            return seen
        result = self._result(arguments["job"], directory, task_vars) if seen["job"] not in ("gone", "late") else {}
        if seen["job"] == "ended":
            return result
        path = self._connection._shell.join_path(directory, arguments["job"])  # noqa: SLF001
        text = FAILURES[seen["job"]].format(path=path, cause=_cause(result), **arguments)
        return {"failed": True, "msg": f"{text} {_last(board)}"}

    def _view(self, task_vars: dict[str, Any]) -> live_display.Silence:
        several = len(task_vars.get("ansible_play_batch", [])) > 1 and not self._task.run_once
        host = task_vars["inventory_hostname"] if several else None
        heading = live_display.title(self._task)
        return live_display.view(Display(), secret=bool(self._task.no_log), host=host, heading=heading)

    def _followed(
        self,
        arguments: dict[str, Any],
        directory: str,
        board: Board,
        view: live_display.Silence,
        task_vars: dict[str, Any] | None,
    ) -> dict[str, Any]:
        """What the module saw last."""
        until = time.monotonic() + arguments["limit"]
        place = {"directory": directory, "offset": 0}
        while True:
            left = until - time.monotonic()
            look = {**place, "wait": max(min(LOOK_SECONDS, left), 0)}
            seen = self._execute_module("nometal.ipi.follow", {**arguments, "_look": look}, task_vars=task_vars)
            if seen.get("failed"):
                return dict(seen)
            view.show(board.take(seen["lines"]), board.standing, seen["elapsed"])
            place["offset"] = seen["offset"]
            if seen["job"] != "running":
                return dict(seen)
            if left <= 0:
                return {"job": "late"}

    def _result(self, job: str, directory: str, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What the job's own module returned, which is forgotten on the host once it is here."""
        arguments = {"jid": job, "_async_dir": directory}
        result = self._execute_module("ansible.legacy.async_status", arguments, task_vars=task_vars)
        shell = self._connection._shell  # noqa: SLF001
        if "finished" in result:  # ansible-core 2.16 does not look in check mode
            self._low_level_execute_command(shell.remove(shell.join_path(directory, job)))
        return {key: value for key, value in result.items() if key not in BOOKKEEPING}


def _cause(result: dict[str, Any]) -> str:
    """The last that a module which crashed had to say."""
    output = str(result.get("stderr") or result.get("data") or "").strip()
    return f" Its last output: {output.splitlines()[-1]}" if output else ""


def _last(board: Board) -> str:
    if board.last is None:
        return "Nothing was heard from it."
    return f"Last seen: {board.last.who}, {board.last.words}, at {clock(board.last.at)}."
