"""An installed stand-in cluster gets a worker by kubectl, and gives it back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support import bmc_lab, kubectl
from support.stand_in_bench import Bench, libvirtd_with_bridge
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.bmc_lab import BmcLab
    from support.private_libvirtd import PrivateLibvirtd

MACHINES, SETS = "machines.machine.openshift.io", "machinesets.machine.openshift.io"
NAMESPACE = "openshift-machine-api"


@pytest.fixture
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with libvirtd_with_bridge() as started:
        yield started


@pytest.fixture
def bmcs(libvirtd: PrivateLibvirtd) -> Iterator[BmcLab]:
    with bmc_lab.start(libvirtd) as lab:
        for _number in range(4):
            lab.vm(firmware="bios", memory=32)
        yield lab


def _worker(lab: BmcLab) -> str:
    """A Secret and a BareMetalHost, for kubectl."""
    meta = {"namespace": NAMESPACE}
    login = {"username": bmc_lab.USER, "password": bmc_lab.PASSWORD}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {**meta, "name": "w-bmc-secret"}, "stringData": login}
    bmc = {
        "address": f"redfish-virtualmedia+http://127.0.0.1:8000{lab.vms[3].path}",
        "credentialsName": "w-bmc-secret",
    }
    spec = {"online": True, "bootMACAddress": "52:54:00:00:00:03", "bmc": bmc}
    host = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {**meta, "name": "w"},
        "spec": spec,
    }
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [secret, host]})


def test_a_worker_is_added_and_removed(libvirtd: PrivateLibvirtd, bmcs: BmcLab, tmp_path: Path) -> None:
    bench = Bench(libvirtd, tmp_path, "4.20.3")
    bench.play(kubectl=str(kubectl.program()))
    bench.configure()
    assert bench.run("create", "cluster").returncode == 0

    def oc(*words: str, stdin: str | None = None) -> str:
        own = [f"HOME={tmp_path}", str(bench.place / "bin/oc"), f"--kubeconfig={bench.assets}/auth/kubeconfig"]
        return libvirtd.run(["env", *own, "-n", NAMESPACE, *words], input=stdin).stdout

    def get(*words: str) -> Any:
        return json.loads(oc("get", *words, "-o", "json"))

    oc("apply", "-f", "-", stdin=_worker(bmcs))
    oc("wait", "bmh/w", "--for=jsonpath={.status.provisioning.state}=available", "--timeout=120s")
    workers = f"{bench.infra_id()}-worker-0"
    oc("scale", SETS, workers, "--replicas=1")
    wait_until("it is a Node", lambda: "worker" in oc("get", "nodes"), seen=lambda: oc("get", f"bmh,{MACHINES}"))
    oc("wait", "node/w", "--for=condition=Ready", "--timeout=120s")
    [machine] = [item for item in get(MACHINES)["items"] if item["metadata"]["name"].startswith(workers)]
    oc("wait", f"{MACHINES}/{machine['metadata']['name']}", "--for=jsonpath={.status.phase}=Running", "--timeout=120s")
    assert bmcs.vms[3].domain.isActive()

    oc("adm", "cordon", "w")
    oc("adm", "drain", "w", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")
    oc("annotate", f"{MACHINES}/{machine['metadata']['name']}", "machine.openshift.io/delete-machine=yes")
    oc("scale", SETS, workers, "--replicas=0")
    oc("wait", f"{MACHINES}/{machine['metadata']['name']}", "--for=delete", "--timeout=120s")
    assert "w" not in [node["metadata"]["name"] for node in get("nodes")["items"]]
    assert not bmcs.vms[3].domain.isActive()
    oc("delete", "bmh", "w")
    assert "w-bmc-secret" not in [item["metadata"]["name"] for item in get("secrets")["items"]]
    bench.clean()
