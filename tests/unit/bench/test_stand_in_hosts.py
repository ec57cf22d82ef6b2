"""The stand-in's baremetal-operator: states, errors, power, deletion."""

from __future__ import annotations

import pytest
from support.stand_in.controllers import objects
from support.stand_in.controllers.objects import CONFIG_MAPS, HOSTS, NAMESPACE, SECRETS
from support.stand_in_machines import FakeCluster

DEPLOY = {"customDeploy": {"method": "install_coreos"}, "userData": {"name": "worker-user-data-managed"}}


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def _states(cluster: FakeCluster, name: str) -> list[str]:
    """In the order of the store's events."""
    found: list[str] = []
    events, _version = cluster.store.events([HOSTS], 0)
    for event in events:
        state = objects.status(event.object).get("provisioning", {}).get("state", "")
        if objects.name(event.object) == name and state and [state] != found[-1:]:
            found.append(state)
    return found


def _status(cluster: FakeCluster, name: str = "w") -> objects.Object:
    return objects.status(cluster.get(HOSTS, name))


def test_a_new_host_is_registered_inspected_and_available(cluster: FakeCluster) -> None:
    machine = cluster.host("w", online=False)
    cluster.until(lambda: cluster.state("w") == "available")
    assert _states(cluster, "w") == ["registering", "inspecting", "preparing", "available"]
    status = _status(cluster)
    assert status["hardware"]["nics"][0]["mac"] == machine.mac
    assert status["goodCredentials"] == status["triedCredentials"]
    secret = cluster.get(SECRETS, "w-bmc-secret")
    assert status["goodCredentials"]["credentialsVersion"] == secret["metadata"]["resourceVersion"]
    assert objects.labels_of(secret) == {"environment.metal3.io": "baremetal"}
    assert (machine.on, machine.medium) == (False, "")
    assert {"Registered", "BMCAccessValidated", "InspectionComplete"} <= set(cluster.events())
    assert (status["operationalStatus"], status.get("errorType", "")) == ("OK", "")


@pytest.mark.parametrize(("release", "state"), [((4, 9), "ready"), ((4, 10), "available")])
def test_old_releases_have_states_of_their_own(release: tuple[int, int], state: str) -> None:
    cluster = FakeCluster(release)
    cluster.host("w")
    cluster.until(lambda: cluster.state("w") == state)
    assert "match profile" in _states(cluster, "w")


def test_without_a_bmc_it_is_unmanaged(cluster: FakeCluster) -> None:
    cluster.host("w", bmc={"address": "", "credentialsName": ""})
    cluster.run(3)
    assert (cluster.state("w"), _status(cluster)["operationalStatus"]) == ("unmanaged", "discovered")


def test_a_host_that_is_to_have_a_system_gets_it_and_is_wiped_when_it_is_released(cluster: FakeCluster) -> None:
    machine = cluster.host("w", **DEPLOY)
    cluster.until(lambda: cluster.state("w") == "provisioned")
    assert (machine.on, machine.system, machine.boots) == (True, True, "Hdd")
    assert _status(cluster)["poweredOn"] is True

    cluster.respec("w", customDeploy=None, online=False)
    cluster.until(lambda: cluster.state("w") == "available")
    assert (machine.on, machine.system) == (False, False)
    assert _states(cluster, "w")[-2:] == ["deprovisioning", "available"]


def test_without_cleaning_nothing_is_wiped(cluster: FakeCluster) -> None:
    machine = cluster.host("w", automatedCleaningMode="disabled", **DEPLOY)
    cluster.until(lambda: cluster.state("w") == "provisioned")
    cluster.respec("w", customDeploy=None, online=False)
    cluster.until(lambda: cluster.state("w") == "available")
    assert (machine.on, machine.system) == (False, True)


def test_a_missing_secret_is_named_and_taken_once_it_is_there(cluster: FakeCluster) -> None:
    cluster.host("w")
    cluster.store.delete(SECRETS, "w-bmc-secret", NAMESPACE)
    cluster.run(5)
    message = "BMC CredentialsName secret doesn't exist The BMC secret openshift-machine-api/w-bmc-secret "
    message += "does not exist"
    status = _status(cluster)
    assert (status["errorType"], status["errorMessage"], status["operationalStatus"]) == (
        "registration error",
        message,
        "error",
    )
    cluster.secret("w")
    cluster.until(lambda: cluster.state("w") == "available")
    assert _status(cluster)["errorMessage"] == ""


def test_a_secret_without_a_password_is_named(cluster: FakeCluster) -> None:
    cluster.secret("w", ("operator", ""))
    cluster.host("w")
    cluster.run(5)
    wanted = "Validation error with BMC credentials: Missing BMC connection detail 'password' in credentials"
    assert _status(cluster)["errorMessage"] == wanted


def test_a_wrong_password_is_tried_again_later_and_at_once_with_another_secret(cluster: FakeCluster) -> None:
    machine = cluster.host("w")
    cluster.secret("w", ("operator", "wrong"))
    cluster.run(20)
    status = _status(cluster)
    assert status["errorType"] == "registration error"
    assert status["errorMessage"].startswith("Failed to get power state for node ")
    assert "returned code 401" in status["errorMessage"]
    assert status["errorCount"] == 5  # after 1, 2, 4 and 8 steps
    assert "goodCredentials" not in status
    machine.login = ("operator", "wrong")
    cluster.until(lambda: cluster.state("w") == "available")
    machine.login = ("operator", "new")
    cluster.secret("w", machine.login)
    cluster.run(1)
    assert (cluster.state("w"), _status(cluster)["errorType"]) == ("available", "")


def test_who_does_not_answer_is_named_with_its_node(cluster: FakeCluster) -> None:
    machine = cluster.host("w")
    machine.fails = "Unable to connect to https://127.0.0.1:8000/redfish/v1/. Error: refused"
    cluster.run(4)
    message = _status(cluster)["errorMessage"]
    assert "Error: Redfish connection failed for node " in message
    assert message.endswith(machine.fails)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("colour://127.0.0.1", "Unknown BMC type 'colour' for address colour://127.0.0.1"),
        ("redfish+http://127.0.0.1/redfish/v1/Systems/1", "BMC driver redfish requires a provisioning network"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(cluster: FakeCluster, address: str, message: str) -> None:
    provisioning = {"metadata": {"name": "provisioning-configuration"}, "spec": {"provisioningNetwork": "Disabled"}}
    cluster.store.create(objects.PROVISIONINGS, provisioning)
    cluster.host("w", bmc={"address": address, "credentialsName": "w-bmc-secret"})
    cluster.run(3)
    assert _status(cluster)["errorMessage"] == message


def test_two_hosts_do_not_have_one_mac_address(cluster: FakeCluster) -> None:
    first = cluster.host("one")
    cluster.until(lambda: cluster.state("one") == "available")
    cluster.host("two", bootMACAddress=first.mac)
    cluster.run(3)
    wanted = f"MAC address {first.mac} conflicts with existing node openshift-machine-api~one"
    assert _status(cluster, "two")["errorMessage"] == wanted


@pytest.mark.parametrize(("release", "seen"), [((4, 20), ""), ((4, 21), "PEM")])
def test_the_authority_for_bmcs_is_mounted_from_4_21_on(release: tuple[int, int], seen: str) -> None:
    cluster = FakeCluster(release)
    cluster.store.create(
        CONFIG_MAPS, {"metadata": {"name": "bmc-verify-ca", "namespace": NAMESPACE}, "data": {"verify_ca.crt": "PEM"}}
    )
    cluster.host("w")
    cluster.run(3)
    assert {(access.verify, access.authority) for access in cluster.machines.accesses} == {(True, seen)}


def test_a_paused_host_is_left_alone(cluster: FakeCluster) -> None:
    machine = cluster.host("w")
    cluster.mark(HOSTS, "w", "baremetalhost.metal3.io/paused")
    cluster.run(5)
    assert (cluster.state("w"), machine.done) == ("", [])


def test_a_detached_host_is_not_managed_until_it_is_attached(cluster: FakeCluster) -> None:
    machine = cluster.host("w")
    cluster.until(lambda: machine.on and cluster.state("w") == "available")
    cluster.mark(HOSTS, "w", "baremetalhost.metal3.io/detached")
    cluster.run(2)
    assert _status(cluster)["operationalStatus"] == "detached"
    machine.on = False
    cluster.run(20)
    assert not machine.on
    cluster.mark(HOSTS, "w", "baremetalhost.metal3.io/detached", None)
    cluster.run(2)
    assert (machine.on, _status(cluster)["operationalStatus"]) == (True, "OK")


def test_a_host_that_was_switched_off_elsewhere_comes_on_again(cluster: FakeCluster) -> None:
    machine = cluster.host("w", **DEPLOY)
    cluster.until(lambda: cluster.state("w") == "provisioned")
    machine.on = False
    cluster.run(10)
    assert machine.on


@pytest.mark.parametrize("obeys", [True, False])
def test_it_is_asked_to_switch_itself_off_before_it_is_forced(cluster: FakeCluster, *, obeys: bool) -> None:
    machine = cluster.host("w", **DEPLOY)
    cluster.until(lambda: cluster.state("w") == "provisioned")
    machine.obeys = obeys
    machine.done.clear()
    cluster.respec("w", online=False)
    cluster.run(10)
    assert machine.done == (["shut down"] if obeys else ["shut down", "Off"])
    assert _status(cluster)["poweredOn"] is False


def test_a_reboot_is_asked_for_by_annotations(cluster: FakeCluster) -> None:
    machine = cluster.host("w", **DEPLOY)
    cluster.until(lambda: cluster.state("w") == "provisioned")
    machine.done.clear()
    cluster.mark(HOSTS, "w", "reboot.metal3.io", '{"mode": "hard"}')
    cluster.run(10)
    assert machine.done == ["Off", "On"]
    assert not objects.annotations_of(cluster.get(HOSTS, "w"))
    cluster.mark(HOSTS, "w", "reboot.metal3.io/mine")
    cluster.run(20)
    assert not machine.on
    cluster.mark(HOSTS, "w", "reboot.metal3.io/mine", None)
    cluster.run(2)
    assert machine.on


def test_it_is_inspected_again_when_it_is_wanted(cluster: FakeCluster) -> None:
    cluster.host("w", online=False)
    cluster.until(lambda: cluster.state("w") == "available")
    cluster.mark(HOSTS, "w", "inspect.metal3.io")
    cluster.run(20)
    assert _states(cluster, "w")[-3:] == ["inspecting", "preparing", "available"]
    assert not objects.annotations_of(cluster.get(HOSTS, "w"))


@pytest.mark.parametrize(("release", "before"), [((4, 13), "deprovisioning"), ((4, 14), "powering off before delete")])
def test_a_deleted_host_is_cleaned_and_switched_off_and_takes_its_secret_along(
    release: tuple[int, int], before: str
) -> None:
    cluster = FakeCluster(release)
    machine = cluster.host("w", **DEPLOY)
    cluster.until(lambda: cluster.state("w") == "provisioned")
    cluster.store.delete(HOSTS, "w", NAMESPACE)
    cluster.until(lambda: not cluster.names(HOSTS))
    assert _states(cluster, "w")[-2:] == [before, "deleting"]
    assert (machine.on, machine.system) == (False, False)
    assert cluster.names(SECRETS) == []


def test_a_detached_host_is_deleted_as_it_is(cluster: FakeCluster) -> None:
    machine = cluster.host("w", **DEPLOY)
    cluster.until(lambda: cluster.state("w") == "provisioned")
    cluster.mark(HOSTS, "w", "baremetalhost.metal3.io/detached")
    cluster.run(3)
    cluster.store.delete(HOSTS, "w", NAMESPACE)
    cluster.until(lambda: not cluster.names(HOSTS))
    assert (machine.on, machine.system) == (True, True)


def test_whoever_cannot_be_cleaned_is_deleted_after_three_failures(cluster: FakeCluster) -> None:
    machine = cluster.host("w", **DEPLOY)
    cluster.until(lambda: cluster.state("w") == "provisioned")
    machine.fails = "Unable to connect"
    cluster.store.delete(HOSTS, "w", NAMESPACE)
    cluster.until(lambda: not cluster.names(HOSTS))
    assert machine.system
    assert "ProvisioningError" in cluster.events()
