"""The stand-in installer does as the real one is known to do: stages, lines, exit codes, and what it leaves behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import bmc_lab, kubectl, stand_in_mirror
from support.stand_in.kubernetes import audit
from support.stand_in_bench import AUTH, POOLS, Bench, libvirtd_with_bridge, send
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab
    from support.private_libvirtd import PrivateLibvirtd

pytestmark = pytest.mark.long
STAGES = [
    "Creating infrastructure resources...",
    "Waiting up to 20m0s",
    "API v1.33.5 up",
    "Waiting up to 1h0m0s (until X) for bootstrapping to complete...",
    "  Waiting for baremetal control plane to provision...",
    "  Baremetal control plane finished provisioning.",
    "Waiting for the bootstrap etcd member to be removed...",
    "Bootstrap etcd member has been removed",
    "Destroying the bootstrap resources...",
    "Waiting up to 1h0m0s (until X) for the cluster at https://api.one.lab.test:6443 to initialize...",
    "Waiting up to 30m0s (until X) to ensure each cluster operator has finished progressing...",
    "Checking to see if there is a route at openshift-console/console...",
    "Install complete!",
]
STATES = ("uninitialized", "registering", "inspecting", "preparing", "available", "provisioning", "provisioned")
OLD_STAGES = [stage for stage in STAGES if "aremetal" not in stage and "etcd" not in stage]


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with libvirtd_with_bridge() as started:
        yield started


@pytest.fixture(scope="module")
def bmcs(libvirtd: PrivateLibvirtd) -> Iterator[BmcLab]:
    with bmc_lab.start(libvirtd) as lab:
        for _number in range(3):
            lab.vm(firmware="bios", memory=32)
        yield lab


@pytest.fixture
def bench(libvirtd: PrivateLibvirtd, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(libvirtd, tmp_path, getattr(request, "param", "4.20.3"))
    yield made
    made.clean()


def entries(log: str) -> list[str]:
    found = re.findall(r'^time="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ" level=[a-z]+ msg=(.*)$', log, re.MULTILINE)
    assert len(found) == len(log.splitlines())
    return [json.loads(text) if text.startswith('"') else text for text in found]


def stages_in(log: str, stages: list[str]) -> list[str]:
    lines = [re.sub(r"\(until \d+:\d\d[AP]M UTC\)", "(until X)", line) for line in entries(log)]
    return [stage for line in lines for stage in stages if line.startswith(stage)]


def test_an_installation_goes_through_all_stages_and_leaves_what_the_real_one_leaves(
    bench: Bench, bmcs: BmcLab
) -> None:
    bench.configure()
    done = bench.run("create", "cluster")
    assert done.returncode == 0, done.stderr
    assert stages_in(bench.log(), STAGES) == STAGES
    states = [
        line.split(": ")[2] for line in entries(bench.log()) if line.startswith("  baremetalhost: control-plane-1")
    ]
    assert states == [state for state in STATES if state in states]
    assert states[-1] == "provisioned"
    password = (bench.assets / "auth/kubeadmin-password").read_text()
    assert f'password: \\"{password}\\"' in done.stderr
    assert password in bench.log()

    name = f"{bench.infra_id()}-bootstrap"
    assert bench.virsh("pool-list", "--inactive", "--autostart", "--name") == [name]
    assert name not in bench.virsh("list", "--all", "--name")
    assert list(bench.libvirtd.path(f"{POOLS}/{name}").iterdir()) == []
    [ignition] = bench.temporary.glob("openshift-install-bootstrap-*.ign")
    assert AUTH in ignition.read_text()
    assert list((bench.place / "cache/openshift-installer").rglob("*.qcow2"))
    assert not (bench.assets / "install-config.yaml").exists()
    assert sorted(bench.virsh("list", "--name")) == [vm.name for vm in bmcs.vms]
    assert all(_installed(bench.libvirtd, vm.name) for vm in bmcs.vms)
    assert all(node["status"]["conditions"][0]["status"] == "True" for node in bench.oc("nodes")["items"])
    assert bench.oc("clusterversion", "version")["status"]["history"][0]["state"] == "Completed"
    assert "console" in [item["metadata"]["name"] for item in bench.oc("co")["items"]]
    assert _provisioned(bench.oc("bmh", "-n", "openshift-machine-api")) == 3

    for vm in bmcs.vms:
        vm.destroy()
    bench.until_the_cluster_is_gone()


def test_the_installed_cluster_is_asked_and_changed_by_kubectl(bench: Bench, bmcs: BmcLab, tmp_path: Path) -> None:
    """By our oc, which hands on to it what it does not do itself, by a name that no name server knows."""
    log, home = tmp_path / "audit.log", tmp_path / "home"
    bench.play(audit=str(log), kubectl=str(kubectl.program()))
    bench.configure()
    assert bench.run("create", "cluster").returncode == 0

    def oc(*words: str) -> str:
        own = [f"HOME={home}", str(bench.place / "bin/oc"), f"--kubeconfig={bench.assets}/auth/kubeconfig"]
        return bench.libvirtd.run(["env", *own, *words]).stdout

    assert oc("version") == "Client Version: 4.20.3\nKustomize Version: v5.6.0\n"
    oc("adm", "cordon", "control-plane-0")
    assert oc("get", "nodes").splitlines()[1].split()[:2] == ["control-plane-0", "Ready,SchedulingDisabled"]
    machines = oc("get", "machines.machine.openshift.io", "-A", "-o", "wide").splitlines()
    assert machines[1].split()[:3] == ["openshift-machine-api", f"{bench.infra_id()}-master-0", "Running"]
    host = json.loads(oc("get", "bmh", "control-plane-0", "-n", "openshift-machine-api", "-o", "json"))
    assert host["spec"]["consumerRef"]["name"] == f"{bench.infra_id()}-master-0"
    bench.play()
    assert bench.oc("nodes", "control-plane-0")["spec"]["unschedulable"] is True
    written = log.read_text()
    patches = [entry for entry in audit.read(written) if entry.verb == "patch"]
    assert [(entry.kind, entry.name, entry.user) for entry in patches] == [("nodes", "control-plane-0", "system:admin")]
    assert bmc_lab.PASSWORD not in written


def test_an_installed_cluster_sleeps_while_its_control_plane_is_off(bench: Bench, bmcs: BmcLab) -> None:
    bench.configure()
    assert bench.run("create", "cluster").returncode == 0
    wait_until("the controllers have taken over", lambda: _has_etcd(bench), seen=lambda: bench.oc("machines"))
    assert _spoken_of(bench) == 3
    members = json.loads(bench.etcdctl("member", "list", "-w", "json"))["members"]
    assert [member["name"] for member in members] == [f"control-plane-{number}" for number in range(3)]
    assert bench.etcdctl("endpoint", "health", "--cluster").count("is healthy") == 3
    removed = f"{members[2]['ID']:016x}"
    assert f"Member {removed} removed" in bench.etcdctl("member", "remove", removed)
    wait_until("it has joined again", lambda: bench.etcdctl("member", "list").count("started") == 3)

    for vm in bmcs.vms[:2]:
        vm.destroy()
    bench.until_the_cluster_is_gone()
    for vm in bmcs.vms[:2]:
        vm.domain.create()
    wait_until("it answers", bench.answers)
    assert {node["metadata"]["name"] for node in bench.oc("nodes")["items"]} == {f"control-plane-{n}" for n in range(3)}

    for vm in bmcs.vms:
        vm.destroy()
    bench.until_the_cluster_is_gone()
    bench.end_process()
    for vm in bmcs.vms:
        vm.domain.create()
    assert not bench.answers()
    bench.come_back()
    wait_until("it answers again", bench.answers)
    wait_until("its nodes are ready", lambda: _ready(bench) == 3, seen=lambda: bench.oc("nodes"))
    assert _provisioned(bench.oc("bmh", "-n", "openshift-machine-api")) == 3

    for vm in bmcs.vms:
        vm.destroy()
    for vm in bmcs.vms:
        disk = f"/var/lib/libvirt/images/{vm.name}.qcow2"
        bench.libvirtd.run(["qemu-io", "-c", "write -z 0 512", disk])
    wait_until("nothing of it is left", lambda: not bench.is_kept())


@pytest.mark.full
def test_certificates_that_end_while_a_cluster_is_off_are_for_the_administrator(bench: Bench, bmcs: BmcLab) -> None:
    bench.configure()
    assert bench.run("create", "cluster").returncode == 0
    wait_until("the controllers have taken over", lambda: _has_etcd(bench), seen=lambda: bench.oc("etcds"))
    for vm in bmcs.vms:
        vm.destroy()
    bench.until_the_cluster_is_gone()
    bench.play(later=4 * 24 * 3600, kubectl=str(kubectl.program()))
    for vm in bmcs.vms:
        vm.domain.create()
    wait_until("it answers", bench.answers)
    wait_until("its nodes are lost", lambda: _ready(bench) == 0, seen=lambda: bench.oc("nodes"))

    approved: set[str] = set()

    def approve() -> bool:
        """For the clients alone: the machine-approver sees to what the nodes serve with."""
        requests = [item for item in bench.oc("csr")["items"] if item["spec"]["signerName"].endswith("client-kubelet")]
        pending = [item["metadata"]["name"] for item in requests if "conditions" not in item["status"]]
        if pending:
            kubeconfig = f"--kubeconfig={bench.assets}/auth/kubeconfig"
            command = [str(bench.place / "bin/oc"), kubeconfig, "adm", "certificate", "approve", *pending]
            bench.libvirtd.run(["env", f"HOME={bench.temporary}", *command])
            approved.update(pending)
        return _ready(bench) == 3

    wait_until("its nodes are ready", approve, seen=lambda: bench.oc("nodes"))
    assert len(approved) >= 3


def _has_etcd(bench: Bench) -> bool:
    [operator] = bench.oc("etcds")["items"]
    return "3 members are available" in str(operator.get("status"))


def _spoken_of(bench: Bench) -> int:
    """Machines that are known by the addresses that inspection found."""
    machines = bench.oc("machines", "-n", "openshift-machine-api")["items"]
    return len([one for one in machines if "InternalIP" in str(one.get("status", {}).get("addresses"))])


def _ready(bench: Bench) -> int:
    conditions = [one for node in bench.oc("nodes")["items"] for one in node["status"]["conditions"]]
    return len([one for one in conditions if (one["type"], one["status"]) == ("Ready", "True")])


def test_a_stopped_installation_is_taken_up_again_and_can_fail_at_each_stage(bench: Bench, bmcs: BmcLab) -> None:
    bench.configure()
    bench.play(hang="api")
    with bench.started("create", "cluster") as running:
        bench.waits_for("Still waiting for the Kubernetes API: Get")
        send(running, signal.SIGINT)
        assert running.wait(PATIENCE) == 8
    name = f"{bench.infra_id()}-bootstrap"
    assert name in bench.virsh("list", "--name")
    assert bench.virsh("pool-list", "--name") == [name]

    again = bench.run("create", "cluster")
    assert again.returncode == 4
    assert f"pool '{name}' already exists" in again.stderr

    for stage in ("api", "bootstrap", "control plane"):
        bench.play(fail={"stage": stage, "message": "it is told to"})
        failed = bench.run("wait-for", "bootstrap-complete")
        assert (failed.returncode, "Bootstrap failed to complete: it is told to" in failed.stderr) == (5, True), stage
    wait_until(
        "its error is shown",
        lambda: bench.oc("bmh", "control-plane-1", "-n", "openshift-machine-api")["status"]["errorType"],
    )
    bench.play(hang={"stage": "control plane", "host": "control-plane-1"}, fail="etcd")
    with bench.started("wait-for", "bootstrap-complete") as running:
        bench.waits_for("  baremetalhost: control-plane-2: provisioned")
        assert "  baremetalhost: control-plane-1: preparing" not in bench.log()
        bench.libvirtd.run(["virsh", "reset", "node-1"])
        assert running.wait(PATIENCE) == 5
    assert re.search("  baremetalhost: control-plane-[0-2]: inspection error: it is told to", bench.log())
    assert "must provide bootstrap host address" in bench.run("gather", "bootstrap").stderr
    assert bench.run("gather", "bootstrap", "--bootstrap=192.168.77.9", "--master=192.168.77.20").returncode == 0
    [bundle] = bench.assets.glob("log-bundle-*.tar.gz")
    assert AUTH in "".join(_texts(bundle))
    bench.play(fail="initialize")
    assert "It is now safe to remove the bootstrap resources" in bench.run("wait-for", "bootstrap-complete").stderr
    assert bench.run("destroy", "bootstrap").returncode == 0
    assert name not in bench.virsh("list", "--all", "--name")
    for stage, code in {"initialize": 6, "operators": 7, "console": 0}.items():
        bench.play(fail=stage)
        assert bench.run("wait-for", "install-complete").returncode == code, stage
    assert 'level=warning msg="Cluster does not have a console available' in bench.log()


@pytest.mark.full
@pytest.mark.parametrize("bench", ["4.14.1"], indirect=True)
def test_before_4_16_terraform_brings_up_the_control_plane(bench: Bench, bmcs: BmcLab) -> None:
    bench.configure()
    bench.play(speed=0.005)
    done = bench.run("create", "cluster")
    assert done.returncode == 0, done.stderr
    assert [stage for stage in stages_in(bench.log(), STAGES) if stage in OLD_STAGES] == [
        stage for stage in OLD_STAGES if stage != "API v1.33.5 up"
    ]
    assert "module.masters.ironic_deployment.openshift-master-deployment[2]: Creation complete after" in bench.log()
    assert json.loads((bench.assets / "terraform.tfvars.json").read_text())["cluster_id"] == bench.infra_id()
    assert bench.run("destroy", "cluster").returncode == 0
    assert bench.virsh("pool-list", "--all", "--name") == []


@pytest.mark.full
@pytest.mark.parametrize("bench", ["4.22.0"], indirect=True)
def test_from_4_22_on_an_image_that_another_installer_deletes_meanwhile_is_missed(bench: Bench) -> None:
    bench.configure()
    bench.play(hang="extraction")
    cache = bench.place / "cache/agent/image_cache"
    with bench.started("create", "cluster") as running:
        wait_until("the image is being extracted", lambda: any(cache.glob("*.iso")), seen=bench.log)
        [image] = cache.iterdir()
        image.unlink()
        bench.play()
        assert running.wait(PATIENCE) == 4
    assert f"failed to open {image}" in bench.log()


@pytest.mark.full
@pytest.mark.parametrize("bench", ["4.22.0"], indirect=True)
def test_from_4_22_on_the_bootstrap_vm_is_a_live_iso_on_uefi(bench: Bench) -> None:
    bench.configure()
    bench.play(hang="api")
    with bench.started("create", "cluster") as running:
        bench.waits_for("Still waiting for the Kubernetes API: Get")
        send(running, signal.SIGKILL)
    name = f"{bench.infra_id()}-bootstrap"
    assert {f"{name}-live-provisioner", f"{name}-scratch"} <= set(bench.virsh("vol-list", name))
    assert bench.libvirtd.path(f"/var/log/libvirt/qemu/{name}-serial0.log").exists()
    assert bench.libvirtd.path(f"/var/lib/libvirt/qemu/nvram/{name}_VARS.fd").exists()
    assert bench.run("destroy", "cluster").returncode == 0
    assert name in bench.virsh("list", "--name")
    assert {f"{name}-live-provisioner", f"{name}-scratch"} <= set(bench.virsh("vol-list", name))
    refused = bench.run("destroy", "cluster")
    assert (refused.returncode, "metadata.json: no such file" in refused.stderr) == (1, True)


def test_manifests_are_taken_up_with_what_was_changed_in_them(bench: Bench) -> None:
    bench.configure()
    made = bench.run("create", "manifests")
    assert made.returncode == 0, made.stderr
    assert not (bench.assets / "install-config.yaml").exists()
    provisioning = bench.assets / "openshift/99_baremetal-provisioning-config.yaml"
    read = yaml.safe_load(provisioning.read_text())
    assert (read["kind"], read["spec"]["provisioningNetwork"]) == ("Provisioning", "Disabled")
    read["spec"]["disableVirtualMediaTLS"] = True
    provisioning.write_text(yaml.safe_dump(read))
    (bench.assets / "openshift/own.yaml").write_text("kind: [")
    failed = bench.run("create", "cluster")
    assert (failed.returncode, "own.yaml: while parsing" in failed.stderr) == (1, True)
    (bench.assets / "openshift/own.yaml").unlink()

    bench.play(hang="api")
    with bench.started("create", "cluster") as running:
        bench.waits_for("Still waiting for the Kubernetes API: Get")
        assert b"CD001" in bench.libvirtd.run(_fetch("http://192.168.77.5:6180")).stdout.encode()
        send(running, signal.SIGTERM)
    assert not provisioning.exists()


def test_a_bridge_that_libvirt_does_not_name_is_not_found(bench: Bench) -> None:
    bench.configure(externalBridge="elsewhere")
    done = bench.run("create", "cluster")
    assert done.returncode == 1
    [fatal] = [line for line in entries(bench.log()) if "Platform Provisioning Check" in line and "failed" in line]
    assert re.search('could not find interface "elsewhere", valid interfaces are .*baremetal', fatal)
    assert bench.virsh("pool-list", "--all", "--name") == []
    bench.configure(externalBridge="elsewhere")
    assert bench.run("create", "manifests").returncode == 0


@pytest.mark.parametrize(
    ("bench", "platform", "code", "said"),
    [
        ("4.22.0", {"colour": "red"}, 3, 'unknown field ."platform.baremetal.colour'),
        ("4.21.0", {"colour": "red"}, 0, "level=warning .*unknown field"),
        ("5.0.1", {"colour": "red"}, 3, "unknown field"),
        ("4.20.3", {"apiVIPs": ["10.0.0.1"], "ingressVIPs": ["10.0.0.2"]}, 3, "apiVIPs.*ingressVIPs"),
        ("4.20.3", {"hosts": []}, 3, "platform.baremetal.hosts"),
        ("4.9.59", {"apiVIP": "192.168.77.5", "ingressVIP": "192.168.77.6"}, 0, "Manifests created"),
    ],
    indirect=["bench"],
)
def test_the_install_config_is_checked_by_release(bench: Bench, platform: dict[str, Any], code: int, said: str) -> None:
    bench.configure(**platform)
    done = bench.run("create", "manifests")
    assert (done.returncode, bool(re.search(said, done.stderr))) == (code, True), done.stderr
    fatal = [line for line in done.stderr.splitlines() if line.startswith("level=fatal")]
    assert len(fatal) == (code == 3)
    assert (bench.assets / "install-config.yaml").exists() == (code == 3)


def test_the_mirror_has_what_a_real_one_has(tmp_path: Path) -> None:
    place = stand_in_mirror.make(tmp_path / "mirror", ["4.20.3"], {"stable-4.20": "4.20.3"}) / "stable-4.20"
    for line in (place / "sha256sum.txt").read_text().splitlines():
        digest, name = line.split("  ")
        assert sha256((place / name).read_bytes()).hexdigest() == digest
    with tarfile.open(place / "openshift-client-linux-4.20.3.tar.gz") as archive:
        archive.extract("oc", tmp_path)
    [image] = re.findall("^Pull From: (.*)$", (place / "release.txt").read_text(), re.MULTILINE)
    (tmp_path / "secret").write_text('{"auths": {}}')
    extract = [
        str(tmp_path / "oc"),
        "adm",
        "release",
        "extract",
        "--command=openshift-install",
        f"--to={tmp_path}",
        image,
    ]
    refused = subprocess.run(extract, check=False, text=True, capture_output=True)
    assert (refused.returncode, "unauthorized" in refused.stderr) == (1, True)
    (tmp_path / "secret").write_text('{"auths": {"fake": {"auth": "eDp5"}}}')
    subprocess.run([*extract, f"--registry-config={tmp_path}/secret"], check=True)
    said = subprocess.run([str(tmp_path / "openshift-install"), "version"], check=True, text=True, capture_output=True)
    assert said.stdout.splitlines()[::2] == ["openshift-install 4.20.3", f"release image {image}"]


def _installed(libvirtd: PrivateLibvirtd, vm: str) -> bool:
    disk = f"/var/lib/libvirt/images/{vm}.qcow2"
    shown = libvirtd.run(["qemu-io", "-U", "-r", "-c", "read -v 0 512", disk]).stdout
    return b"STAND-IN SYSTEM".hex(" ") in shown


def _provisioned(hosts: dict[str, Any]) -> int:
    return [host["status"]["provisioning"]["state"] for host in hosts["items"]].count("provisioned")


def _texts(bundle: Path) -> Iterator[str]:
    with tarfile.open(bundle) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            assert file
            yield file.read().decode()


def _fetch(server: str) -> list[str]:
    read = "import sys,urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1]).read()[32768:32774].decode())"
    return ["python3", "-c", read, f"{server}/images/boot-any.iso"]
