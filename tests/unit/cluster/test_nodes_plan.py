"""What is to be done to the nodes of a cluster, from what it has and what the lab is."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
import yaml
from unit.cluster import nodes_samples as samples
from unit.cluster.nodes_samples import CA, RELEASE, SET, Controllers, cluster, wanted, with_host, with_machine, without

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import DETACHED, MachineSet, Node
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import manifests, plan, states
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import Wanted, without_login
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

TWO, FOUR = wanted(samples.lab(2)), wanted(samples.lab(4))
WITH_SPARE = wanted(samples.lab(2, "{count: 1, register: true}"))


def steps(made: plan.Plan) -> list[str]:
    return list(map(str, made.steps))


def waits(made: plan.Plan) -> dict[str, str]:
    return {waiting.who: waiting.state for waiting in made.waits}


# Nothing to do


@pytest.mark.parametrize("given", [TWO, FOUR, WITH_SPARE, wanted(samples.lab(0))])
def test_a_cluster_that_is_as_the_lab(given: Wanted) -> None:
    seen = cluster(given)
    assert plan.grow(given, seen).is_done
    assert plan.shrink(given, seen, RELEASE).is_done
    assert plan.changes(given, seen) == ([], [])
    assert plan.warnings(given, seen) == []


# What comes


def test_growing() -> None:
    seen = without(cluster(FOUR), "worker-2", "worker-3")
    assert plan.changes(FOUR, seen) == ([], ["register worker-2", "register worker-3", f"scale {SET} (2 -> 4)"])
    controllers = Controllers(FOUR, seen)
    controllers.run("grow")
    assert controllers.steps == [
        *("register worker-2", "register worker-3"),
        *("release worker-2", "release worker-3"),
        f"scale {SET} (2 -> 4)",
    ]
    assert {machine.host for machine in samples.workers(controllers.seen.machines)} == {*FOUR.workers}
    assert controllers.seen.nodes.keys() == FOUR.hosts.keys()


@pytest.mark.parametrize("until", ["register worker-2", "register worker-3", "release worker-2", "release", "scale"])
def test_growing_goes_on_after_an_interruption(until: str) -> None:
    controllers = Controllers(FOUR, without(cluster(FOUR), "worker-2", "worker-3"))
    controllers.run("grow", until=until)
    controllers.run("grow")
    assert plan.grow(FOUR, controllers.seen).is_done
    assert len(controllers.steps) == len({*controllers.steps}) == 5


def test_new_hosts_are_held_until_all_are_available() -> None:
    controllers = Controllers(FOUR, without(cluster(FOUR), "worker-2", "worker-3"))
    controllers.run("grow", until="register worker-3")
    seen = with_host(controllers.seen, "worker-2", state="available")
    made = plan.grow(FOUR, with_host(seen, "worker-3", state="inspecting"))
    assert (steps(made), waits(made)) == ([], {"worker-2": "available", "worker-3": "inspecting"})
    failed = with_host(seen, "worker-3", state="available", error_type="inspection error", error_message="timeout")
    [_first, second] = plan.grow(FOUR, failed).waits
    assert second.error == "inspection error: timeout"


def test_a_spare_is_registered_and_stays_held() -> None:
    controllers = Controllers(WITH_SPARE, without(cluster(WITH_SPARE), "spare-0"))
    controllers.run("grow")
    assert controllers.steps == ["register spare-0"]
    assert controllers.seen.hosts["spare-0"].consumer_kind == manifests.HOLDER


def test_a_spare_that_was_given_to_the_cluster_by_hand_stays() -> None:
    not_registered = wanted(samples.lab(2, "{count: 1}"))
    seen = cluster(WITH_SPARE)
    assert plan.changes(not_registered, seen)[0] == ["remove spare-0"]  # registered by an earlier lab_spec
    for consumer, kind in (("", ""), ("ha-x7k2p-worker-0-new1", "Machine")):
        by_hand = with_host(seen, "spare-0", consumer=consumer, consumer_kind=kind)
        assert plan.changes(not_registered, by_hand) == ([], [])
        assert [host.name for host in plan.leaving(TWO, by_hand)] == ["spare-0"]  # the lab has it no longer


def in_use(seen: Seen) -> Seen:
    """Given by hand, and taken by a Machine of the workers' set."""
    machine = samples.machine("spare-0", role="worker", machine_set=SET)
    seen = with_host(seen, "spare-0", state="provisioned", consumer=machine.name, consumer_kind="Machine")
    nodes = {**seen.nodes, "spare-0": Node("spare-0", "True")}
    return replace(seen, machines={**seen.machines, machine.name: machine}, nodes=nodes)


@pytest.mark.parametrize("register", ["true", "false"])
def test_a_spare_that_is_in_use_stays(register: str) -> None:
    given = wanted(samples.lab(2, f"{{count: 1, register: {register}}}"))
    seen = in_use(cluster(WITH_SPARE, replicas=3))
    assert plan.changes(given, seen) == ([], [])
    assert plan.grow(given, seen).is_done


def test_a_spare_that_is_in_use_is_drained_before_it_leaves() -> None:
    made = plan.shrink(TWO, in_use(cluster(WITH_SPARE, replicas=3)), RELEASE)
    assert steps(made) == ["cordon spare-0", "drain spare-0", "mark ha-x7k2p-spare-0 (spare-0)"]


def test_a_set_is_not_made_smaller_than_its_machines_with_hosts() -> None:
    """None of them is marked: the set would choose one."""
    machine = replace(samples.machine("worker-0"), name="ha-x7k2p-worker-0-again")
    seen = cluster(TWO, replicas=3)
    assert plan.grow(TWO, replace(seen, machines={**seen.machines, machine.name: machine})).is_done


def test_no_machine_takes_a_spare() -> None:
    grown = wanted(samples.lab(3, "{count: 1, register: true}"))
    controllers = Controllers(grown, without(cluster(grown), "spare-0", "worker-2"))
    controllers.run("grow")
    assert {machine.host for machine in samples.workers(controllers.seen.machines)} == {*grown.workers}


def test_a_spare_becomes_a_worker_by_the_counts() -> None:
    controllers = Controllers(wanted(samples.lab(3)), cluster(WITH_SPARE))
    controllers.run("shrink")
    controllers.run("grow")
    assert controllers.steps[:2] == ["remove spare-0", "delete secrets spare-0-bmc-secret"]
    assert controllers.seen.hosts.keys() == wanted(samples.lab(3)).hosts.keys()


def test_more_machines_than_workers_are_too_many() -> None:
    assert steps(plan.grow(TWO, cluster(TWO, replicas=3))) == [f"scale {SET} (3 -> 2)"]


def test_machines_on_hosts_of_others_count_besides() -> None:
    seen = with_host(cluster(FOUR), "worker-3", bmc_address="ipmi://203.0.113.7")
    three = wanted(samples.lab(3))
    assert plan.leaving(three, seen) == []
    assert plan.grow(three, seen).is_done


def test_machines_of_other_sets_count_too() -> None:
    seen = with_machine(cluster(TWO, replicas=1), "worker-1", machine_set="of-others")
    assert plan.grow(TWO, seen).is_done


def test_without_a_set_of_workers() -> None:
    with pytest.raises(OperatorError, match="no MachineSet of workers"):
        plan.grow(TWO, replace(cluster(TWO), machine_sets=[]))
    several = [MachineSet("a", role="worker"), MachineSet("b", role="worker")]
    with pytest.raises(OperatorError, match="there is a, b"):
        plan.grow(TWO, replace(cluster(TWO), machine_sets=several))
    none = wanted(samples.lab(0))
    assert plan.grow(none, replace(cluster(none), machine_sets=[])).is_done


@pytest.mark.parametrize(
    ("host", "machine", "said"),
    [
        ({"state": "provisioning"}, {"phase": "Provisioning"}, "provisioning"),
        ({}, {"phase": "Provisioned", "node": ""}, "provisioned, waits for its Node (Provisioned)"),
        ({"state": ""}, {}, "unknown to metal3 so far"),
    ],
)
def test_what_is_under_way_is_waited_for(host: dict[str, Any], machine: dict[str, Any], said: str) -> None:
    seen = with_machine(with_host(cluster(TWO), "worker-1", **host), "worker-1", **machine)
    assert waits(plan.grow(TWO, seen)) == {"worker-1": said}


def test_a_machine_that_waits_for_a_host_says_so() -> None:
    seen = with_machine(with_host(cluster(TWO), "worker-1", state="provisioning"), "worker-1", error="No host")
    assert [waiting.error for waiting in plan.grow(TWO, seen).waits] == ["No host"]


def test_a_host_that_is_still_being_removed_is_not_registered() -> None:
    made = plan.grow(TWO, with_host(cluster(TWO), "worker-1", deletion=True))
    assert (steps(made), waits(made)) == ([], {"worker-1": "is being removed"})


# What has changed


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"bmc": {"port": 8100}}, plan.BMC),
        ({"bmc": {"tls": False}}, plan.BMC),
        ({"nodes": {"overrides": {"worker-1": {"root_device_hints": {"hctl": "0:0:0:0"}}}}}, plan.HINTS),
    ],
)
def test_what_has_changed_of_a_host_reaches_the_cluster(change: dict[str, Any], what: str) -> None:
    spec: dict[str, Any] = {"name": "ha", **change}
    spec["nodes"] = {"workers": {"count": 2}, **spec.get("nodes", {})}
    changed = wanted(samples.lab_of(yaml.safe_dump(spec)))
    made = plan.grow(changed, cluster(TWO))
    assert f"update worker-1 ({what})" in steps(made)


def test_a_changed_password_reaches_the_cluster() -> None:
    seen = cluster(TWO)
    logins = {**seen.logins, "control-plane-0-bmc-secret": {"username": "", "password": ""}}
    assert steps(plan.grow(TWO, replace(seen, logins=logins))) == [f"update control-plane-0 ({plan.LOGIN})"]


def test_a_login_that_is_not_made_so_far_changes_nothing() -> None:
    hosts = {name: replace(host, username="", password="") for name, host in TWO.hosts.items()}
    assert plan.changes(replace(TWO, hosts=hosts), cluster(TWO)) == ([], [])


def test_a_host_that_an_interrupted_run_has_detached_is_attached() -> None:
    seen = with_host(cluster(TWO), "worker-0", annotations={DETACHED: "nometal.ipi"})
    assert steps(plan.grow(TWO, seen)) == ["update worker-0 (attachment)"]
    assert plan.grow(TWO, with_host(seen, "worker-0", annotations={DETACHED: "somebody"})).is_done


def test_the_ca_reaches_clusters_that_can_verify() -> None:
    new, old = wanted(ca=CA, release=(4, 21)), wanted(ca=CA, release=(4, 20))
    assert manifests.bmc(new.hosts["worker-0"])["disableCertificateVerification"] is False
    assert manifests.bmc(old.hosts["worker-0"])["disableCertificateVerification"] is True
    assert steps(plan.grow(new, replace(cluster(new), certificate="old"))) == ["trust bmc-verify-ca"]
    assert plan.grow(old, cluster(old)).is_done


# What leaves


def test_shrinking_takes_the_highest_numbers() -> None:
    controllers = Controllers(TWO, cluster(FOUR))
    assert plan.changes(TWO, controllers.seen)[0] == ["remove worker-2", "remove worker-3"]
    controllers.run("shrink")
    assert controllers.steps == [
        *("cordon worker-2", "cordon worker-3"),
        *("drain worker-2", "mark ha-x7k2p-worker-2 (worker-2)"),
        *("drain worker-3", "mark ha-x7k2p-worker-3 (worker-3)"),
        f"scale {SET} (4 -> 2)",
        *("remove worker-2", "remove worker-3"),
        "delete secrets worker-2-bmc-secret, worker-3-bmc-secret",
    ]
    assert {machine.host for machine in samples.workers(controllers.seen.machines)} == {*TWO.workers}
    assert plan.grow(TWO, controllers.seen).is_done


@pytest.mark.parametrize(
    "until",
    ["cordon worker-2", "drain worker-2", "mark ha-x7k2p-worker-2", "cordon worker-3", "mark", "scale", "remove"],
)
def test_shrinking_goes_on_after_an_interruption(until: str) -> None:
    controllers = Controllers(TWO, cluster(FOUR))
    controllers.run("shrink", until=until)
    controllers.run("shrink")
    assert {machine.host for machine in samples.workers(controllers.seen.machines)} == {*TWO.workers}
    assert controllers.seen.hosts.keys() == TWO.hosts.keys()
    assert plan.changes(TWO, controllers.seen) == ([], [])


def test_the_number_of_lab_spec_leaves() -> None:
    three = wanted(samples.lab(3, overrides="{worker-1: {remove: true}}"))
    assert three.workers == ["worker-0", "worker-2", "worker-3"]
    controllers = Controllers(three, cluster(FOUR))
    controllers.run("shrink")
    assert {machine.host for machine in samples.workers(controllers.seen.machines)} == {*three.workers}


def test_machines_that_wait_for_a_host_go_with_those_that_leave() -> None:
    controllers = Controllers(TWO, cluster(FOUR, replicas=5))
    controllers.reconcile()
    controllers.run("shrink")
    assert f"scale {SET} (5 -> 2)" in controllers.steps
    assert {machine.host for machine in samples.workers(controllers.seen.machines)} == {*TWO.workers}


def test_a_failed_machine_that_stays_would_leave_instead() -> None:
    """That is said before anything is drained."""
    seen = with_machine(cluster(FOUR), "worker-0", error="can't find created instance")
    with pytest.raises(OperatorError, match="Machine ha-x7k2p-worker-0 of worker-0 has failed"):
        plan.shrink(TWO, seen, RELEASE)


@pytest.mark.parametrize("mark", states.MARKS)
def test_a_mark_of_an_earlier_lab_spec_is_removed(mark: str) -> None:
    """It was to have two workers, a drain was blocked, and now it is to have three."""
    three = wanted(samples.lab(3))
    controllers = Controllers(three, with_machine(cluster(FOUR), "worker-2", annotations={mark: "ha"}))
    unmark = "unmark ha-x7k2p-worker-2 (worker-2)"
    assert plan.changes(three, controllers.seen)[0] == ["remove worker-3", unmark]
    controllers.run("shrink")
    assert controllers.steps.index(unmark) < controllers.steps.index(f"scale {SET} (4 -> 3)")
    assert {machine.host for machine in samples.workers(controllers.seen.machines)} == {*three.workers}


def test_a_mark_is_removed_when_nothing_leaves_any_more() -> None:
    seen = with_machine(cluster(FOUR), "worker-2", annotations={states.mark_of(RELEASE): "ha"})
    assert plan.changes(FOUR, seen)[0] == steps(plan.shrink(FOUR, seen, RELEASE))
    assert steps(plan.shrink(FOUR, seen, RELEASE)) == ["unmark ha-x7k2p-worker-2 (worker-2)"]


def test_nothing_leaves_while_others_have_marked_a_machine_that_stays() -> None:
    seen = with_machine(cluster(FOUR), "worker-0", annotations={states.MARKS[0]: "yes"})
    assert plan.shrink(FOUR, seen, RELEASE).is_done
    with pytest.raises(OperatorError, match="Machine ha-x7k2p-worker-0 of worker-0 is marked to leave, and not by"):
        plan.shrink(wanted(samples.lab(3)), seen, RELEASE)


def test_a_machine_that_others_have_marked_is_drained_before_it_leaves() -> None:
    seen = with_machine(cluster(FOUR), "worker-3", annotations={states.mark_of(RELEASE): "yes"})
    assert steps(plan.shrink(wanted(samples.lab(3)), seen, RELEASE))[:2] == ["cordon worker-3", "drain worker-3"]


def test_a_node_that_is_gone_is_not_drained() -> None:
    seen = replace(cluster(FOUR), nodes={})
    assert steps(plan.shrink(wanted(samples.lab(3)), seen, RELEASE)) == ["mark ha-x7k2p-worker-3 (worker-3)"]


def test_a_machine_without_a_set_is_deleted() -> None:
    seen = with_machine(cluster(FOUR), "worker-3", machine_set="", annotations={states.mark_of(RELEASE): "ha"})
    assert steps(plan.shrink(wanted(samples.lab(3)), seen, RELEASE)) == ["delete machine ha-x7k2p-worker-3 (worker-3)"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"deletion": True}, "is being removed"),
        ({"consumer": "gone", "state": "deprovisioning"}, "leaves the cluster: deprovisioning"),
        ({"consumer": "", "consumer_kind": "", "state": "deprovisioning"}, "deprovisioning"),
    ],
)
def test_a_host_is_removed_when_it_is_deprovisioned(change: dict[str, Any], said: str) -> None:
    seen = with_host(without(cluster(FOUR), "none"), "worker-3", **change)
    machines = {name: each for name, each in seen.machines.items() if each.host != "worker-3"}
    made = plan.shrink(wanted(samples.lab(3)), replace(seen, machines=machines), RELEASE)
    assert (steps(made), waits(made)) == ([], {"worker-3": said})


def test_whose_annotation_chooses_a_machine() -> None:
    assert states.mark_of((4, 11)) == "machine.openshift.io/cluster-api-delete-machine"
    assert states.mark_of((4, 12)) == states.mark_of((5, 0)) == "machine.openshift.io/delete-machine"


def test_hosts_of_others_stay() -> None:
    for address in ("ipmi://203.0.113.7", "redfish-virtualmedia+https://[2001:db8::1]:8000/redfish/v1/Systems/1", ""):
        seen = with_host(cluster(FOUR), "worker-3", bmc_address=address)
        assert plan.leaving(wanted(samples.lab(3)), seen) == []


def test_whose_port_or_protocol_has_changed_is_still_of_the_lab() -> None:
    three = wanted(samples.lab(3))
    for address in (f"ipmi://{three.bmc_host}", f"redfish+http://{three.bmc_host}:9/redfish/v1/Systems/1"):
        seen = with_host(cluster(FOUR), "worker-3", bmc_address=address)
        assert [host.name for host in plan.leaving(three, seen)] == ["worker-3"]


def test_no_count_removes_a_node_of_the_control_plane() -> None:
    five = cluster(wanted(samples.lab_of("nodes: {control_plane: {count: 5}, workers: {count: 2}}")))
    assert plan.leaving(TWO, five) == []
    assert plan.not_in_lab(TWO, five) == ["control-plane-3", "control-plane-4"]


def test_a_new_node_of_the_control_plane_is_left_to_the_operator() -> None:
    five = wanted(samples.lab_of("nodes: {control_plane: {count: 5}, workers: {count: 2}}"))
    assert plan.grow(five, cluster(TWO)).is_done
    assert len(plan.warnings(five, cluster(TWO))) == 2


def test_secrets_of_hosts_that_are_gone() -> None:
    ours = ["worker-0-bmc-secret", "worker-7-bmc-secret", "worker-7-network-config-secret"]
    seen = replace(cluster(TWO), labelled=ours)
    made = plan.shrink(TWO, seen, RELEASE)
    assert steps(made) == ["delete secrets worker-7-bmc-secret, worker-7-network-config-secret"]


def test_secrets_of_other_names_stay_while_a_host_has_them() -> None:
    seen = replace(cluster(TWO), labelled=["bmc-of-rack-7", "network-of-rack-7"])
    spec = dict(seen.specs["worker-0"])
    spec["bmc"] = {**spec["bmc"], "credentialsName": "bmc-of-rack-7"}
    spec["preprovisioningNetworkDataName"] = "network-of-rack-7"
    assert plan.leftovers(TWO, replace(seen, specs={**seen.specs, "worker-0": spec})) == []
    assert plan.leftovers(TWO, seen) == ["bmc-of-rack-7", "network-of-rack-7"]


# What is replaced


def test_replacing() -> None:
    given = replace(TWO, replaced={"worker-0": "uid-worker-0"})
    controllers = Controllers(given, cluster(TWO))
    assert plan.changes(given, controllers.seen) == (["remove worker-0"], ["register worker-0"])
    controllers.run("shrink")
    assert "worker-0" not in controllers.seen.hosts
    controllers.run("grow")
    assert controllers.seen.hosts["worker-0"].uid == "uid-worker-0-new"
    assert plan.shrink(given, controllers.seen, RELEASE).is_done


# What is noteworthy


def test_nodes_that_are_not_ready_or_cordoned() -> None:
    seen = cluster(TWO)
    nodes = {
        **seen.nodes,
        "worker-0": Node("worker-0", "False"),
        "worker-1": Node("worker-1", "True", unschedulable=True),
    }
    first, second = plan.warnings(TWO, replace(seen, nodes=nodes))
    assert first == "The Node worker-0 is not ready (False)."
    assert "oc adm uncordon worker-1" in second


NETWORK = "{worker-0: {network_config: {interfaces: [{name: enp1s0, type: ethernet, mtu: 1500}]}}}"
WITH_NETWORK = wanted(samples.lab(2, overrides=NETWORK))


def with_network(seen: Seen, text: str | None) -> Seen:
    """Of worker-0, as the installer has written it."""
    name = manifests.network_secret_name("worker-0")
    logins = {} if text is None else {name: {"nmstate": base64.b64encode(text.encode()).decode()}}
    return replace(with_host(seen, "worker-0", network=name), logins={**seen.logins, **logins})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (WITH_NETWORK, "interfaces:\n- mtu: 1500\n  name: enp1s0\n  type: ethernet\n"),
        (TWO, "{}"),
        (WITH_NETWORK, None),
        (WITH_NETWORK, "interfaces: ["),
    ],
)
def test_a_network_that_is_the_same_or_cannot_be_read(given: Wanted, text: str | None) -> None:
    assert plan.warnings(given, with_network(cluster(given), text)) == []


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (WITH_NETWORK, with_network(cluster(TWO), "interfaces: []\n")),
        (TWO, with_network(cluster(TWO), "interfaces: []\n")),
        (WITH_NETWORK, cluster(TWO)),
        (TWO, with_network(cluster(WITH_NETWORK), "interfaces: []\n")),
    ],
)
def test_another_network_is_named(given: Wanted, seen: Seen) -> None:
    assert plan.changes(given, seen) == ([], [])
    [warning] = plan.warnings(given, seen)
    assert warning.startswith("lab_spec has another network_config of worker-0 than the cluster.")


# Objects


def test_objects_of_a_host() -> None:
    config = "{worker-0: {network_config: {interfaces: [{name: enp1s0, type: ethernet}]}}}"
    given = wanted(samples.lab(2, overrides=config))
    secret, network, host = manifests.of_host(given.hosts["worker-0"], "ha", held=True)
    assert samples.decoded(secret["data"]["password"]) == "secret-of-worker-0"
    assert yaml.safe_load(samples.decoded(network["data"]["nmstate"])) == {
        "interfaces": [{"name": "enp1s0", "type": "ethernet"}]
    }
    spec = host["spec"]
    assert spec["preprovisioningNetworkDataName"] == network["metadata"]["name"]
    assert spec["bmc"]["credentialsName"] == secret["metadata"]["name"]
    assert spec["bmc"]["address"].startswith(f"redfish-virtualmedia+https://{given.bmc_host}:8000/redfish/v1/Systems/")
    assert (spec["bootMode"], spec["online"]) == ("UEFI", True)
    assert not {"image", "userData", "customDeploy"} & {*spec}
    assert "consumerRef" not in manifests.bare_metal_host(given.hosts["worker-0"], "ha", held=False)["spec"]


def test_manifests_of_spares_are_for_anybody_to_take() -> None:
    text = manifests.yaml_of([WITH_SPARE.hosts["spare-0"]], "ha")
    secret, host = yaml.safe_load_all(text)
    assert (secret["kind"], host["kind"], host["spec"]["online"]) == ("Secret", "BareMetalHost", False)
    assert "consumerRef" not in host["spec"]


def test_no_password_is_in_a_representation() -> None:
    assert "secret-of" not in f"{TWO} {TWO.hosts['worker-0']} {cluster(TWO)}"


def test_a_host_without_a_login() -> None:
    host = replace(TWO.hosts["worker-0"], password="")
    assert without_login([host, TWO.hosts["worker-1"]]) == ["worker-0"]
