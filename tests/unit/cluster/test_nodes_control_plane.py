"""A node of the control plane that is replaced: its order, what is refused, and going on after an interruption."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.cluster import nodes_samples as samples
from unit.cluster.nodes_samples import (
    RELEASE,
    Controllers,
    cluster,
    wanted,
    with_etcd,
    with_host,
    with_machine,
    with_node,
)

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import DETACHED
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import control_plane, etcd, manifests, plan
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

NAME = "control-plane-1"
ONE = replace(wanted(samples.lab(1)), replaced={NAME: f"uid-{NAME}"})
SPEC = {"providerSpec": {"value": {"userData": {"name": "master-user-data-managed"}}}}
OF_SECRETS = f"delete etcd secrets etcd-peer-{NAME}, etcd-serving-{NAME}, etcd-serving-metrics-{NAME}"
LEAVES = [
    *(f"cordon {NAME}", f"drain {NAME}", f"mark ha-x7k2p-master-1 ({NAME})", f"switch off {NAME}"),
    *(f"remove member {NAME}", "unguard etcd", f"forget {NAME}"),
    *(f"delete machine ha-x7k2p-master-1 ({NAME})", f"remove {NAME}", OF_SECRETS),
]
COMES = [f"register {NAME}", f"make machine {NAME} (ha-x7k2p-master-3)", "guard etcd"]


def installed(*ill: str, given: Any = ONE) -> Seen:
    """Whose Machines have the names that the installer gives them."""
    seen = cluster(given)
    machines = {}
    for machine in seen.machines.values():
        name = machine.name.replace("control-plane", "master")
        machines[name] = replace(machine, name=name, spec=SPEC if machine.role == "master" else {})
    consumers = {machine.host: name for name, machine in machines.items()}
    hosts = {name: replace(host, consumer=consumers[name]) for name, host in seen.hosts.items()}
    return with_etcd(replace(seen, machines=machines, hosts=hosts), *ill)


def steps(made: plan.Plan) -> list[str]:
    return list(map(str, made.steps))


def refuse(seen: Seen, given: Any = ONE) -> None:
    control_plane.refuse(given, seen, plan.leaving(given, seen))


def test_a_node_leaves_and_comes_in_this_order() -> None:
    controllers = Controllers(ONE, installed())
    refuse(controllers.seen)
    assert plan.changes(ONE, controllers.seen) == ([f"remove {NAME}"], [f"register {NAME}"])
    controllers.run("shrink")
    assert controllers.steps == LEAVES
    assert control_plane.replaced(ONE) == [NAME]
    controllers.run("grow")
    assert controllers.steps[len(LEAVES) :] == COMES
    assert controllers.seen.etcd
    assert {member.name for member in controllers.seen.etcd.members} == {f"control-plane-{n}" for n in range(3)}
    assert controllers.seen.etcd.is_guarded
    for part in ("shrink", "grow"):
        assert controllers.run(part).is_done
    assert len(controllers.steps) == len(LEAVES) + len(COMES)
    assert plan.changes(ONE, controllers.seen) == ([], [])


@pytest.mark.parametrize("until", LEAVES)
def test_leaving_goes_on_after_an_interruption(until: str) -> None:
    controllers = Controllers(ONE, installed())
    controllers.run("shrink", until=until)
    refuse(controllers.seen)
    controllers.run("shrink")
    assert NAME not in {*controllers.seen.hosts, *controllers.seen.nodes}
    controllers.run("grow")
    assert sorted({*controllers.steps}) == sorted([*LEAVES, *COMES])


@pytest.mark.parametrize("until", COMES)
def test_coming_goes_on_after_an_interruption(until: str) -> None:
    controllers = Controllers(ONE, installed())
    controllers.run("shrink")
    controllers.run("grow", until=until)
    for part in ("shrink", "grow"):
        controllers.run(part)
    assert controllers.steps == [*LEAVES, *COMES]


def test_a_host_whose_machine_was_not_made_so_far_gets_the_same() -> None:
    seen = with_host(installed(), NAME, uid="new", consumer="ha-x7k2p-master-3", state="available")
    seen = replace(seen, machines={name: each for name, each in seen.machines.items() if each.host != NAME})
    assert steps(plan.grow(ONE, seen)) == [f"make machine {NAME} (ha-x7k2p-master-3)"]


def test_a_node_that_is_dead_is_neither_asked_for_its_power_nor_cleaned() -> None:
    """What metal3 has seen last of it may be old."""
    dead = {"powered_on": True, "error_type": "power management error", "error_message": "404"}
    controllers = Controllers(ONE, with_host(with_node(installed(NAME), NAME, ready="Unknown"), NAME, **dead))
    refuse(controllers.seen)
    made = plan.shrink(ONE, controllers.seen, RELEASE)
    assert steps(made) == LEAVES[:3]
    controllers.run("shrink")
    assert controllers.steps == LEAVES


def test_it_is_not_removed_from_etcd_before_it_is_off() -> None:
    marked = with_machine(installed(), "master-1", annotations={"machine.openshift.io/delete-machine": "ha"})
    for seen in (
        with_host(marked, NAME, online=False),
        with_node(with_host(marked, NAME, online=False), NAME, ready="Unknown"),
        with_host(marked, NAME, online=False, powered_on=False),
    ):
        made = plan.shrink(ONE, seen, RELEASE)
        assert steps(made) == []
        assert [(waiting.who, waiting.state) for waiting in made.waits] == [(NAME, "is switched off")]


@pytest.mark.parametrize(
    ("ill", "said"),
    [
        (
            ["control-plane-0"],
            r"Of its 3 members, 2 must be healthy besides the one that is replaced; not healthy: control-plane-0\.",
        ),
        (["control-plane-0", NAME], r"not healthy: control-plane-0\."),
        (["control-plane-0", "control-plane-2"], r"not healthy: control-plane-0, control-plane-2\."),
    ],
)
def test_without_a_quorum_of_the_others_nothing_is_begun(ill: list[str], said: str) -> None:
    with pytest.raises(OperatorError, match=f"{NAME} cannot be replaced: etcd would lose its quorum.*{said}"):
        refuse(installed(*ill))


@pytest.mark.parametrize("ill", [[], [NAME]])
def test_with_two_other_healthy_members_it_may_begin(ill: list[str]) -> None:
    refuse(installed(*ill))


def test_of_five_one_other_may_be_ill() -> None:
    five = replace(
        wanted(samples.lab_of("nodes: {control_plane: {count: 5}, workers: {count: 2}}")), replaced=ONE.replaced
    )
    refuse(installed("control-plane-4", given=five), five)
    with pytest.raises(OperatorError, match="Of its 5 members, 3 must be healthy besides"):
        refuse(installed("control-plane-3", "control-plane-4", given=five), five)


@pytest.mark.parametrize(("number", "said"), [(1, "1 node"), (2, "2 nodes")])
def test_a_small_control_plane_is_not_to_be_repaired(number: int, said: str) -> None:
    seen = installed()
    members = [etcd.Member(2, NAME), etcd.Member(1, "control-plane-0")][:number]
    with pytest.raises(OperatorError, match=rf"its quorum: a control plane of {said} cannot spare one\. Nothing was"):
        refuse(with_etcd(seen, members=members))


def test_a_member_that_fails_meanwhile_holds_it_up() -> None:
    seen = with_machine(
        installed("control-plane-0"), "master-1", annotations={"machine.openshift.io/delete-machine": "ha"}
    )
    made = plan.shrink(ONE, seen, RELEASE)
    [waiting] = made.waits
    assert steps(made) == []
    assert "etcd would lose its quorum" in waiting.error


def test_one_at_a_time() -> None:
    two = replace(ONE, replaced={NAME: f"uid-{NAME}", "control-plane-2": "uid-control-plane-2"})
    with pytest.raises(OperatorError, match="control-plane-1 and control-plane-2 cannot be replaced at the same time"):
        refuse(installed(), two)


def test_the_guard_is_off_although_the_operator_has_removed_the_member_by_itself() -> None:
    marked = with_machine(installed(), "master-1", annotations={"machine.openshift.io/delete-machine": "ha"})
    off = with_node(with_host(marked, NAME, online=False, powered_on=False), NAME, ready="Unknown")
    seen = with_etcd(off, members=[etcd.Member(1, "control-plane-0"), etcd.Member(3, "control-plane-2")])
    assert steps(plan.shrink(ONE, seen, RELEASE)) == ["unguard etcd"]


def test_what_is_left_of_a_host_that_somebody_has_removed() -> None:
    seen = installed(NAME)
    hosts = {name: host for name, host in seen.hosts.items() if name != NAME}
    seen = replace(with_node(seen, NAME, ready="Unknown"), hosts=hosts)
    machine = "delete machine ha-x7k2p-master-1 (control-plane-1)"
    assert steps(plan.shrink(ONE, seen, RELEASE)) == [machine, f"remove member {NAME}", "unguard etcd"]
    machines = {name: each for name, each in seen.machines.items() if each.host != NAME}
    nodes = {name: each for name, each in seen.nodes.items() if name != NAME}
    gone = replace(seen, machines=machines, nodes=nodes)
    assert steps(plan.shrink(ONE, gone, RELEASE)) == [f"remove member {NAME}", "unguard etcd", OF_SECRETS]


def without_host(seen: Seen) -> Seen:
    return replace(seen, hosts={name: host for name, host in seen.hosts.items() if name != NAME})


@pytest.mark.parametrize("has_machine", [True, False])
def test_without_its_host_it_is_replaced_only_when_it_is_off(*, has_machine: bool) -> None:
    """Nothing switches it off."""
    seen = without_host(installed())
    if not has_machine:
        seen = replace(seen, machines={name: each for name, each in seen.machines.items() if each.host != NAME})
    with pytest.raises(OperatorError, match=r"no BareMetalHost of it.* its Node is ready\. Switch its VM off"):
        refuse(seen)
    made = plan.shrink(ONE, seen, RELEASE)
    assert f"remove member {NAME}" not in steps(made)
    assert (NAME, "is switched off") in [(waiting.who, waiting.state) for waiting in made.waits]
    silent = with_node(seen, NAME, ready="Unknown")
    refuse(silent)
    assert control_plane.backs_up(ONE, silent, RELEASE) == "control-plane-0"


def test_without_its_host_it_is_not_replaced_without_a_quorum_of_the_others() -> None:
    seen = with_node(without_host(installed("control-plane-2")), NAME, ready="Unknown")
    with pytest.raises(OperatorError, match=f"{NAME} cannot be replaced: etcd would lose its quorum"):
        refuse(seen)
    made = plan.shrink(ONE, seen, RELEASE)
    assert steps(made) == []
    assert "etcd would lose its quorum" in made.waits[0].error


def test_what_is_left_when_its_member_is_gone_is_removed_although_another_is_ill() -> None:
    seen = with_node(without_host(installed("control-plane-2")), NAME, ready="Unknown")
    members = [member for member in seen.etcd.members if member.name != NAME] if seen.etcd else []
    seen = with_etcd(seen, members=members)
    refuse(seen)
    assert control_plane.backs_up(ONE, seen, RELEASE) == ""


def test_a_vm_that_is_gone_is_off_although_metal3_has_seen_it_on() -> None:
    marked = with_machine(installed(NAME), "master-1", annotations={"machine.openshift.io/delete-machine": "ha"})
    seen = with_node(with_host(marked, NAME, online=False, powered_on=True), NAME, ready="Unknown")
    assert control_plane.of_unknown_power(ONE, seen) == [NAME]
    assert steps(plan.shrink(ONE, seen, RELEASE)) == []
    assert steps(plan.shrink(ONE, replace(seen, off=[NAME]), RELEASE)) == LEAVES[4:6]
    assert control_plane.of_unknown_power(ONE, with_host(seen, NAME, powered_on=False)) == []


@pytest.mark.parametrize("change", [{"online": False}, {"deletion": True}])
def test_an_error_of_metal3_does_not_say_that_a_node_is_off(change: dict[str, Any]) -> None:
    """Its kubelet hangs, and the password of its BMC is another one since."""
    marked = with_machine(installed(), "master-1", annotations={"machine.openshift.io/delete-machine": "ha"})
    ailing = {"powered_on": True, "error_type": "registration error", "error_message": "401", **change}
    seen = with_node(with_host(marked, NAME, **ailing), NAME, ready="Unknown")
    assert control_plane.of_unknown_power(ONE, seen) == [NAME]
    made = plan.shrink(ONE, seen, RELEASE)
    assert (steps(made), [waiting.state for waiting in made.waits]) == ([], ["is switched off"])
    assert steps(plan.shrink(ONE, replace(seen, off=[NAME]), RELEASE)) == LEAVES[4:6]


def test_without_another_machine_there_is_nothing_to_make_one_like() -> None:
    seen = installed()
    machines = {name: each for name, each in seen.machines.items() if each.host in (NAME, "worker-0")}
    with pytest.raises(OperatorError, match="no Machine of another node of its control plane"):
        refuse(replace(seen, machines=machines))


def test_a_guard_that_others_have_switched_off_stays_so() -> None:
    controllers = Controllers(ONE, with_etcd(installed(), overrides={etcd.UNGUARDED: True}))
    controllers.run("shrink")
    controllers.run("grow")
    assert controllers.steps == [step for step in (*LEAVES, *COMES) if "guard etcd" not in step]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"members": [etcd.Member(1, "control-plane-0")]}, f"waits for the member of {NAME}: revision 8"),
        ({}, "revision 8"),
    ],
)
def test_the_rollout_of_etcd_is_waited_for(change: dict[str, Any], said: str) -> None:
    seen = with_etcd(with_host(installed(), NAME, uid="new"), rollout="revision 8", **change)
    made = plan.grow(ONE, seen)
    assert [(waiting.who, waiting.state) for waiting in made.waits] == [("etcd", said)]


def test_a_backup_is_taken_by_another_node_before_it_begins() -> None:
    controllers = Controllers(ONE, installed())
    assert control_plane.backs_up(ONE, controllers.seen, RELEASE) == "control-plane-0"
    controllers.run("shrink", until="mark")
    assert control_plane.backs_up(ONE, controllers.seen, RELEASE) == ""


def test_a_backup_is_taken_although_its_machine_is_gone() -> None:
    seen = installed()
    machines = {name: each for name, each in seen.machines.items() if each.host != NAME}
    assert control_plane.backs_up(ONE, replace(seen, machines=machines), RELEASE) == "control-plane-0"
    leaves = with_machine(seen, "master-1", deletion=True)
    assert control_plane.backs_up(ONE, leaves, RELEASE) == "control-plane-0"
    assert control_plane.backs_up(ONE, with_host(seen, NAME, uid="new"), RELEASE) == ""


def test_the_new_machine_is_like_another_one() -> None:
    other = replace(
        samples.machine("master-0"), spec={**SPEC, "providerID": "x", "lifecycleHooks": {}}, labels={"role": "master"}
    )
    made = manifests.machine("ha-x7k2p-master-3", NAME, other.labels, control_plane.spec_like(other))
    assert (made["spec"], made["metadata"]["labels"]) == (SPEC, {"role": "master"})
    assert made["metadata"]["annotations"] == {"metal3.io/BareMetalHost": f"openshift-machine-api/{NAME}"}


def test_labels_of_the_installer_are_given_to_the_new_host() -> None:
    labels = {"installer.openshift.io/role": "control-plane", "of": "others"}
    seen = with_host(installed(), "control-plane-0", labels=labels)
    assert control_plane.labels_like(NAME, seen) == {"installer.openshift.io/role": "control-plane"}


def test_whose_member_it_is_although_its_machine_is_gone() -> None:
    assert etcd.is_of(NAME, "", f"{NAME}.ha.lab.example.test")
    assert etcd.is_of(NAME, "by-another-name", "by-another-name")
    assert not etcd.is_of(NAME, "", "control-plane-10")
    assert not etcd.is_of(NAME, "", "")


def test_etcd_is_not_asked_while_a_host_comes() -> None:
    assert control_plane.needs_etcd(ONE, installed())
    new = with_host(installed(), NAME, uid="new")
    assert control_plane.needs_etcd(ONE, new)
    assert not control_plane.needs_etcd(ONE, with_node(new, NAME, ready="False"))


def test_a_host_that_is_to_leave_and_is_detached_already_is_removed() -> None:
    marked = with_machine(installed(), "master-1", annotations={"machine.openshift.io/delete-machine": "ha"})
    off = with_node(with_host(marked, NAME, online=False, powered_on=False), NAME, ready="Unknown")
    members = [etcd.Member(1, "control-plane-0"), etcd.Member(3, "control-plane-2")]
    gone = with_etcd(off, members=members, overrides={etcd.UNGUARDED: True})
    waits = with_host(gone, NAME, annotations={DETACHED: ""})
    assert steps(plan.shrink(ONE, waits, RELEASE)) == []
    detached = with_host(waits, NAME, operational_status="detached")
    assert steps(plan.shrink(ONE, detached, RELEASE)) == LEAVES[-3:-1]
