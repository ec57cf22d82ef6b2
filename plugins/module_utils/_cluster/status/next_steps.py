# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do next in which state of a lab, and the commands for it. No other text names next steps."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import Observation

MOST = 3
SHIPPED = "inventory/rehearsal"
"""The lab of make without LAB."""


@dataclass(frozen=True)
class Command:
    """Of a playbook, and of the target of make that runs it, if there is one."""

    target: str
    playbook: str
    arguments: str = ""

    def written(self, inventory: str, *, by_make: bool) -> str:
        if not (by_make and self.target):
            playbook = f"playbooks/{self.playbook}.yml" if by_make else f"nometal.ipi.{self.playbook}"
            words = [f"ansible-playbook {playbook}", f"-i {shlex.quote(inventory)}", self.arguments]
            return " ".join(filter(None, words))
        lab = f"LAB={shlex.quote(inventory)}" if inventory != SHIPPED else ""
        given = f"ARGS='{self.arguments}'" if self.arguments else ""
        return " ".join(filter(None, [f"make {self.target}", lab, given]))


@dataclass(frozen=True)
class Step:
    purpose: str
    command: Command | str
    """A text is a command of the shell, as root on the host."""

    def written(self, inventory: str, *, by_make: bool) -> str:
        if isinstance(self.command, str):
            return self.command
        return self.command.written(inventory, by_make=by_make)


DOCTOR, LAB, REHEARSE = Command("doctor", "doctor"), Command("lab", "site"), Command("rehearse", "rehearse")
STATUS, START, STOP = Command("status", "status"), Command("start", "start"), Command("stop", "stop")
RESTART = Command("lab", "site", "-e ipi_install_restart=true")
TEARDOWN, REMOVE_CLUSTER = Command("teardown", "teardown"), Command("teardown", "teardown", "-e teardown_scope=cluster")

HEADLINES = {
    State.ABSENT: "nothing of it is on this host",
    State.UNKNOWN: "it is registered here, and libvirt does not answer",
    State.PARTIAL: "a part of it is missing or not running",
    State.MADE: "it is made and was not rehearsed",
    State.REHEARSED: "it is ready: the last rehearsal went well",
    State.REHEARSAL_FAILED: "it is made, and the last rehearsal has failed",
    State.INSTALLING: "OpenShift is being installed",
    State.INSTALL_FAILED: "the installation has failed",
    State.INTERRUPTED: "the installation was interrupted",
    State.STOPPED: "the cluster is installed, and all of its nodes are off",
    State.UNREACHABLE: "the cluster is installed, and its API does not answer",
    State.DEGRADED: "the cluster is installed, and not all is well",
    State.INSTALLED: "the cluster is installed",
}
AGAIN = Step("make what is missing; what is there stays", LAB)
REMOVE = Step("remove it, and leave the host as it was", TEARDOWN)
INSTALL = Step("install OpenShift", LAB)
INSTALL_LATER = Step("install OpenShift, once lab_spec.install is there: docs/installation.md", LAB)
TEARDOWN_OF_CLUSTER = Step("remove the cluster; the lab stays", REMOVE_CLUSTER)
STEPS = {
    State.ABSENT: (
        Step("check whether the host can carry it", DOCTOR),
        Step("make it, and rehearse the installation", LAB),
    ),
    State.UNKNOWN: (
        Step("see what is wrong with libvirt", DOCTOR),
        Step("start libvirt, and make what is missing", LAB),
    ),
    State.PARTIAL: (AGAIN, REMOVE),
    State.MADE: (Step("rehearse the installation", REHEARSE), REMOVE),
    State.REHEARSED: (Step("rehearse again", REHEARSE), REMOVE),
    State.REHEARSAL_FAILED: (Step("rehearse again, once that is repaired", REHEARSE), Step("check the host", DOCTOR)),
    State.INSTALLING: (Step("follow it, once no other run has the lab", LAB), Step("look again", STATUS)),
    State.INSTALL_FAILED: (
        Step("go on with it, if that is possible", LAB),
        Step("begin it anew", RESTART),
        TEARDOWN_OF_CLUSTER,
    ),
    State.INTERRUPTED: (Step("go on with it", LAB), Step("begin it anew", RESTART), TEARDOWN_OF_CLUSTER),
    State.UNREACHABLE: (
        Step("look again: nodes that were started need minutes until the API answers", STATUS),
        Step("make what is missing of the lab", LAB),
    ),
    State.DEGRADED: (Step("make what is missing of the lab", LAB), Step("look again", STATUS)),
    State.STOPPED: (Step("look again", STATUS),),
    State.INSTALLED: (TEARDOWN_OF_CLUSTER,),
}
WAY_IN = "from elsewhere, see docs/access.md"


def restore(name: str) -> Command:
    return Command("restore", "restore", f"-e checkpoint_name={name}")


def next_steps(state: State, seen: Observation, failed: str = "") -> list[Step]:
    """Failed: the playbook that has, just now."""
    if seen.run and seen.run.going:
        return [Step("look again, when that run has ended", STATUS)]
    own = [*_of_observation(state, seen)]
    steps = [*own, *(step for step in STEPS[state] if step.command not in [each.command for each in own])]
    if failed:
        again = next((command for command in (LAB, REHEARSE, STOP, START) if command.playbook == failed), None)
        repeated = Step("run it again, once what it has failed for is repaired", again or Command("", failed))
        steps = [repeated, *(step for step in steps if step.command != repeated.command)]
    return steps[:MOST]


def _of_observation(state: State, seen: Observation) -> Iterator[Step]:
    """What takes names or paths of this lab."""
    if seen.half_restored:  # until then, disks are of two moments
        yield Step("repeat the restore, which was interrupted", restore(seen.half_restored))
    elif state in (State.INSTALLED, State.DEGRADED) and seen.replacing:  # a node that leaves etcd is to stay off
        yield Step(f"go on with the replacement of {', '.join(seen.replacing)}", LAB)
    elif state in (State.STOPPED, State.UNREACHABLE, State.DEGRADED) and seen.off:
        yield Step("switch its nodes on, and see it through until it is ready", START)
    if state in (State.MADE, State.REHEARSED):
        yield INSTALL if seen.installs else INSTALL_LATER
    if state in (State.INSTALLED, State.DEGRADED) and seen.installation.kubeconfig:
        yield Step(f"reach the cluster; {WAY_IN}", f"export KUBECONFIG={seen.installation.kubeconfig}")
