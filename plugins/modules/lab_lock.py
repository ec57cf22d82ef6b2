#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lab_lock
short_description: Have a lab to oneself while playbooks run
version_added: 0.1.0
description:
  - Takes the lock of a lab on the managed host for the run of ansible-playbook that the task is part of. A task of the
    same run renews it.
  - Fails if another run has the lock, and says whose run it is and since when.
  - The lock of a run that is no longer there is taken over, with a warning. That is seen by its process if it was
    started on the same controller, and otherwise by the end of its connection to the host.
  - A run that has ended may have left a job that changes the nodes of the lab's cluster, by what lab_spec was then.
    That job is ended when another run takes the lock.
  - The lock is a record below C(/run/nometal/locks), so that it is gone with the next boot of the host. It protects a
    lab from other playbooks that ask for it, and from nothing else.
author:
  - nometal.ipi contributors (@nometal)
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  state:
    description:
      - V(taken) takes or renews the lock, V(released) gives it back if this run has it.
    type: str
    choices: [taken, released]
    default: taken
  stage:
    description:
      - What the lock is taken for, such as the name of a playbook. A task that releases it with another O(stage) than
        that of the task which took it does nothing, so that a playbook which imports others keeps it until its own end.
    type: str
    default: ""
  take_over:
    description: Whether the lock is taken from a run that has it, although nothing shows that it has ended.
    type: bool
    default: false
  _ask:
    description: What the controller says of its run. The part on the controller sets it; a task cannot.
    type: dict
notes:
  - It needs to be root on the managed host.
  - Where an SSH connection does not persist between tasks (C(ControlPersist)), its end says nothing of the run.
    The lock of a run of another controller is then held until it is released, taken over by O(take_over), or the host
    is restarted.
attributes:
  action:
    support: full
    description: It has a part that runs on the controller, which knows the run and sees whether another one lives.
  check_mode:
    support: full
    description: In check mode the lock is not taken, and that another run has it is a warning.
  diff_mode:
    support: none
    description: Taking a lock does not count as a change of the host.
  idempotent:
    support: full
    description: The same task again changes nothing.
"""

EXAMPLES = r"""
- name: Have lab demo for the rest of this run
  nometal.ipi.lab_lock:
    lab: demo

- name: Let others have it
  nometal.ipi.lab_lock:
    lab: demo
    state: released
"""

RETURN = r"""
outcome:
  description:
    - V(taken) or V(renewed); V(released), or V(not ours) if there was nothing to release, or V(kept) if it was taken
      for another O(stage).
    - In check mode V(held) and V(waiting) too, if another run has it.
  returned: success
  type: str
  sample: taken
holder:
  description: The other run that has the lock, or had it before.
  returned: when there is one
  type: str
  sample: alice@laptop, site.yml (process 4711), since 2026-11-19 11:02:03 UTC, 3 min ago
"""

import os
import re
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import one_watch
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.lab_lock import (
    TAKEN,
    Controller,
    LabLock,
    Process,
    Record,
    Seen,
    controller_from,
    described,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import (
    ancestors,
    boot_id,
    has_ended,
    pid_namespace,
    started,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["taken", "released"], "default": "taken"},
    "stage": {"type": "str", "default": ""},
    "take_over": {"type": "bool", "default": False},
    "_ask": {"type": "dict"},
}
SESSIONS = ("sshd", "sshd-session")


def connection_of(run: Controller, *, persists: bool) -> Process | None:
    """What ends on this host when the run does, or its connection."""
    here = (boot_id(), pid_namespace())
    if all(here) and here == (run.boot, run.pid_namespace):
        return run.process
    if persists:
        for pid, name in ancestors(os.getpid()):
            if name in SESSIONS:
                return Process(pid, started(pid))
    return None


def take(lock: LabLock, params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    ask = params["_ask"]
    run = controller_from(ask["run"])
    ended = controller_from(ask["ended"]) if ask.get("ended") else None
    wanted = Record(
        controller=run,
        user=ask["user"],
        playbook=ask["playbook"],
        connection=connection_of(run, persists=ask["persists"]),
        host_boot=boot_id(),
        taken=time.time(),
        renewed=clock(),
    )

    def see(record: Record) -> Seen:
        connection = record.connection
        alive = connection is not None and not has_ended(connection.pid, connection.started)
        return Seen(boot=wanted.host_boot, now=clock(), has_connection=alive, ended=ended)

    outcome, other, found = lock.take(wanted, see, by_force=params["take_over"], check_mode=check_mode)
    if outcome == TAKEN and not check_mode:
        one_watch.end(Paths(params["lab"]).nodes_lock)
    told = {"holder": described(other, time.time()), "_holder": asdict(other.controller)} if other else {}
    return {"changed": False, "outcome": outcome, "_wait": found.wait, "_why": found.gone, **told}


def clock() -> float:
    """It is never set, and goes on while the host sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    if not re.fullmatch("[a-z0-9][a-z0-9-]*", params["lab"]):
        raise OperatorError(
            f"lab is {params['lab']!r}: lower case letters, digits and inner hyphens make a lab's name."
        )
    lock = LabLock(params["lab"])
    try:
        if params["state"] == "taken":
            return take(lock, params, check_mode=check_mode)
        run_of = controller_from(params["_ask"]["run"])
        return {"changed": False, "outcome": lock.release(run_of, check_mode=check_mode)}
    except OSError as error:
        raise OperatorError(
            f"The lock of lab {params['lab']} cannot be used: {error}. It needs become: true."
        ) from error


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
