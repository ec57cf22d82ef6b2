# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An installation begun, or gone on with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import apparmor, bootstrap, leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import (
    decision,
    prepare,
    provisioning_check,
    run,
    situation,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.run import Plan
from ansible_collections.nometal.ipi.plugins.module_utils._core import directories
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.decision import Decision
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.facts import Facts
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.prepare import Job
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.situation import Wanted
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.program import Program
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths


@dataclass(frozen=True)
class Lab:
    """What is at hand of it. Making a job or finding the program fails when something of it is wrong."""

    paths: Paths
    wanted: Wanted
    environment: Mapping[str, str]
    find_program: Callable[[], Program]
    make_job: Callable[[Program], Job]


@dataclass(frozen=True)
class Outcome:
    todo: Decision
    note: str
    removed: tuple[str, ...] = ()


def install(lab: Lab, *, check_mode: bool) -> Outcome:
    outcome, _facts = _look(lab)
    if check_mode or outcome.todo.kind not in (decision.FRESH, decision.RESUME):
        return outcome
    with prepare.alone(lab.paths):
        outcome, facts = _look(lab)  # another play may have begun it meanwhile
        if outcome.todo.kind == decision.FRESH:
            return _begin(lab, outcome.todo)
        if outcome.todo.kind == decision.RESUME:
            return _go_on(lab, outcome, facts)
        return outcome


def _look(lab: Lab) -> tuple[Outcome, Facts]:
    facts = situation.look(lab.paths, lab.wanted)
    todo = decision.decide(facts)
    return Outcome(todo, decision.note_of(facts, todo)), facts


def _begin(lab: Lab, todo: Decision) -> Outcome:
    program = lab.find_program()
    job = lab.make_job(program)
    with prepare.drafted(lab.paths, job) as note:  # nothing is removed for one that cannot begin
        provisioning_check.refuse(job.config, lab.environment)
        removed = _remove(lab) if todo.clears else []
        prepare.adopt(lab.paths)
    apparmor.allow(lab.paths)
    _start(lab, program, todo, program.version, lab.wanted.config_digest)
    return Outcome(todo, note, tuple(removed))


def _go_on(lab: Lab, outcome: Outcome, facts: Facts) -> Outcome:
    program, last = lab.find_program(), run.read(lab.paths)
    prepare.make_directories(lab.paths)
    removed = _remove_bootstrap(lab) if outcome.todo.removes_bootstrap else []
    _start(lab, program, outcome.todo, facts.version or program.version, last.config_digest)
    return replace(outcome, removed=tuple(removed))


def _start(lab: Lab, program: Program, todo: Decision, version: str, config_digest: str) -> None:
    plan = Plan(
        program=str(program.path),
        commands=todo.commands,
        assets=str(lab.paths.assets),
        environment=lab.environment,
        version=version,
        config_digest=config_digest,
    )
    directories.note([bootstrap.POOLS], directories.MEMORY)  # the installer makes it
    run.start(lab.paths, plan)


def _remove(lab: Lab) -> list[str]:
    wanted = lab.wanted
    with connect(wanted.libvirt_uri) as connection:
        return leftovers.remove(connection, lab.paths, wanted.nodes, wanted.bmc_home, wanted.bridges, records=False)


def _remove_bootstrap(lab: Lab) -> list[str]:
    """As `destroy bootstrap` does with one that runs. What it has logged stays: a bundle may want it."""
    with connect(lab.wanted.libvirt_uri) as connection:
        left = leftovers.find(connection, lab.paths, lab.wanted.bridges)
        for name in left.domains:
            bootstrap.remove_domain(connection, name)
        for name in left.pools:
            bootstrap.remove_pool(connection, name)
        for directory in left.directories:
            bootstrap.remove_path(Path(directory))
    return [
        *(f"undefine {name}" for name in left.domains),
        *(f"undefine pool {name}" for name in left.pools),
        *(f"remove {directory}" for directory in left.directories),
    ]
