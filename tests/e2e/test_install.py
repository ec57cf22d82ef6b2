"""The installation on whole hosts, by a stand-in of the installer: done, failed at each stage, killed, removed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, install_lab, kubectl, processes, snapshot, socks
from support.failures import ending
from support.install_lab import InstallLab
from support.modules import run_in
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

    from support.lab_host import LabHost
    from support.snapshot import Snapshot

# The lab's own directories, the tools, and the route that the kernel gives a bridge when it first has carrier.
OURS = ("/etc/stand-in*", "/var/lib/nometal*", "/var/cache/nometal*")
ASIDE = (
    *(f"files {path}" for path in (*OURS, "/run/nometal*")),
    "routes fe80::/64 dev baremetal*",
    *snapshot.LOGS_OF_NODES,
)
# Each is what goes wrong in one run after the other, and with what exit code of the installer. None: nothing does.
COURSES: dict[str, list[tuple[str | None, int]]] = {
    "nothing is made": [("provisioning check", 1), ("infrastructure", 4)],
    "it begins anew": [("infrastructure", 4), ("bootstrap", 5)],
    "it goes on": [("initialize", 6), ("operators", 7), (None, 0)],
}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[InstallLab]:
    with install_lab.start(tmp_path) as started:
        yield started


@pytest.fixture
def host(lab: InstallLab) -> LabHost:
    return lab.host


def went_well(run: CompletedProcess[str], changed: str = r"\d+") -> bool:
    told = re.search(rf"^hypervisor .* changed={changed} .*failed=0", run.stdout, re.MULTILINE)
    return run.returncode == 0 and told is not None


def settled(host: LabHost) -> Snapshot:
    """But for the note that a BMC makes of a VM when it first starts it."""
    host.run("for pool in $(virsh pool-list --name); do virsh pool-refresh $pool; done")
    notes = "virsh metadata $vm urn:nometal:ipi:bmc --remove --config"
    host.run(f"for vm in $(virsh list --all --name); do {notes}; done", check=False)
    return snapshot.take(host)


def wait_until_as_before(host: LabHost, before: Snapshot) -> None:
    """Ansible's jobs clear up later."""

    def changes() -> str:
        return settled(host).diff(before, without=ASIDE)

    wait_until("the host is as before", lambda: not changes(), seen=changes, every=1)


def secrets_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if install_lab.PLANTED in line]


@pytest.mark.long
def test_a_cluster_is_installed_once_and_leaves_no_trace(host: LabHost, lab: InstallLab, tmp_path: Path) -> None:
    before = settled(host)
    lab.scenario()
    done = lab.install()
    assert went_well(done), ending(done.stdout)
    assert re.search(r"^\[.*\] installer +(\d+% +)?waits for the API", done.stdout, re.MULTILINE), done.stdout
    assert "runs OpenShift 4.20.3" in done.stdout
    assets = f"/var/lib/nometal/install/{lab.name}/cluster"
    assert host.run(f"stat --format=%a {assets}/auth/*").stdout.split() == ["600"] * 4
    assert "proxy-url: socks5://127.0.0.1:1080" in host.read(f"{assets}/auth/kubeconfig-proxy")
    password = host.read(f"{assets}/auth/kubeadmin-password").strip()
    assert password not in done.stdout
    assert host.run("virsh list --all --name; virsh pool-list --all --name").stdout.count("bootstrap") == 0

    told = run_in(host, "lab_status", {"lab": lab.name})["status"]
    # The stand-in has no ingress.
    assert (told["state"], [finding["code"] for finding in told["findings"]]) == ("installed", ["vip.silent"])
    assert (told["cluster"]["state"], told["cluster"]["version"]) == ("answers", "4.20.3")
    assert {node["member"]["ready"] for node in told["nodes"]} == {True}

    (tmp_path / "kubeconfig-proxy").write_text(host.read(f"{assets}/auth/kubeconfig-proxy"), encoding="utf-8")
    asked = [str(kubectl.program()), "--kubeconfig=kubeconfig-proxy", "get", "nodes", "--output=name"]
    assert len(socks.run(host, tmp_path, asked).split()) == 3

    again = lab.install("-vvv")
    assert went_well(again, changed="0"), ending(again.stdout)
    assert secrets_in(done.stdout + again.stdout) == []

    removed = lab.remove_cluster()
    assert went_well(removed), ending(removed.stdout)
    wait_until_as_before(host, before)


@pytest.mark.full
def test_it_is_foreseen_and_its_nodes_are_kept_until_it_is_removed(host: LabHost, lab: InstallLab) -> None:
    before = settled(host)
    lab.scenario()
    foreseen = lab.install("--check", "--diff")
    assert went_well(foreseen), ending(foreseen.stdout)
    assert secrets_in(foreseen.stdout) == []
    wait_until_as_before(host, before)

    done = lab.install()
    assert went_well(done), ending(done.stdout)
    refused = lab.with_one_node_less("nodes", "-e", "node_vms_exclusive=true")
    assert refused.returncode != 0
    told = " ".join(refused.stdout.split())
    assert "this would be destroyed: VM lab-control-plane-2 with its disks. Lab lab has a cluster" in told
    assert f"(installed, /var/lib/nometal/install/{lab.name}/cluster on hypervisor)" in told
    assert "-e node_vms_destroy_cluster_nodes=true" in told

    for changed in (r"[1-9]\d*", "0"):
        removed = lab.remove_cluster()
        assert went_well(removed, changed), ending(removed.stdout)


@pytest.mark.full
def test_what_is_missing_is_told_before_anything_begins(host: LabHost, lab: InstallLab) -> None:
    before = settled(host)
    refused = lab.install(ssh_key_file="/nowhere/key.pub")
    assert refused.returncode != 0
    assert "There is no public SSH key in /nowhere/key.pub" in " ".join(refused.stdout.split())
    host.run("systemctl stop nometal-bmc-lab.service")
    refused = lab.install()
    host.run("systemctl start nometal-bmc-lab.service")
    assert refused.returncode != 0
    assert "playbooks/bmc.yml repairs the service of the BMCs" in " ".join(refused.stdout.split())
    wait_until_as_before(host, before)


@pytest.mark.full
@pytest.mark.parametrize("version", ["stable-4.14", "stable-4.22"])
def test_older_and_newer_releases_are_installed(host: LabHost, lab: InstallLab, version: str) -> None:
    lab.scenario()
    done = lab.install(version=version)
    assert went_well(done), ending(done.stdout)
    assert went_well(lab.remove_cluster())
    assert f"runs OpenShift {version.partition('-')[2]}." in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("course", COURSES)
def test_failures_at_each_stage_are_told_and_gone_on_from(host: LabHost, lab: InstallLab, course: str) -> None:
    before = settled(host)
    last = 0
    for stage, code in COURSES[course]:
        lab.scenario(**({"fail": {"stage": stage}} if stage else {}))
        if last == 4:
            refused = lab.install()
            assert refused.returncode != 0
            assert "ipi_install_restart=true" in refused.stdout
        done = lab.install("-e", f"ipi_install_restart={str(last == 4).lower()}")
        assert json.loads(host.read(f"/var/lib/nometal/install/{lab.name}/run.json"))["exit_code"] == code, stage
        assert went_well(done) == (code == 0), f"{stage}\n{ending(done.stdout)}"
        if code:
            judge_bundle(host, done.stdout)
        last = code
    removed = lab.remove_cluster()
    assert went_well(removed), ending(removed.stdout)
    wait_until_as_before(host, before)


def judge_bundle(host: LabHost, told: str) -> None:
    bundle = re.search(r"/var/lib/nometal/install/\S+\.tar\.gz", told)
    assert bundle, ending(told)
    assert host.run(["stat", "--format=%a", bundle[0]]).stdout.strip() == "600"
    unpacked = host.run(f"tar -xzOf {bundle[0]} | tr -d '\\000'").stdout
    assert secrets_in(told + unpacked) == []


@pytest.mark.full
def test_killed_it_is_followed_again_and_goes_on(host: LabHost, lab: InstallLab, tmp_path: Path) -> None:
    before = settled(host)
    lab.scenario(hang={"stage": "bootstrap"})
    controller = start(lab, tmp_path / "first")
    wait_until_told(host, lab, "waits for bootstrapping")
    assert secrets_in(command_lines(host)) == []
    for process in (*processes.descendants(controller.pid), controller.pid):
        os.kill(process, signal.SIGKILL)
    controller.wait()
    host.run("pkill -KILL -f '[a]nsible'", check=False)
    assert installer(host), "the installer has ended with its controller"

    lab.scenario(hang={"stage": "initialize"})
    controller = start(lab, tmp_path / "second")
    wait_until_told(host, lab, "waits for the cluster to initialize")
    host.run(["pkill", "-KILL", "-f", "[c]luster --dir /var/lib/nometal/install"])
    assert controller.wait(PATIENCE) != 0
    assert "The installer is running." in (tmp_path / "second").read_text()

    lab.scenario()
    done = lab.install()
    assert went_well(done), ending(done.stdout)
    assert "The installer was killed (SIGKILL)" in done.stdout
    removed = lab.remove_cluster()
    assert went_well(removed), ending(removed.stdout)
    wait_until_as_before(host, before)


def start(lab: InstallLab, output: Path, **install: Any) -> subprocess.Popen[bytes]:
    command = checkout.command("install", lab.inventory(**install))
    with output.open("wb") as file:
        return subprocess.Popen(command, cwd=checkout.ROOT, stdout=file, stdin=subprocess.DEVNULL)


def wait_until_told(host: LabHost, lab: InstallLab, words: str) -> None:
    events = ["cat", f"/run/nometal/install/{lab.name}/events.jsonl"]
    wait_until(f"{lab.name} {words}", lambda: words in host.run(events, check=False).stdout)


def command_lines(host: LabHost) -> str:
    """And environments."""
    return host.run("cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\000' '\\n'", check=False).stdout


def installer(host: LabHost) -> str:
    return host.run("pgrep -f '[c]luster --dir /var/lib/nometal/install'", check=False).stdout


@pytest.mark.full
def test_two_labs_at_once_and_one_is_removed(tmp_path: Path) -> None:
    """From 4.22 on, the installer extracts an image into its cache without a lock, and deletes it after use."""
    with install_lab.start(tmp_path / "one") as lab:
        host = lab.host
        network = {"cidr": "192.168.127.0/24", "bridge": "metal2"}
        other = InstallLab(host, tmp_path / "two", name="lab2", machine_network=network, bmc={"port": 8100})
        other.make()
        for each in (lab, other):
            each.scenario(hang={"stage": "extraction"})
        runs = [start(each, tmp_path / each.name, version="stable-4.22") for each in (lab, other)]
        extracted = "ls /var/cache/nometal/installer/*/agent/image_cache/*.iso"
        wait_until("both extract the image", lambda: len(host.run(extracted, check=False).stdout.split()) == len(runs))
        for each in (lab, other):
            each.scenario(hang={"stage": "bootstrap"})
        for each in (lab, other):
            wait_until_told(host, each, "waits for bootstrapping")
        refused = lab.remove_cluster()
        assert "Another run has lab lab on host hypervisor" in refused.stdout, ending(refused.stdout)
        removed = lab.remove_cluster("-e", "lab_lock_take_over=true")
        assert went_well(removed), ending(removed.stdout)
        assert runs[0].wait(PATIENCE) != 0
        there = host.run("virsh list --name").stdout
        assert re.search(r"^lab2-[a-z0-9]{5}-bootstrap$", there, re.MULTILINE), there
        assert not re.search(r"^lab-[a-z0-9]{5}-bootstrap$", there, re.MULTILINE), there
        other.scenario()
        assert runs[1].wait(PATIENCE) == 0
        for each in (lab, other):
            gone = checkout.run_playbook("teardown", each.inventory())
            assert went_well(gone), ending(gone.stdout)
        assert host.run("ls /var/cache/nometal /var/lib/nometal/install", check=False).stdout == ""
