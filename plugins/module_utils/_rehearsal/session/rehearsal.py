# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rehearsal from its beginning to its report."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.faults import of_lab
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal import (
    causes,
    evidence,
    judge_bootstrap,
    judge_node,
)
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    BOOTSTRAP,
    FAILED,
    Check,
    Observations,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.events import EventLog
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import take
from ansible_collections.nometal.ipi.plugins.module_utils._observe import labs, picture
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import bootstrap_vm, host_view
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import session as stage
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.line import stages_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

RUNS = Path("/run/nometal/rehearsal")
KNOWN = ("lock", "events.jsonl", "jobs")
"""What there is in a lab's directory of runs."""
LABS = Path("/var/lib/nometal/labs")
ENDING_SECONDS, PLAYING_SECONDS = 60, 1800
OF_SILENCE = ("boots", "boots from its medium", "boots from its disk", "comes to its end")
"""Checks that fail when a guest says nothing."""


@contextmanager
def alone(lab: str, *, end_other: bool = False, patience: float = 1.0) -> Iterator[None]:
    """Another that still runs, a colleague's or one whose controller was lost, is waited for; or it is ended."""
    directory = RUNS / lab
    files.make_directory(directory)
    with files.open_kept(directory / "lock", 0o644) as lock:
        take(
            lock,
            (ENDING_SECONDS if end_other else PLAYING_SECONDS) * patience,
            lambda: f"Another rehearsal of this lab does not end, process {_holder(lock)}: end it.",
            meanwhile=(lambda: _ask_to_end(lock)) if end_other else None,
            pause=0.5,
        )
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _ask_to_end(lock: Any) -> None:
    with suppress(ProcessLookupError, ValueError):
        os.kill(int(_holder(lock)), signal.SIGTERM)


def _holder(lock: Any) -> str:
    lock.seek(0)
    return lock.read().strip()


def end_on_signal() -> None:
    """So that what is to be cleared is cleared."""

    def end(_number: int, _frame: Any) -> None:
        raise SystemExit(1)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


def rehearse(
    lab: Lab, places: stage.Places, connection: Any, *, can_secure_boot: bool, patience: float = 1.0
) -> dict[str, Any]:
    """Returns the report; it is also kept on the host."""
    event_log = EventLog(RUNS / lab.name / "events.jsonl")
    began = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    scene = stage.Stage(lab, places, connection, patience)
    scene.traces.refuse_others()
    faults = of_lab(places.bmc_home / lab.name).rules
    if scene.is_dirty:
        event_log.note("host", "clears away what a killed rehearsal has left")
        scene.as_noted.clear()
    missing, in_use = scene.obstacles()
    if missing:
        raise OperatorError(f"Nothing was rehearsed: {', '.join(missing)}. playbooks/nodes.yml makes VMs and disks.")
    if in_use:
        return {**_nothing(lab, began, event_log), "ok": True, "in_use": in_use}
    observed, seen = Observations(), Seen(lab, connection, scene)
    checks = list(host_view.checks(lab))
    try:
        hindrance = seen.hindrance(checks)
        if hindrance:
            observed.stop(hindrance)
        else:
            scene.play(observed, event_log, seen.take_picture)
        checks += judged(lab, observed, can_secure_boot=can_secure_boot)
        checks = seen.explain(observed, checks)
    finally:
        event_log.note("host", "clears away")
        for each in scene.clear():
            event_log.note("host", f"left in place: {each}", trouble=True)
    report = {
        **_nothing(lab, began, event_log),
        "ok": all(check.state != FAILED for check in checks),
        "checks": [check.to_dict() for check in checks],
        "consoles": seen.consoles,
        "picture": seen.picture,
        "bmc_faults": [str(rule) for rule in faults],
    }
    report["report"] = _report_of(lab.name)
    keep(report)
    return report


def judged(lab: Lab, observed: Observations, *, can_secure_boot: bool = True) -> list[Check]:
    checks = list(judge_bootstrap.judge(lab, observed))
    if "virtual addresses" in observed.host:
        checks.append(observed.host["virtual addresses"])
    for node in lab.nodes:
        checks += judge_node.judge(lab, node, observed, can_secure_boot=can_secure_boot)
    if not observed.finished and ("network" in observed.seen or observed.broken):
        seen = observed.broken or "it fell silent"
        facts = {"silent": not observed.broken}
        checks.append(Check("comes to its end", BOOTSTRAP, FAILED, "it drives all nodes to the end", seen, facts=facts))
    return checks


class Seen:
    """What there is to see on the host while everything runs."""

    def __init__(self, lab: Lab, connection: Any, scene: stage.Stage) -> None:
        self._lab, self._connection, self._scene = lab, connection, scene
        self.picture: dict[str, Any] = {}
        self.consoles: dict[str, list[str]] = {}

    def take_picture(self) -> None:
        lab = self._lab
        scene = picture.Scene(
            networks=lab.networks,
            bridges=[lab.bridge],
            veth_pairs=lab.veth_pairs,
            vms={BOOTSTRAP: lab.bootstrap_domain, **{node.name: node.vm_name for node in lab.nodes}},
            endpoints=lab.bmc.endpoints,
        )
        self.picture = picture.read(self._connection, scene)

    def hindrance(self, checks: list[Check]) -> str:
        """Why the installer would stop at once, where that is known: then the rehearsal does not wait for the rest."""
        if all(check.state != FAILED for check in checks):
            return ""
        return causes.no_path(self._lab, evidence.of_path(self._connection))

    def explain(self, observed: Observations, checks: list[Check]) -> list[Check]:
        if not self.picture:
            self.take_picture()
        if all(check.state != FAILED for check in checks):
            return checks
        self.consoles = self._scene.consoles.of({check.who for check in checks if check.state == FAILED})
        found = evidence.gather(self._connection, self._lab)
        explained = causes.explained(self._lab, found.with_observations(observed), checks)
        lost = observed.host.get("lost", {})
        return [self._of_silence(check) if is_silence(check, lost) else check for check in explained]

    def _of_silence(self, check: Check) -> Check:
        """How far it came, and whether the host was too busy, is what people ask next."""
        report = _report_of(self._lab.name)
        advice = f"{check.advice} The report: {_page_of(report)}" if report else check.advice
        seen = f"{check.seen}; {self._scene.consoles.last_words(check.who)}"
        return replace(check, seen=seen, advice=advice.strip())


def is_silence(check: Check, lost: Mapping[str, str]) -> bool:
    says_nothing = check.who in lost or check.facts.get("silent")
    return check.state == FAILED and check.check in OF_SILENCE and bool(says_nothing)


def _nothing(lab: Lab, began: str, event_log: EventLog) -> dict[str, Any]:
    return {
        "lab": lab.name,
        "domain": lab.domain,
        "began": began,
        "seconds": event_log.seconds,
        "stages": stages_of(event_log.changes),
        "checks": [],
        "consoles": {},
        "picture": {},
        "in_use": [],
        "bmc_faults": [],
        "report": "",
    }


def _report_of(lab: str) -> str:
    """Where the lab is registered; its teardown takes that away."""
    directory = LABS / lab
    return str(directory / "rehearsal.json") if directory.is_dir() else ""


def _page_of(report: str) -> Path:
    """The controller makes it of the report, once that is there."""
    return Path(report).with_suffix(".html")


def keep(report: dict[str, Any]) -> None:
    if report["report"]:
        files.remove(_page_of(report["report"]))  # that of an older report
        files.write_whole(Path(report["report"]), json.dumps(report, indent=2) + "\n", 0o644)


def refuse_others(lab: Lab, places: stage.Places, connection: Any) -> None:
    """What has the name of this lab's bootstrap VM, and is not the lab's."""
    stage.Stage(lab, places, connection).traces.refuse_others()


def clear(lab: Lab, places: stage.Places, connection: Any, *, check_mode: bool) -> tuple[list[str], list[str]]:
    """What a killed rehearsal has left, and what others have left behind that watched it.

    Returns the steps, and what stays of that name.
    """
    scene = stage.Stage(lab, places, connection)
    running = RUNS / lab.name
    kept = scene.traces.stays()
    if not scene.is_dirty and not removal.has_known(running, KNOWN):
        return [], kept
    if not check_mode:
        with alone(lab.name, end_other=True):
            kept = scene.as_noted.clear()
        kept += removal.remove_known(running, KNOWN)
        files.remove_empty(RUNS)
        files.remove_empty(RUNS.parent)
    return [f"clear {lab.name}"], kept


def clear_files(lab: Lab, places: stage.Places, *, check_mode: bool) -> tuple[list[str], list[str]]:
    """Where libvirt cannot be asked. Notes on what it still has of a rehearsal stay: they are needed to undo that."""
    ours = {places.home / lab.name: (*stage.KNOWN, stage.JOURNAL), RUNS / lab.name: KNOWN}
    left = [path for path, known in ours.items() if removal.has_known(path, known)]
    kept: list[str] = []
    if not left or lab.bootstrap_domain in labs.defined("domain", "pool"):
        return [], kept
    if not check_mode:
        with alone(lab.name, end_other=True):
            kept += bootstrap_vm.remove_files(bootstrap_vm.Paths(lab.bootstrap_domain, lab.name))
        for path in left:
            kept += removal.remove_known(path, ours[path])
            files.remove_empty(path.parent)
        files.remove_empty(RUNS.parent)
    return [f"clear {lab.name}"], kept
