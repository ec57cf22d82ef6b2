# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the installer's log tells, entry by entry: how far the installation is, and what stands in its way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import terraform
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.operators import Operators
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage, begun_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.log import Entry

STATES = (
    *("uninitialized", "unmanaged", "registering", "match profile", "inspecting", "ready", "preparing", "available"),
    *(
        "provisioning",
        "provisioned",
        "externally provisioned",
        "deprovisioning",
        "deleting",
        "powering off before delete",
    ),
)
HOST = re.compile(r"\s*baremetalhost: (?P<name>[^\s:]+): (?P<said>.*)", re.DOTALL)
"""What is not one of BMO's states is an error: `inspection error: ...`, and `error: ...` from older ones."""
VERSION = re.compile(r"OpenShift Installer (?:v(?=\d))?(\S+)")
API_UP = re.compile(r"API \S+ up\b")
API_SILENT = re.compile(r"Still waiting for the Kubernetes API: (.*)", re.DOTALL)
API_URL = re.compile(r"(?:for the Kubernetes API at|for the cluster at) (https?://[^\s]+?)(?:\.\.\.| to initialize|$)")
CONSOLE_URL = re.compile(r"Access the OpenShift web-console here: (https?://\S+)")
BOOTSTRAPPED = ("Bootstrap status: complete", "It is now safe to remove the bootstrap resources")
DESTROYED = ("Finished destroying bootstrap resources", "Destroy complete!", "  Deleting pool")
AFTER_BOOTSTRAP = (Stage.INITIALIZE, Stage.OPERATORS, Stage.CONSOLE, Stage.COMPLETE)
WITH_BOOTSTRAP = (Stage.API, Stage.BOOTSTRAP, Stage.CONTROL_PLANE, Stage.ETCD)
BAD = ("error", "fatal", "panic")
MOST_ERRORS = 40


@dataclass
class Host:
    state: str
    since: float
    trouble: str = ""
    troubled_since: float = 0.0


@dataclass
class Span:
    stage: Stage
    begin: float
    end: float


@dataclass
class Progress:
    """Facts hold over the runs that go on with the same cluster; errors are the last run's."""

    control_plane: Sequence[str] = ()
    """Names of its hosts in their order: up to 4.15, the log has numbers only."""
    stage: Stage | None = None
    since: float = 0.0
    changed: float = 0.0
    """When anything last went on."""
    last: float = 0.0
    spans: list[Span] = field(default_factory=list)
    hosts: dict[str, Host] = field(default_factory=dict)
    operators: Operators = field(default_factory=Operators)
    errors: list[str] = field(default_factory=list)
    version: str = ""
    api_url: str = ""
    api_up: bool = False
    api_trouble: str = ""
    """What the installer met last at the API that it waits for."""
    console_url: str = ""
    bootstrap_made: bool = False
    control_plane_provisioned: bool = False
    bootstrap_complete: bool = False
    bootstrap_destroyed: bool = False
    complete: bool = False

    def add(self, entry: Entry) -> None:
        self.last = max(self.last, entry.at)
        begun = begun_by(entry.msg)
        if begun is Stage.PREPARE:
            self._begin_run(entry)
        elif begun is not None:
            self._enter(begun, entry.at)
        self._note_facts(entry.msg)
        self._note_host(entry)
        self._note_terraform(entry)
        self._note_operators(entry)
        if entry.level in BAD and entry.msg.strip() and entry.msg[0] not in " \t*" and entry.msg not in self.errors:
            self.errors = [*self.errors, entry.msg][-MOST_ERRORS:]

    def end_trouble(self, name: str) -> None:
        """The log never says that a host's error is over. Whoever has asked the cluster does."""
        self.hosts[name].trouble, self.hosts[name].troubled_since = "", 0.0

    def spent(self, since: float = 0.0) -> dict[Stage, float]:
        """Seconds in each stage from then on."""
        found: dict[Stage, float] = {}
        for span in self.spans:
            seconds = max(span.end, since) - max(span.begin, since)
            if span.end >= since:
                found[span.stage] = found.get(span.stage, 0.0) + seconds
        return found

    def close(self, at: float) -> None:
        """The stage that it is in goes on until then."""
        if self.spans:
            self.spans[-1].end = max(self.spans[-1].end, at)

    def _begin_run(self, entry: Entry) -> None:
        found = VERSION.match(entry.msg.lstrip())
        self.version = found[1] if found else self.version
        self.errors = []
        if self.stage is None:
            self._enter(Stage.PREPARE, entry.at)

    def _enter(self, stage: Stage, at: float) -> None:
        if stage is self.stage:
            return
        self.close(at)
        if stage is Stage.INFRASTRUCTURE:
            self._begin_cluster()
        if stage is Stage.COMPLETE:
            self.complete = True
        self.bootstrap_destroyed |= stage in AFTER_BOOTSTRAP
        self.bootstrap_made |= stage in WITH_BOOTSTRAP
        self.bootstrap_complete |= stage in (*AFTER_BOOTSTRAP, Stage.DESTROY_BOOTSTRAP)
        self.control_plane_provisioned |= stage in AFTER_BOOTSTRAP or self.stage is Stage.CONTROL_PLANE
        self.stage, self.since, self.changed = stage, at, at
        self.spans.append(Span(stage, at, at))

    def _begin_cluster(self) -> None:
        """What a former attempt has made is gone by now, or this one fails."""
        self.hosts, self.operators = {}, Operators()
        self.api_up = self.bootstrap_made = self.control_plane_provisioned = False
        self.bootstrap_complete = self.bootstrap_destroyed = self.complete = False

    def _note_facts(self, msg: str) -> None:
        self.api_up = self.api_up or bool(API_UP.match(msg))
        self.bootstrap_complete |= msg.startswith(BOOTSTRAPPED)
        self.bootstrap_destroyed |= self.stage is Stage.DESTROY_BOOTSTRAP and msg.startswith(DESTROYED)
        for name, pattern in (("api_url", API_URL), ("console_url", CONSOLE_URL), ("api_trouble", API_SILENT)):
            found = pattern.search(msg)
            if found:
                setattr(self, name, found[1].strip())

    def _note_host(self, entry: Entry) -> None:
        found = HOST.match(entry.msg)
        if found:
            is_state = found["said"].strip() in STATES
            self._host_is(found["name"], found["said"].strip(), entry.at, is_trouble=not is_state)

    def _host_is(self, name: str, said: str, at: float, *, is_trouble: bool = False) -> None:
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = Host("" if is_trouble else said, at)
            self.changed = at
        if is_trouble:
            host.troubled_since = host.troubled_since if host.trouble else at
            host.trouble = said
        elif host.state != said:
            self.hosts[name] = Host(said, at)
            self.changed = at

    def _note_terraform(self, entry: Entry) -> None:
        """Up to 4.15, Terraform makes the bootstrap VM and provisions the control plane, before there is an API."""
        said = terraform.said(entry.msg)
        if said is None:
            return
        self.bootstrap_made |= said.bootstrap_made
        if said.host is not None:
            self._host_is(self._name_of(said.host), said.state, entry.at)
        if self.stage is Stage.INFRASTRUCTURE and self.bootstrap_made and self.hosts:
            self._enter(Stage.CONTROL_PLANE, entry.at)

    def _name_of(self, host: str) -> str:
        if not host.isdigit():
            return host
        number = int(host)
        return self.control_plane[number] if number < len(self.control_plane) else f"control plane {number}"

    def _note_operators(self, entry: Entry) -> None:
        if self.operators.heard(entry.msg):
            self.changed = entry.at


def progress_of(entries: Iterable[Entry], control_plane: Sequence[str] = ()) -> Progress:
    progress = Progress(control_plane=control_plane)
    for entry in entries:
        progress.add(entry)
    return progress
