# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of M(nometal.ipi.lab_lock) on the controller: it knows this run, and sees whether another one is there."""

from __future__ import annotations

import getpass
import multiprocessing
import os
import platform
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.nometal.ipi.plugins.module_utils._core.lab_lock import (
    HELD,
    TAKEN,
    WAITING,
    Controller,
    Process,
    controller_from,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import (
    boot_id,
    has_ended,
    pid_namespace,
    started,
)

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["taken", "released"], "default": "taken"},
    "stage": {"type": "str", "default": ""},
    "take_over": {"type": "bool", "default": False},
}
FACT = "nometal_lab_lock"
# What has been renewed just now need not be again: stages that have nothing to do follow each other quickly.
FRESH_SECONDS = 30
PAUSE_SECONDS = 5
HELD_BY_ANOTHER = (
    "Another run has lab {lab} on host {host}: {holder}. This stage has changed nothing. "
    "Wait until that run has ended, or end it. "
    "If it has ended and only left the lock behind, add -e lab_lock_take_over=true."
)
WAITS = (
    "The run that has lab {lab} has lost its connection to host {host}: {holder}. "
    "If it does not come back within {wait:.0f} s, this one goes on."
)
TAKEN_OVER = "Lab {lab} was taken over on host {host} from {holder}: {_why}."
PRIVATE = ("_holder", "_wait", "_why")


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        known = task_vars or {}
        arguments = self.validate_argument_spec(ARGUMENTS)[1]
        run = this_run()
        mine = known.get("ansible_facts", {}).get(FACT, {})
        held = mine if mine.get("lab") == arguments["lab"] and mine.get("run") == asdict(run) else {}
        if arguments["state"] == "released":
            return self._released(arguments, run, held, known)
        if held and time.monotonic() - held["renewed"] < FRESH_SECONDS:
            return {"changed": False, "outcome": "renewed"}
        return self._taken(arguments, run, held, known)

    def _released(
        self, arguments: dict[str, Any], run: Controller, held: dict[str, Any], known: dict[str, Any]
    ) -> dict[str, Any]:
        if held and held["stage"] != arguments["stage"]:
            return {"changed": False, "outcome": "kept", "msg": f"{held['stage']} keeps it until its end."}
        found = self._asked({**arguments, "_ask": {"run": asdict(run)}}, known)
        return found if found.get("failed") else {**found, "ansible_facts": {FACT: {}}}

    def _taken(
        self, arguments: dict[str, Any], run: Controller, held: dict[str, Any], known: dict[str, Any]
    ) -> dict[str, Any]:
        ask = {"run": asdict(run), "user": user(known), "playbook": playbook(known), "persists": self._persists()}
        found = self._decided({**arguments, "_ask": ask}, run, known)
        if found.get("failed"):
            return found
        result = {key: value for key, value in found.items() if key not in PRIVATE}
        words = {**found, "lab": arguments["lab"], "host": known["inventory_hostname"]}
        if found["outcome"] in (HELD, WAITING):
            result["msg"] = HELD_BY_ANOTHER.format(**words)
            if not self._task.check_mode:
                return {**result, "failed": True}
            result["warnings"] = [result["msg"]]
        elif found["outcome"] == TAKEN and "holder" in found:
            result["warnings"] = [TAKEN_OVER.format(**words)]
        stage = held.get("stage", arguments["stage"])
        fact = {"lab": arguments["lab"], "run": asdict(run), "stage": stage, "renewed": time.monotonic()}
        return {**result, "ansible_facts": {FACT: fact}}

    def _decided(self, arguments: dict[str, Any], run: Controller, known: dict[str, Any]) -> dict[str, Any]:
        """What the host says once it is known whether another run is still there."""
        has_waited = False
        while True:
            found = self._asked(arguments, known)
            if "_holder" not in found or found["outcome"] not in (HELD, WAITING):
                return found
            other = controller_from(found["_holder"])
            if run.numbers_processes_as(other) and has_ended(other.process.pid, other.process.started):
                arguments = {**arguments, "_ask": {**arguments["_ask"], "ended": found["_holder"]}}
            elif found["outcome"] == HELD or self._task.check_mode:
                return found
            else:
                if not has_waited:
                    words = {"lab": arguments["lab"], "host": known["inventory_hostname"], "wait": found["_wait"]}
                    Display().display(WAITS.format(holder=found["holder"], **words))
                has_waited = True
                time.sleep(min(found["_wait"], PAUSE_SECONDS))

    def _asked(self, arguments: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
        return dict(self._execute_module("nometal.ipi.lab_lock", arguments, task_vars=known))

    def _persists(self) -> bool:
        """Whether the process at the other end of the connection stays from task to task."""
        options = []
        for name in ("ssh_args", "ssh_common_args", "ssh_extra_args"):
            with suppress(KeyError):  # another connection plugin than ssh
                options.append(str(self._connection.get_option(name)))
        return "controlpersist" in " ".join(options).lower()


def this_run() -> Controller:
    """This code runs in a child of ansible-playbook."""
    parent = multiprocessing.parent_process()
    pid = (parent.pid if parent else None) or os.getpid()
    return Controller(platform.node(), machine(), boot_id(), pid_namespace(), Process(pid, started(pid)))


def machine() -> str:
    with suppress(OSError):
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()
    return ""


def user(known: dict[str, Any]) -> str:
    """In AWX, it is the one who has launched the job."""
    with suppress(KeyError, OSError):  # a container may have a user who has no name
        return str(known.get("awx_user_name") or getpass.getuser())
    return f"user {os.getuid()}"


def playbook(known: dict[str, Any]) -> str:
    names = [str(name) for name in context.CLIARGS.get("args") or ()]
    job = f"AWX job {known['awx_job_id']}: " if "awx_job_id" in known else ""
    return job + (" ".join(names) or "ansible")
