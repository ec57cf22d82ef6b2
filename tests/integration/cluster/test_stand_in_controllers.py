"""The stand-in's controllers with the BMC service and real VMs: hosts become nodes, and are given back."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from support import bmc_lab, private_libvirtd, redfish_service, stand_in_controllers
from support.stand_in import pki
from support.stand_in_controllers import INFRA_ID
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.bmc_lab import BmcLab
    from support.private_libvirtd import PrivateLibvirtd
    from support.stand_in_controllers import Cluster

HOSTS, MACHINES, SETS = "baremetalhosts.metal3.io", "machines.machine.openshift.io", "machinesets.machine.openshift.io"
NAMESPACE = "openshift-machine-api"
SET = f"{INFRA_ID}-worker-0"
WRONG = "wrong-password"


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        yield started


@pytest.fixture(scope="module")
def bmcs(libvirtd: PrivateLibvirtd) -> Iterator[BmcLab]:
    with bmc_lab.start(libvirtd) as lab:
        for _number in range(2):
            lab.vm(firmware="bios", memory=32)
        yield lab


@pytest.fixture
def cluster(libvirtd: PrivateLibvirtd) -> Iterator[Cluster]:
    with stand_in_controllers.start(libvirtd, (4, 21)) as started:
        yield started


def _secret(name: str, user: str = bmc_lab.USER, password: str = bmc_lab.PASSWORD) -> dict[str, Any]:
    told = {"username": user, "password": password}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in told.items()}
    return {"metadata": {"name": f"{name}-bmc-secret", "namespace": NAMESPACE}, "data": data}


def _host(lab: BmcLab, number: int, scheme: str = "http") -> dict[str, Any]:
    name, vm = f"worker-{number}", lab.vms[number]
    address = f"redfish-virtualmedia+{scheme}://127.0.0.1:8000{vm.path}"
    spec = {
        "online": False,
        "bootMACAddress": f"52:54:00:00:00:{number:02x}",
        "bmc": {"address": address, "credentialsName": f"{name}-bmc-secret"},
    }
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _workers(replicas: int) -> dict[str, Any]:
    labels = {"machine.openshift.io/cluster-api-machineset": SET}
    value = {"customDeploy": {"method": "install_coreos"}, "userData": {"name": "worker-user-data-managed"}}
    template = {"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": value}}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": SET, "namespace": NAMESPACE}, "spec": spec}


def _until(cluster: Cluster, what: str, name: str, state: str) -> None:
    def reached() -> bool:
        return bool(cluster.status(HOSTS, name).get("provisioning", {}).get("state") == state)

    wait_until(f"{name} is {what}", reached, seen=lambda: str(cluster.status(HOSTS, name)))


def _ready(cluster: Cluster) -> list[str]:
    conditions = {item["metadata"]["name"]: item["status"]["conditions"] for item in cluster.store("list", "nodes")}
    return [name for name, told in conditions.items() if {"Ready": "True"}.items() <= _by_type(told).items()]


def _by_type(conditions: list[dict[str, str]]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in conditions}


def test_hosts_become_nodes_and_are_given_back(cluster: Cluster, bmcs: BmcLab) -> None:
    for number in range(2):
        cluster.store("create", "secrets", _secret(f"worker-{number}"))
        cluster.store("create", HOSTS, _host(bmcs, number))
    for number in range(2):
        _until(cluster, "available", f"worker-{number}", "available")
    assert not any(vm.domain.isActive() for vm in bmcs.vms)

    cluster.store("create", SETS, _workers(1))
    wait_until("a node is ready", lambda: len(_ready(cluster)) == 1, seen=lambda: str(cluster.store("list", MACHINES)))
    [name] = _ready(cluster)
    number = int(name[-1])
    assert [bool(vm.domain.isActive()) for vm in bmcs.vms] == [number == 0, number == 1]
    assert _begins_with(bmcs, number) == b"STAND-IN SYSTEM\n".hex(" ")

    [machine] = cluster.store("list", MACHINES)
    assert machine["metadata"]["annotations"]["metal3.io/BareMetalHost"] == f"{NAMESPACE}/{name}"
    cluster.store("update", SETS, _workers(0))
    wait_until("its machine is gone", lambda: cluster.store("list", MACHINES) == [])
    assert cluster.store("list", "nodes") == []
    assert cluster.status(HOSTS, name)["provisioning"]["state"] == "available"
    assert not any(vm.domain.isActive() for vm in bmcs.vms)
    assert set(_begins_with(bmcs, number).split()) == {"00"}

    cluster.store("delete", HOSTS, name, NAMESPACE)
    gone = f"{name}-bmc-secret"
    wait_until(
        "its Secret is gone",
        lambda: gone not in [item["metadata"]["name"] for item in cluster.store("list", "secrets")],
    )


def test_a_wrong_password_is_refused_by_the_bmc_until_the_secret_is_right(cluster: Cluster, bmcs: BmcLab) -> None:
    cluster.store("create", "secrets", _secret("worker-0", password=WRONG))
    cluster.store("create", HOSTS, _host(bmcs, 0))
    wait_until("it is refused", lambda: cluster.status(HOSTS, "worker-0").get("errorType"))
    status = cluster.status(HOSTS, "worker-0")
    assert status["errorType"] == "registration error"
    assert f"http://127.0.0.1:8000{bmcs.vms[0].path} returned code 401." in status["errorMessage"]
    assert WRONG not in str(status)
    cluster.store("update", "secrets", _secret("worker-0"))
    _until(cluster, "available", "worker-0", "available")
    assert cluster.status(HOSTS, "worker-0")["errorMessage"] == ""


def test_a_bmc_that_does_not_speak_tls_is_named(cluster: Cluster, bmcs: BmcLab) -> None:
    cluster.store("create", "secrets", _secret("worker-0"))
    cluster.store("create", HOSTS, _host(bmcs, 0, "https"))
    wait_until("it is not reached", lambda: cluster.status(HOSTS, "worker-0").get("errorType"))
    message = cluster.status(HOSTS, "worker-0")["errorMessage"]
    assert "Redfish connection failed for node " in message
    assert "Unable to connect to https://127.0.0.1:8000/redfish/v1/. Error: HTTPSConnectionPool(" in message


def test_a_certificate_that_is_not_trusted_is_named_until_its_authority_is_known(
    cluster: Cluster, libvirtd: PrivateLibvirtd, tmp_path: Path
) -> None:
    node = redfish_service.Node("secure")
    redfish_service.define(libvirtd, [node])
    tmp_path.chmod(0o755)
    with redfish_service.Service(libvirtd, tmp_path, [node]) as service:
        service.wait_ready()
        cluster.store("create", "secrets", _secret("secure", *node.login))
        address = f"redfish-virtualmedia://127.0.0.1:8443/redfish/v1/Systems/{node.uuid}"
        bmc = {"address": address, "credentialsName": "secure-bmc-secret"}
        spec = {"online": False, "bootMACAddress": "52:54:00:00:00:99", "bmc": bmc}
        cluster.store("create", HOSTS, {"metadata": {"name": "secure", "namespace": NAMESPACE}, "spec": spec})
        _authority(cluster, pki.authority("another CA").certificate)
        told = "CERTIFICATE_VERIFY_FAILED"
        wait_until("it is not trusted", lambda: told in cluster.status(HOSTS, "secure").get("errorMessage", ""))
        _authority(cluster, service.authority.ca.read_text())
        wait_until("it is trusted", lambda: "goodCredentials" in cluster.status(HOSTS, "secure"))


def _authority(cluster: Cluster, certificate: str) -> None:
    place = {"name": "bmc-verify-ca", "namespace": NAMESPACE}
    cluster.store("apply", "configmaps", {"metadata": place, "data": {"verify_ca.crt": certificate}}, "test")


def _begins_with(lab: BmcLab, number: int) -> str:
    disk = f"/var/lib/libvirt/images/node-{number}.qcow2"
    shown = lab.libvirtd.run(["qemu-io", "-U", "-r", "-c", "read -v 0 16", disk]).stdout
    return " ".join(shown.split(":")[1].split()[:16])
