# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of an installed cluster and those of the lab: what differs, and bringing the cluster to what the lab is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Bmcs, Power
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import client_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import (
    control_plane,
    etcd,
    manifests,
    plan,
    record,
    stalls,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.following import Follower, StalledError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.port import ClusterPort
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.record import Record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import (
    spares_of,
    wanted_of,
    without_login,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.backup import EtcdBackup
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import Teller
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import job_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import is_held
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import NEWEST, release_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.plan import Plan
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import Wanted, WantedHost

SHRINK, GROW = "shrink", "grow"
PARTS = (SHRINK, GROW)
ROLLOUT_SECONDS, ROLLOUT_PAUSE = 300.0, 3.0
REMOVE_NEVERTHELESS = (
    "Nothing was changed. With the cluster up again (`make start`, or its nodes switched on), run this again; "
    "-e cluster_nodes_force_removal=true removes them from the lab nevertheless, and leaves the cluster to you."
)
WITHOUT_BACKUP = "To replace a node of the control plane without a backup of etcd, set cluster_nodes_backup=false."
HAVE_IT_ASKED = (
    "Nothing was changed. The host asks by oc or kubectl, with the kubeconfig of the installation; when both are there "
    "and have the rights of an administrator, run this again. Nodes of a cluster that runs are not removed by force."
)


@dataclass(frozen=True)
class Task:
    """What one call of the module is asked for."""

    part: str
    model: Mapping[str, Any]
    installation: Installation
    version: str = ""
    """Of the cluster."""
    replaces: Sequence[str] = ()
    cancels: bool = False
    """The replacement of a node of the control plane that has begun."""
    backs_up: bool = True
    """etcd, before a node of the control plane leaves."""
    forces: bool = False
    """Removes nodes also from a lab whose cluster cannot be reached."""
    drain_seconds: int = 600
    patience: float = 1.0


@dataclass(frozen=True)
class Result:
    steps: Sequence[str] = ()
    waits: Sequence[str] = ()
    gone: Sequence[str] = ()
    """VMs that the cluster has no longer, or never had."""
    warnings: Sequence[str] = ()
    busy: bool = False
    """Whether another run changes the nodes: by what lab_spec was when it began."""
    reachable: bool = True
    noted: bool = True
    """Whether the record of the hosts is that of the lab."""
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    failure: str = ""
    findings: Sequence[Mapping[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "changed": bool(self.steps),
            "steps": list(self.steps),
            "waits": list(self.waits),
            "gone": list(self.gone),
            "busy": self.busy,
            "reachable": self.reachable,
            "noted": self.noted,
            "findings": list(self.findings),
            "diff": {"before": _lines(self.before), "after": _lines(self.after)} if self.steps else {},
            "warnings": list(self.warnings),
            **({"failed": True, "msg": self.failure} if self.failure else {}),
        }


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


class Cluster:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._paths = task.installation.paths
        self._record = record.read(self._paths)
        self._kept: Sequence[str] = ()
        """Nodes whose replacement is withdrawn."""

    def look(self) -> Result:
        """What would be done."""
        return replace(self._with_api(self._judged), busy=is_held(self._paths.nodes_lock))

    def follow(self) -> Result:
        return self._with_api(self._followed)

    def _with_api(self, act: Callable[[Client, Seen], Result]) -> Result:
        refuse_unknown(self._task)
        try:
            client = self._client()
            seen = self._first_look(client)
            if self._withdraw(seen) | self._note_replaced(seen):
                seen = self._port(client).read()  # of etcd, too
        except ApiError as error:
            return self._silent(error)
        self._refuse(seen)
        self._refuse_without_backup(client, seen)
        return act(client, seen)

    def _first_look(self, client: Client) -> Seen:
        """While etcd rolls out without the member that is replaced, it is silent at times."""
        bears = self._task.part == GROW and self._record.replacing
        silent = ApiError("unreachable", "The cluster's API does not answer")
        for _look in wait.looks(ROLLOUT_SECONDS * self._task.patience if bears else 0, ROLLOUT_PAUSE):
            found = self._seen_or_silent(client)
            if not isinstance(found, ApiError):
                return found
            silent = found
        raise silent

    def _seen_or_silent(self, client: Client) -> Seen | ApiError:
        try:
            client.run("get", "--raw", "/version")  # without reading first what the API has
            return self._port(client).read()
        except ApiError as error:
            if error.reason != "unreachable":
                raise
            return error

    def _client(self) -> Client:
        client = client_of(self._paths, self._task.installation.tools)
        if client is None:
            missing = f"there is no oc and no kubectl on this host, or no {self._paths.kubeconfig}"
            raise ApiError("other", f"The cluster's API cannot be asked: {missing}")
        return client

    def _port(self, client: Client) -> ClusterPort:
        return ClusterPort(
            client, self.wanted, self._release, self._task.drain_seconds, partial(off, self._task.installation)
        )

    @cached_property
    def _release(self) -> tuple[int, int]:
        return release_of(self._task.version) or NEWEST

    @cached_property
    def _certificate(self) -> str:
        return files.text_of(credentials.ca_of(self._task.installation.bmc_home, self._paths.lab)) or ""

    @cached_property
    def _logins(self) -> Mapping[str, Login]:
        file = credentials.file_of(self._task.installation.bmc_home, self._paths.lab)
        return job_secrets.logins_of(file, self._paths.lab)

    @property
    def wanted(self) -> Wanted:
        return wanted_of(
            self._task.model, self._release, self._certificate, self._logins, replaced=self._record.replacing
        )

    # Replacing

    def _withdraw(self, seen: Seen) -> bool:
        """What has changed nothing in etcd, if that is asked for or another node is replaced in its place."""
        task, wanted = self._task, self.wanted
        begun = [name for name in control_plane.replaced(wanted) if name not in task.replaces]
        instead = any(control_plane.is_of_control_plane(name, wanted) for name in task.replaces)
        if task.part != SHRINK or not (task.cancels or instead):
            return False
        self._kept = [name for name in begun if control_plane.may_stay(name, wanted, seen)]
        goes_on = [name for name in begun if name not in self._kept]
        if task.cancels and goes_on:
            raise OperatorError(
                f"The replacement of {', '.join(goes_on)} cannot be cancelled: it has left etcd, or is about to. Run "
                "this again without cluster_nodes_replace_cancel, which completes it. Nothing was changed."
            )
        left = {name: uid for name, uid in self._record.replacing.items() if name not in self._kept}
        self._record = replace(self._record, replacing=left)
        return bool(self._kept)

    def _note_replaced(self, seen: Seen) -> bool:
        """By what is there now: what comes in its place is not replaced when this goes on, unless it has failed."""
        noted = self._record.replacing
        new = {
            name: _uid(seen, name)
            for name in self._task.replaces
            if name not in noted or (noted[name] != _uid(seen, name) and plan.has_failed(name, seen))
        }
        if not new or self._task.part != SHRINK:
            return False
        self._record = replace(self._record, replacing={**self._record.replacing, **new})
        return True

    def _refuse(self, seen: Seen) -> None:
        lost = plan.not_in_lab(self.wanted, seen)
        if lost:
            raise OperatorError(
                f"lab_spec no longer has {', '.join(lost)}, of the cluster's control plane. No count removes such a "
                "node: raise lab_spec.nodes.control_plane.count (or arbiters) again. Nothing was changed."
            )
        if self._task.part == SHRINK:
            control_plane.refuse(self.wanted, seen, plan.leaving(self.wanted, seen))

    def _refuse_without_backup(self, client: Client, seen: Seen) -> None:
        node = self._backed_up_by(seen)
        if node and client.program.name != "oc":
            raise OperatorError(
                "etcd cannot be backed up, for which `oc` is needed on the host: there is only `kubectl`. Nothing was "
                f"changed. {WITHOUT_BACKUP}"
            )

    def _backed_up_by(self, seen: Seen) -> str:
        """Before the first change to a member of etcd, as OpenShift demands it."""
        is_due = self._task.part == SHRINK and self._task.backs_up
        return control_plane.backs_up(self.wanted, seen, self._release) if is_due else ""

    def _refuse_without_logins(self) -> None:
        """Not when it only looks: in check mode, stage bmc has not made them yet."""
        nameless = without_login(list(self.wanted.hosts.values())) if self._task.part == GROW else []
        if nameless:
            raise OperatorError(
                f"The BMCs of {', '.join(nameless)} have no login: playbooks/bmc.yml makes one for every node."
            )

    # Looking

    def _judged(self, _client: Client, seen: Seen) -> Result:
        wanted = self.wanted
        shrinks, grows = plan.changes(wanted, seen)
        is_shrink = self._task.part == SHRINK
        shrinks = [*self._kept_steps(), *shrinks]
        steps = shrinks if is_shrink else [*grows, *self._spares_steps()]
        made = plan.shrink(wanted, seen, self._release) if is_shrink else plan.grow(wanted, seen)
        return Result(
            steps=steps,
            noted=is_shrink or self._is_noted(seen),
            waits=[f"{waiting.who}: {waiting.state}" for waiting in made.waits],
            gone=self._gone(seen) if is_shrink and not shrinks else [],
            warnings=[] if is_shrink else plan.warnings(wanted, seen),
            before=sorted(seen.hosts),
            after=sorted({*seen.hosts} - {host.name for host in plan.leaving(wanted, seen)})
            if is_shrink
            else sorted({*seen.hosts, *wanted.hosts}),
        )

    def _kept_steps(self) -> list[str]:
        return [f"keep {name}" for name in self._kept]

    def _is_noted(self, seen: Seen) -> bool:
        has_all = {*self._record.hosts} == {*self.wanted.hosts}
        return has_all and self._to_be_replaced(seen) == self._record.replacing

    def _to_be_replaced(self, seen: Seen) -> dict[str, str]:
        """What has not left so far."""
        return {name: uid for name, uid in self._record.replacing.items() if uid and uid == _uid(seen, name)}

    def _gone(self, seen: Seen | None) -> list[str]:
        """VMs of hosts that have left, or that are about to be made anew."""
        wanted, there = self.wanted, {*(seen.hosts if seen else ())}
        left = [name for name in self._record.hosts if name not in wanted.nodes and plan.BY_COUNT_NAME.fullmatch(name)]
        names = [*left, *(self._record.replacing if seen else ())]
        return [Identity(self._paths.lab).vm_name(name) for name in names if name not in there]

    def _silent(self, error: ApiError) -> Result:
        self._refuse_unasked(error)
        said = f"{error}. Whether its nodes are as in lab_spec is not known."
        gone = self._gone(None) if self._task.part == SHRINK else []
        return Result(reachable=False, gone=gone, warnings=[said] if self._task.part == GROW else [])

    def _refuse_unasked(self, error: ApiError) -> None:
        """What needs the cluster. Only one that does not answer may be gone: others run, and must not lose VMs."""
        lost = [name for name in self._record.hosts if name not in self.wanted.hosts]
        noted, begun = self._record.hosts, self._record.replacing
        new = [name for name in self.wanted.hosts if name not in noted or name in begun]
        may_be_gone = error.reason == "unreachable"
        if self._task.part == GROW and new:
            raise OperatorError(
                f"{error}. {', '.join(new)} cannot be made known to it: run this again when it answers."
            )
        replaced = sorted({*self._task.replaces, *control_plane.replaced(self.wanted)})
        if self._task.part == SHRINK and replaced:
            raise OperatorError(f"{error}. {', '.join(replaced)} cannot be replaced without it. Nothing was changed.")
        if self._task.part == SHRINK and lost and not (self._task.forces and may_be_gone):
            advice = REMOVE_NEVERTHELESS if may_be_gone else HAVE_IT_ASKED
            raise OperatorError(f"{error}. {', '.join(lost)} cannot be taken out of it. {advice}")

    # Acting

    def _followed(self, client: Client, seen: Seen) -> Result:
        self._refuse_without_logins()
        task, first = self._task, self._judged(client, seen)
        teller = Teller(self._paths.node_events)
        steps = self._back_up(client, seen, teller)
        record.write(self._paths, self._begun())
        explain = partial(stalls.findings, task.installation, client)
        follower = Follower(self._port(client), teller, explain, task.patience)
        try:
            last = follower.follow(self._plan)
        except (OperatorError, OSError) as error:
            found = error.findings if isinstance(error, StalledError) else []
            teller.tell("cluster", str(error), trouble=True)
            return replace(
                first,
                steps=[*self._kept_steps(), *steps, *follower.steps],
                failure=str(error),
                findings=[finding.to_dict() for finding in found],
            )
        return self._finished(first, [*self._kept_steps(), *steps, *follower.steps], last)

    def _back_up(self, client: Client, seen: Seen, teller: Teller) -> list[str]:
        """The steps."""
        node = self._backed_up_by(seen)
        if not node:
            return []
        teller.tell(etcd.ETCD, "is backed up")
        try:
            path = EtcdBackup(client, self._paths.backups).take(node)
        except OperatorError as error:
            said = str(error).strip().rstrip(".")
            raise OperatorError(
                f"etcd cannot be backed up by {node}: {said}. Nothing was changed. {WITHOUT_BACKUP}"
            ) from error
        teller.tell(etcd.ETCD, f"is backed up: {path}")
        return [f"back up {etcd.ETCD}"]

    def _begun(self) -> Record:
        """What grows has VMs from now on, which must go if lab_spec is taken back before it is done."""
        known = self._record.hosts
        new = [name for name in self.wanted.hosts if name not in known] if self._task.part == GROW else []
        return replace(self._record, hosts=[*known, *new])

    def _plan(self, seen: Seen) -> Plan:
        if self._task.part == SHRINK:
            return plan.shrink(self.wanted, seen, self._release)
        return plan.grow(self.wanted, seen)

    def _finished(self, first: Result, steps: Sequence[str], last: Seen) -> Result:
        if self._task.part == SHRINK:
            return replace(first, steps=steps, waits=[], gone=self._gone(last))
        spares = self._spares_steps()
        self._write_spares()
        record.write(self._paths, Record(list(self.wanted.hosts), self._to_be_replaced(last)))
        return replace(first, steps=[*steps, *spares], waits=[], noted=True, warnings=plan.warnings(self.wanted, last))

    # Spares that the cluster is not to know

    def _spares(self) -> list[WantedHost]:
        return spares_of(self._task.model, self._release, self._certificate, self._logins)

    def _spares_text(self) -> str | None:
        hosts = [] if self._task.model["registers_spares"] else self._spares()
        return manifests.yaml_of(hosts, self._paths.lab) if hosts else None

    def _spares_steps(self) -> list[str]:
        text, there = self._spares_text(), files.text_of(self._paths.spares)
        if text == there:
            return []
        return [f"write {self._paths.spares}" if text else f"remove {self._paths.spares}"]

    def _write_spares(self) -> None:
        text = self._spares_text()
        if text is None:
            self._paths.spares.unlink(missing_ok=True)
        elif self._spares_steps():
            files.write_whole(self._paths.spares, text, files.OWNER_ALONE)


def off(installation: Installation, hosts: Collection[str]) -> list[str]:
    """Whose VMs do not run, as their BMCs say, which know nothing of a VM that is gone."""
    lab = installation.paths.lab
    vms = {name: Identity(lab).vm_name(name) for name in hosts}
    try:
        said = Bmcs(installation.bmc_home, lab).power(vms.values())
    except OperatorError:
        return []
    return [name for name, vm in vms.items() if vm in said and (said[vm].power == Power.OFF or said[vm].is_gone)]


def refuse_unknown(task: Task) -> None:
    known = [node["name"] for node in task.model["nodes"]]
    unknown = [name for name in task.replaces if name not in known]
    if unknown:
        raise OperatorError(
            f"cluster_nodes_replace names {', '.join(unknown)}: must be nodes of the lab, {', '.join(known)}."
        )
    arbiters = [node["name"] for node in task.model["nodes"] if node["role"] == Role.ARBITER]
    fixed = [name for name in task.replaces if name in arbiters]
    if fixed:
        raise OperatorError(
            f"cluster_nodes_replace names {', '.join(fixed)}: no arbiter is replaced this way, as no other Machine is "
            "like its own. Follow OpenShift's documentation of replacing a member of etcd."
        )


def _uid(seen: Seen, name: str) -> str:
    return seen.hosts[name].uid if name in seen.hosts else ""
