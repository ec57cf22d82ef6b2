# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out single steps on the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import FIELD_MANAGER, MACHINE_API
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import (
    DETACHED,
    HOSTS,
    MACHINE_SETS,
    MACHINES,
    SECRETS,
    BareMetalHost,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import control_plane, etcd, manifests
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.plan import (
    ATTACHMENT,
    BMC,
    HINTS,
    LOGIN,
    differences,
    own_marks,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen, read
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.states import mark_of
from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import Wanted
    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release

DETACH_SECONDS = 300.0
PAUSE = 2.0
RELEASED = {"spec": {"consumerRef": None}}


class ClusterPort:
    def __init__(
        self,
        client: Client,
        wanted: Wanted,
        release: Release,
        drain_seconds: int,
        off: Callable[[Collection[str]], Collection[str]],
    ) -> None:
        """Off: of these hosts, those whose VMs do not run."""
        self._client = client
        self._wanted = wanted
        self._annotation = mark_of(release)
        self._drain_seconds = drain_seconds
        self._off = off
        self._seen = Seen()

    def read(self) -> Seen:
        self._seen = read(self._client)
        names = control_plane.replaced(self._wanted)
        if names and control_plane.needs_etcd(self._wanted, self._seen):
            is_gone = any(name not in self._seen.hosts for name in names)
            self._seen = replace(self._seen, etcd=etcd.read(self._client, names, with_secrets=is_gone))
        unknown = control_plane.of_unknown_power(self._wanted, self._seen)
        if unknown:
            self._seen = replace(self._seen, off=self._off(unknown))
        return self._seen

    def apply(self, step: Step) -> None:
        getattr(self, f"_{step.verb.replace(' ', '_')}")(step)

    # What comes

    def _trust(self, _step: Step) -> None:
        self._client.apply([manifests.ca_config_map(self._wanted.trusted)], force=True)

    def _register(self, step: Step) -> None:
        host = self._wanted.hosts[step.target]
        objects = manifests.of_host(host, self._wanted.lab, held=True)
        if control_plane.is_of_control_plane(host.name, self._wanted):
            objects[-1]["metadata"]["labels"].update(control_plane.labels_like(host.name, self._seen))
        self._client.apply(objects)

    def _release(self, step: Step) -> None:
        self._client.patch(HOSTS, step.target, MACHINE_API, RELEASED)

    def _make_machine(self, step: Step) -> None:
        """The host first, so that it is this Machine's whenever this is interrupted."""
        self._client.patch(HOSTS, step.target, MACHINE_API, {"spec": {"consumerRef": manifests.consumer(step.remark)}})
        other = control_plane.pattern(step.target, self._seen)
        spec = control_plane.spec_like(other)
        self._client.apply([manifests.machine(step.remark, step.target, other.labels, spec)])

    def _guard(self, _step: Step) -> None:
        others = {key for key in self._etcd.overrides if key != etcd.UNGUARDED}
        self._override(None, {etcd.UNGUARDED: None} if others else None)

    def _scale(self, step: Step) -> None:
        self._client.scale(MACHINE_SETS, step.target, MACHINE_API, int(step.remark.rpartition(" ")[2]))

    def _update(self, step: Step) -> None:
        host, name = self._wanted.hosts[step.target], step.target
        changed = differences(host, self._seen)
        if changed[LOGIN]:
            secret = manifests.bmc_secret(host, self._wanted.lab)
            known = (self._seen.specs[name].get("bmc") or {}).get("credentialsName")
            secret["metadata"] = {**secret["metadata"], "name": known or secret["metadata"]["name"]}
            self._client.apply([secret], force=True)
        if changed[HINTS]:
            former = self._seen.specs[name].get("rootDeviceHints") or {}
            hints = {**dict.fromkeys(former), **host.facts["rootDeviceHints"]}
            self._client.patch(HOSTS, name, MACHINE_API, {"spec": {"rootDeviceHints": hints}})
        if changed[BMC]:
            self._detach(name)
            self._client.patch(HOSTS, name, MACHINE_API, {"spec": {"bmc": manifests.bmc(host)}})
        if changed[BMC] or changed[ATTACHMENT]:
            self._client.annotate(HOSTS, name, MACHINE_API, {DETACHED: None})

    def _detach(self, name: str) -> None:
        """The API refuses another address of a host that metal3 is in touch with."""
        if self._host(name).state in ("", "registering"):
            return
        self._client.annotate(HOSTS, name, MACHINE_API, {DETACHED: FIELD_MANAGER})
        wait.require(
            lambda: self._host(name).operational_status == "detached",
            DETACH_SECONDS,
            lambda: (
                f"{name}: metal3 does not detach it, so the address of its BMC cannot be changed in the cluster "
                f"(state {self._host(name).state}). Run this again when it is available or provisioned."
            ),
            PAUSE,
        )

    def _host(self, name: str) -> BareMetalHost:
        found = self._client.get(HOSTS, name, MACHINE_API)
        return BareMetalHost.from_dict(found[0]) if found else BareMetalHost(name)

    # What leaves

    def _cordon(self, step: Step) -> None:
        self._client.cordon(step.target)

    def _drain(self, step: Step) -> None:
        node = self._seen.nodes.get(step.target)
        blocked = self._client.drain(step.target, self._drain_seconds, is_silent=node is not None and node.is_silent)
        if blocked:
            raise OperatorError(
                f"{step.target} cannot be drained: {'; '.join(blocked)}. It stays in the cluster, cordoned, and its VM "
                "is as it was. Make room for what it runs, or raise cluster_nodes_drain_seconds "
                f"({self._drain_seconds}), then run this again."
            )

    def _mark(self, step: Step) -> None:
        self._client.annotate(MACHINES, step.target, MACHINE_API, {self._annotation: self._wanted.lab})

    def _unmark(self, step: Step) -> None:
        marks = own_marks(self._seen.machines[step.target], self._wanted.lab)
        self._client.annotate(MACHINES, step.target, MACHINE_API, dict.fromkeys(marks))

    def _delete_machine(self, step: Step) -> None:
        self._client.delete(MACHINES, step.target, MACHINE_API)

    def _remove(self, step: Step) -> None:
        """metal3 needs its Secrets until it is gone. They are labelled before, for a run that comes later."""
        for name in self._secrets_of(step.target):
            change = {"metadata": {"labels": {manifests.OF_LAB: self._wanted.lab}}}
            self._client.patch(SECRETS, name, MACHINE_API, change)
        self._client.delete(HOSTS, step.target, MACHINE_API)

    # A node of the control plane that leaves

    def _switch_off(self, step: Step) -> None:
        self._client.patch(HOSTS, step.target, MACHINE_API, {"spec": {"online": False}})

    def _unguard(self, _step: Step) -> None:
        self._override(self._wanted.lab, {etcd.UNGUARDED: True})

    def _override(self, lab: str | None, overrides: Mapping[str, Any] | None) -> None:
        """In one go with who has done so: what others have set is left to them."""
        change = {
            "metadata": {"annotations": {etcd.UNGUARDED_BY: lab}},
            "spec": {"unsupportedConfigOverrides": overrides},
        }
        self._client.patch(etcd.OPERATOR, etcd.NAME, "", change)

    def _remove_member(self, step: Step) -> None:
        member = next(each for each in self._etcd.members if each.name == step.target)
        etcd.remove(self._client, self._etcd.pod, member.identity)

    def _forget(self, step: Step) -> None:
        """metal3 neither cleans it nor asks for its power any more."""
        self._client.annotate(HOSTS, step.target, MACHINE_API, {DETACHED: FIELD_MANAGER})

    def _delete_etcd_secrets(self, step: Step) -> None:
        for name in step.target:
            self._client.delete(SECRETS, name, etcd.NAMESPACE)

    @property
    def _etcd(self) -> etcd.Etcd:
        return self._seen.etcd or etcd.Etcd()

    def _secrets_of(self, host: str) -> list[str]:
        names = manifests.secrets_of(self._seen.specs.get(host, {}))
        return [name for name in names if name in self._seen.logins]

    def _delete_secrets(self, step: Step) -> None:
        for name in step.target:
            self._client.delete(SECRETS, name, MACHINE_API)
