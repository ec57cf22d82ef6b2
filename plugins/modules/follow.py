#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: follow
short_description: Show what a long job does while it runs
version_added: 0.1.0
description:
  - Follows a job that a task with C(async) and C(poll=0) started on the managed host, and shows its steps as they come.
  - On a terminal it shows a table, one row for each subject, which is kept up to date in place. Elsewhere, in a pipe,
    in CI or in AWX, it shows one line for each change.
  - The job tells its steps by appending lines to a file, each a JSON object. C(at) is the time in seconds since the job
    began, C(who) is any subject and C(state) says in a few words where it is. C(trouble) is true for bad news.
    C(part), a number from 0 to 1, says how much is done; a table shows it as a bar, a line in percent.
  - Ends when the job ends, and returns what the job's own module returned, C(changed) and C(failed) among it, so that
    the task fails when the job failed. What Ansible adds to a job, such as C(finished), is left out.
  - Fails when the job vanished, died without a result, or does not end in time, and names what was last seen of it.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
options:
  job:
    description: The job, as the task that started it returned it in C(ansible_job_id).
    type: str
    required: true
  events:
    description:
      - File, on the managed host, to which the job appends its steps. It need not exist yet.
      - A file that is older than a job which runs is taken for the one of an earlier job.
    type: path
    required: true
  limit:
    description:
      - Seconds after which the task gives up. The job itself goes on, and another task can follow it.
    type: int
    default: 3600
  _look:
    description: Where to look, and for how long. The part on the controller sets it; a task cannot.
    type: dict
notes:
  - The task must run as the user as which the job was started.
  - The job's file is removed once its result has been returned. The file of its steps is left.
  - With C(no_log) nothing is shown of the job. Nothing is shown either under a stdout callback that writes JSON.
  - Where several hosts are followed at the same time, each line begins with the name of its host, also on a terminal.
seealso:
  - module: ansible.builtin.async_status
attributes:
  action:
    support: full
    description: It has a part that runs on the controller, and shows what the module finds on the managed host.
  async:
    support: none
    description: It waits for a job that is asynchronous itself.
  check_mode:
    support: full
    description: It follows a job that was started in check mode as any other. ansible-core 2.16 starts none.
"""

EXAMPLES = r"""
- name: Start a job that tells its steps
  ansible.builtin.shell: |
    exec >/run/demo.jsonl
    echo '{"at": 0, "who": "host", "state": "makes the disks"}'; sleep 3
    echo '{"at": 3, "who": "worker-0", "state": "boots from its medium", "part": 0.5}'; sleep 3
    echo '{"at": 6, "who": "worker-1", "state": "does not answer", "trouble": true}'
  async: 900
  poll: 0
  register: demo_job

- name: Follow it
  nometal.ipi.follow:
    job: "{{ demo_job.ansible_job_id }}"
    events: /run/demo.jsonl
    limit: 900
  register: demo_result
"""

RETURN = r"""
msg:
  description: What became of the job, and what was last seen of it.
  returned: when there is no result of the job
  type: str
  sample: >-
    The job j527195648253.9423 has not ended within the limit of 900 s. It goes on.
    Last seen: worker-0, boots from its medium, at 12.3 s.
"""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ansible.module_utils.basic import AnsibleModule

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "job": {"type": "str", "required": True},
    "events": {"type": "path", "required": True},
    "limit": {"type": "int", "default": 3600},
    "_look": {"type": "dict"},
}
PAUSE = 0.25  # seconds
GATHER = 1.0  # so that a job with much to say does not keep the host busy with telling it
GRACE = 5.0  # a job that was just started on a busy host may have no file yet


class Job:
    def __init__(self, directory: str, name: str) -> None:
        self._file = Path(directory, name)
        # The last part is a process that has long ended.
        self._argument = name.rpartition(".")[0].encode()

    def state(self) -> str:
        """Either running, ended, or what became of it instead."""
        state = self._written_state()
        if state != "running" or self._has_process():
            return state
        state = self._written_state()
        return "died" if state == "running" else state

    def started_at(self) -> float:
        """For a job that runs: its file is written when it starts, and then when it ends."""
        try:
            return self._file.stat().st_mtime
        except FileNotFoundError:
            return time.time()

    def _written_state(self) -> str:
        try:
            told = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return "gone"
        except ValueError:
            return "running"
        return _state_told(told)

    def _has_process(self) -> bool:
        return any(self._argument in _command(process) for process in Path("/proc").glob("[0-9]*"))


def _state_told(told: dict[str, Any]) -> str:
    """Ansible's own notes differ from what a module returned by the keys they have."""
    if told.keys() == {"started", "finished", "ansible_job_id"} and not told["finished"]:
        return "running"
    if told.get("failed") and {"ansible_job_id", "cmd"} <= told.keys():
        return "died"
    if told.get("failed") and "child_pid" in told and told.get("msg") == "Timeout exceeded":
        return "stopped"
    return "ended"


def _command(process: Path) -> list[bytes]:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile
        return []


def new_lines(events: Path, offset: int, *, since: float, to_the_end: bool) -> tuple[list[str], int]:
    """The lines after `offset`, and the offset after them. While a job runs, its last line may be half written."""
    try:
        with events.open("rb") as stream:
            if events.stat().st_mtime < since:
                return [], 0
            stream.seek(offset if offset <= events.stat().st_size else 0)
            begin, text = stream.tell(), stream.read()
    except FileNotFoundError:
        return [], 0
    complete = text if to_the_end else text[: text.rfind(b"\n") + 1]
    # Not splitlines(): a text may hold other ends of lines, unescaped.
    return [line for line in complete.decode(errors="replace").split("\n") if line], begin + len(complete)


def look(job: Job, events: Path, offset: int) -> dict[str, Any]:
    # In this order: after the end of the job comes no line that would be missed.
    state = job.state()
    if state == "gone":  # whose lines these are is unknown
        return {"job": state, "elapsed": None, "lines": [], "offset": offset}
    running = state == "running"
    started = job.started_at() if running else 0.0
    lines, offset = new_lines(events, offset, since=started, to_the_end=not running)
    elapsed = max(time.time() - started, 0.0) if running else None
    return {"job": state, "elapsed": elapsed, "lines": lines, "offset": offset}


def run(params: dict[str, Any]) -> dict[str, Any]:
    """Waits until there is something to tell, or for as long as it may."""
    asked = params["_look"]
    job, events = Job(asked["directory"], params["job"]), Path(params["events"])
    begun = time.monotonic()
    while True:
        seen = look(job, events, asked["offset"])
        enough = {"running": GATHER if seen["lines"] else asked["wait"], "gone": GRACE}.get(seen["job"], 0.0)
        if time.monotonic() - begun >= min(enough, asked["wait"]):
            return {"changed": False, **seen}
        time.sleep(PAUSE)


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        module.exit_json(**run(module.params))
    except OSError as error:
        module.fail_json(msg=f"The job {module.params['job']} cannot be followed: {error}")


if __name__ == "__main__":
    main()
