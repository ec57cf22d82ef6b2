"""A lab and its cluster in pieces, and a cluster that does at once what its controllers would."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from unit.cluster.config_samples import lab_of

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import (
    DETACHED,
    BareMetalHost,
    Machine,
    MachineSet,
    Node,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import (
    control_plane,
    etcd,
    manifests,
    plan,
    states,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import Wanted, WantedHost, wanted_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.plan import Plan
    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

RELEASE = (4, 20)
SET = "ha-x7k2p-worker-0"
CA = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def lab(workers: int = 2, spares: str = "{count: 0}", overrides: str = "{}", more: str = "") -> dict[str, Any]:
    nodes = f"nodes: {{workers: {{count: {workers}}}, spares: {spares}, overrides: {overrides}}}"
    return lab_of(f"{nodes}\n{more}")


def wanted(model: Mapping[str, Any] | None = None, **changes: Any) -> Wanted:
    model = model or lab()
    logins = {node["name"]: Login("admin", f"secret-of-{node['name']}") for node in model["nodes"]}
    made = wanted_of(model, changes.pop("release", RELEASE), changes.pop("ca", ""), logins, {})
    return replace(made, **changes)


def host(given: WantedHost, lab_name: str = "ha", **changes: Any) -> tuple[BareMetalHost, dict[str, Any]]:
    """As metal3 has it when it is installed."""
    item = manifests.bare_metal_host(given, lab_name, held=False)
    item["status"] = {"provisioning": {"state": "provisioned"}, "operationalStatus": "OK", "poweredOn": True}
    made = BareMetalHost.from_dict(item)
    machine = f"ha-x7k2p-{given.name}"
    return replace(made, uid=f"uid-{given.name}", consumer=machine, consumer_kind="Machine", **changes), item["spec"]


def machine(name: str, **changes: Any) -> Machine:
    role = "worker" if name.startswith("worker") else "master"
    made = Machine(
        f"ha-x7k2p-{name}", "Running", host=name, node=name, role=role, machine_set=SET if role == "worker" else ""
    )
    return replace(made, **changes)


def cluster(given: Wanted, *, replicas: int | None = None) -> Seen:
    """In which all that is wanted is installed, but for spares, which are only available."""
    hosts, specs = {}, {}
    for each in given.hosts.values():
        hosts[each.name], specs[each.name] = host(each)
        if each.is_spare:
            hosts[each.name] = replace(
                hosts[each.name], state="available", consumer=given.lab, consumer_kind=manifests.HOLDER
            )
    names = [each.name for each in given.hosts.values() if not each.is_spare]
    machines = {each.name: each for each in map(machine, names)}
    workers = len(given.workers) if replicas is None else replicas
    return Seen(
        hosts=hosts,
        specs=specs,
        machines=machines,
        machine_sets=[MachineSet(SET, workers, workers, "worker")],
        nodes={name: Node(name, "True") for name in names},
        logins={manifests.bmc_secret_name(name): manifests.login_data(each) for name, each in given.hosts.items()},
        certificate=given.trusted,
    )


def with_etcd(seen: Seen, *ill: str, **changes: Any) -> Seen:
    """With a member on each node of the control plane."""
    names = [name for name in seen.hosts if name.startswith("control-plane")]
    members = [etcd.Member(number, name, name not in ill) for number, name in enumerate(names, 1)]
    secrets = {name: [f"{prefix}{name}" for prefix in etcd.PREFIXES] for name in names}
    return replace(seen, etcd=replace(etcd.Etcd(members, secrets, pod="etcd-control-plane-0"), **changes))


def with_node(seen: Seen, name: str, **changes: Any) -> Seen:
    return replace(seen, nodes={**seen.nodes, name: replace(seen.nodes[name], **changes)})


def without(seen: Seen, *names: str) -> Seen:
    """As if these had never been there."""
    machines = {name: each for name, each in seen.machines.items() if each.host not in names}
    return replace(
        seen,
        hosts={name: each for name, each in seen.hosts.items() if name not in names},
        machines=machines,
        nodes={name: each for name, each in seen.nodes.items() if name not in names},
        machine_sets=[replace(each, replicas=len(workers(machines))) for each in seen.machine_sets],
    )


def workers(machines: Mapping[str, Machine]) -> list[Machine]:
    return [each for each in machines.values() if each.machine_set == SET]


def with_host(seen: Seen, name: str, **changes: Any) -> Seen:
    return replace(seen, hosts={**seen.hosts, name: replace(seen.hosts[name], **changes)})


def with_machine(seen: Seen, name: str, **changes: Any) -> Seen:
    name = f"ha-x7k2p-{name}"
    return replace(seen, machines={**seen.machines, name: replace(seen.machines[name], **changes)})


@dataclass
class Controllers:
    """A cluster whose controllers have done all that they can, before each look."""

    wanted: Wanted
    seen: Seen
    steps: list[str] = field(default_factory=list)
    number: int = 0

    def run(self, part: str, *, until: str = "") -> Plan:
        """Until nothing is left to do, or after a step that begins so."""
        for _look in range(30):
            made = plan.grow(self.wanted, self.seen) if part == "grow" else plan.shrink(self.wanted, self.seen, RELEASE)
            for step in made.steps:
                getattr(self, step.verb.replace(" ", "_"))(step)
                self.steps.append(str(step))
                if until and str(step).startswith(until):
                    return made
            if made.is_done:
                return made
            self.reconcile()
        raise AssertionError(f"no end of {made}")

    def reconcile(self) -> None:
        self._machine_sets()
        self._leave()
        self._take()
        for host in self.seen.hosts.values():
            if not host.online and host.name in self.seen.nodes:
                self.seen = with_node(with_host(self.seen, host.name, powered_on=False), host.name, ready="Unknown")
        if self.seen.etcd:
            self._take_control_plane()
            self._join(self.seen.etcd)

    def _take_control_plane(self) -> None:
        for machine in [each for each in self.seen.machines.values() if each.role == "master" and not each.node]:
            self._change_machine(machine.name, node=machine.host, phase="Running")
            self.seen = with_host(self.seen, machine.host, state="provisioned", powered_on=True)
            self.seen = replace(self.seen, nodes={**self.seen.nodes, machine.host: Node(machine.host, "True")})

    def _join(self, state: etcd.Etcd) -> None:
        """With the quorum guard off."""
        members = [each.name for each in state.members]
        nodes = [name for name, node in self.seen.nodes.items() if name.startswith("control") and node.is_ready]
        new = [etcd.Member(9, name) for name in nodes if name not in members and not state.is_guarded]
        secrets = {name: state.secrets.get(name, [f"etcd-peer-{name}"]) for name in {*nodes, *state.secrets}}
        self.seen = replace(self.seen, etcd=replace(state, members=[*state.members, *new], secrets=secrets))

    def _machine_sets(self) -> None:
        [machine_set] = self.seen.machine_sets
        own = [each for each in workers(self.seen.machines) if not each.deletion]
        worst_first = sorted(own, key=lambda each: not (states.MARKS[1] in each.annotations or not each.host))
        for each in worst_first[: max(len(own) - machine_set.replicas, 0)]:
            self._change_machine(each.name, deletion=True)
        for _missing in range(machine_set.replicas - len(own)):
            self.number += 1
            made = Machine(f"ha-x7k2p-worker-0-new{self.number}", "Provisioning", role="worker", machine_set=SET)
            self.seen = replace(self.seen, machines={**self.seen.machines, made.name: made})

    def _leave(self) -> None:
        for each in [each for each in self.seen.machines.values() if each.deletion]:
            machines = {name: other for name, other in self.seen.machines.items() if name != each.name}
            nodes = {name: other for name, other in self.seen.nodes.items() if name != each.node}
            self.seen = replace(self.seen, machines=machines, nodes=nodes)
            if each.host:
                self.seen = with_host(self.seen, each.host, state="available", consumer="", consumer_kind="")
        kept = {name: each for name, each in self.seen.hosts.items() if not each.deletion}
        specs = {name: each for name, each in self.seen.specs.items() if name in kept}
        self.seen = replace(self.seen, hosts=kept, specs=specs)

    def _take(self) -> None:
        for host in [host for host in self.seen.hosts.values() if host.state in ("", "registering")]:
            self.seen = with_host(self.seen, host.name, state="available" if host.state else "registering")
        for each in [each for each in workers(self.seen.machines) if not each.host]:
            free = [one.name for one in self.seen.hosts.values() if one.state == "available" and not one.consumer]
            if free:
                self._change_machine(each.name, host=free[-1], node=free[-1], phase="Running")
                changes = {"state": "provisioned", "consumer": each.name, "consumer_kind": "Machine"}
                self.seen = with_host(self.seen, free[-1], **changes)
                self.seen = replace(self.seen, nodes={**self.seen.nodes, free[-1]: Node(free[-1], "True")})

    def _change_machine(self, name: str, **changes: Any) -> None:
        changed = replace(self.seen.machines[name], **changes)
        self.seen = replace(self.seen, machines={**self.seen.machines, name: changed})

    # What is asked of it

    def register(self, step: Step) -> None:
        given = self.wanted.hosts[step.target]
        item = manifests.bare_metal_host(given, self.wanted.lab, held=True)
        made = replace(BareMetalHost.from_dict(item), uid=f"uid-{step.target}-new")
        secret = manifests.bmc_secret_name(step.target)
        self.seen = replace(
            self.seen,
            hosts={**self.seen.hosts, step.target: made},
            specs={**self.seen.specs, step.target: item["spec"]},
            logins={**self.seen.logins, secret: manifests.login_data(given)},
            labelled=sorted({*self.seen.labelled, secret}),
        )

    def release(self, step: Step) -> None:
        self.seen = with_host(self.seen, step.target, consumer="", consumer_kind="")

    def scale(self, step: Step) -> None:
        [machine_set] = self.seen.machine_sets
        assert machine_set.name == step.target
        self.seen = replace(
            self.seen, machine_sets=[replace(machine_set, replicas=int(step.remark.rpartition(" ")[2]))]
        )

    def cordon(self, step: Step) -> None:
        nodes = {**self.seen.nodes, step.target: replace(self.seen.nodes[step.target], unschedulable=True)}
        self.seen = replace(self.seen, nodes=nodes)

    def drain(self, step: Step) -> None:
        assert self.seen.nodes[step.target].unschedulable

    def mark(self, step: Step) -> None:
        self._change_machine(step.target, annotations={states.mark_of(RELEASE): self.wanted.lab})

    def unmark(self, step: Step) -> None:
        self._change_machine(step.target, annotations={})

    def remove(self, step: Step) -> None:
        machine = self.seen.machine_of(step.target)
        assert machine is None or machine.deletion
        labelled = sorted({*self.seen.labelled, manifests.bmc_secret_name(step.target)})
        self.seen = replace(with_host(self.seen, step.target, deletion=True), labelled=labelled)

    def switch_off(self, step: Step) -> None:
        self.seen = with_host(self.seen, step.target, online=False)

    def forget(self, step: Step) -> None:
        assert not self.seen.hosts[step.target].powered_on
        changes = {"operational_status": "detached", "annotations": {DETACHED: "nometal.ipi"}}
        self.seen = with_host(self.seen, step.target, **changes)

    def unguard(self, _step: Step) -> None:
        self._change_etcd(overrides={etcd.UNGUARDED: True}, unguarded_by=self.wanted.lab)

    def guard(self, _step: Step) -> None:
        self._change_etcd(overrides={}, unguarded_by="")

    def remove_member(self, step: Step) -> None:
        assert self.seen.etcd
        assert not self.seen.nodes[step.target].is_ready
        self._change_etcd(members=[each for each in self.seen.etcd.members if each.name != step.target])

    def delete_machine(self, step: Step) -> None:
        assert self.seen.etcd
        assert step.remark not in [each.name for each in self.seen.etcd.members]
        self._change_machine(step.target, deletion=True)

    def delete_etcd_secrets(self, step: Step) -> None:
        assert self.seen.etcd
        secrets = {node: names for node, names in self.seen.etcd.secrets.items() if names[0] not in step.target}
        self._change_etcd(secrets=secrets)

    def make_machine(self, step: Step) -> None:
        other = control_plane.pattern(step.target, self.seen)
        made = replace(other, name=step.remark, host=step.target, node="", phase="Provisioning")
        self.seen = replace(self.seen, machines={**self.seen.machines, made.name: made})
        self.seen = with_host(self.seen, step.target, consumer=made.name, consumer_kind="Machine")

    def _change_etcd(self, **changes: Any) -> None:
        assert self.seen.etcd
        self.seen = replace(self.seen, etcd=replace(self.seen.etcd, **changes))

    def delete_secrets(self, step: Step) -> None:
        logins = {name: each for name, each in self.seen.logins.items() if name not in step.target}
        labelled = [name for name in self.seen.labelled if name not in step.target]
        self.seen = replace(self.seen, logins=logins, labelled=labelled)


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()
