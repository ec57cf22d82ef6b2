"""The cluster_watch module on a real libvirtd: nodes that hang are reset, others are not, and causes are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd
from support.checkout import ROOT
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd

HOME = "/var/lib/libvirt/nometal"
"""In the private libvirtd's own file system: the machine has no lab of ours."""
MODULE = f"""
from pathlib import Path
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
paths.INSTALLS, paths.RUNS = Path("{HOME}/installs"), Path("{HOME}/runs")
from ansible_collections.nometal.ipi.plugins.modules import cluster_watch
cluster_watch.main()
"""
DIRECTORY = f"{HOME}/installs/demo"
EVENTS = f"{HOME}/runs/demo/events.jsonl"
CONSOLES = "/var/log/libvirt/qemu"
DOMAIN = """
<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices>{nic}<serial type='pty'><log file='{consoles}/{name}-console.log' append='on'/></serial>
<controller type='usb' model='none'/><memballoon model='none'/></devices></domain>"""
NIC = "<interface type='network'><mac address='52:54:00:00:00:01'/><source network='lab'/></interface>"
PREPARATION = f"""
echo '<network><name>lab</name><bridge name="nm-lab"/></network>' | virsh net-create /dev/stdin &&
mkdir -p {DIRECTORY}/cluster && echo '{{"infraID": "demo-x7k2p"}}' >{DIRECTORY}/cluster/metadata.json
"""
NODES = [
    {"name": name, "vm_name": f"demo-{name}", "role": "control-plane"}
    for name in ("control-plane-0", "control-plane-1")
]
API = "https://api.demo.lab.example.test:6443"
IMPATIENCE = 0.003


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        started.run(["sh", "-c", PREPARATION])
        for node in NODES:
            switch_on(started, node["vm_name"])
        switch_on(started, "demo-x7k2p-bootstrap", NIC)
        switch_on(started, "other-x7k2p-bootstrap", NIC.replace(":01'", ":02'"))
        yield started


@dataclass(frozen=True)
class Installer:
    started: float
    process: subprocess.Popen[bytes]

    def end(self) -> None:
        self.process.terminate()


@pytest.fixture
def installer(libvirtd: PrivateLibvirtd) -> Iterator[Installer]:
    """It runs, as far as anybody can see, and waits for the API since long."""
    started = time.time()
    noted = {"commands": ["create cluster"], "current": "create cluster", "started": started, "ended": None}
    inside(libvirtd, "run.json").write_text(json.dumps(noted))
    entry = f'time="2026-10-01T09:00:00Z" level=info msg="Waiting up to 20m0s for the Kubernetes API at {API}..."\n'
    inside(libvirtd, "cluster/.openshift_install.log").write_text(entry)
    holder = libvirtd.command(["flock", "--no-fork", f"{DIRECTORY}/lock", "sleep", "600"])
    with subprocess.Popen(holder) as process:
        wait_until("it holds its lock", lambda: inside(libvirtd, "lock").exists() and is_held(libvirtd))
        yield Installer(started, process)
        process.terminate()


def inside(libvirtd: PrivateLibvirtd, name: str) -> Path:
    return libvirtd.path(f"{DIRECTORY}/{name}")


def is_held(libvirtd: PrivateLibvirtd) -> bool:
    return libvirtd.run(["flock", "--nonblock", f"{DIRECTORY}/lock", "true"], check=False).returncode != 0


def switch_on(libvirtd: PrivateLibvirtd, name: str, nic: str = "") -> None:
    xml = DOMAIN.format(name=name, nic=nic, consoles=CONSOLES)
    libvirtd.run(["virsh", "--connect", "qemu:///system", "create", "/dev/stdin"], input=xml)


@contextmanager
def watching(libvirtd: PrivateLibvirtd) -> Iterator[subprocess.Popen[str]]:
    given = {"lab": "demo", "nodes": NODES, "patience": IMPATIENCE, "bmc_home": HOME, "vips": {"api": ["127.0.0.1"]}}
    environment = ["env", f"PYTHONPATH={ROOT}/playbooks/collections", sys.executable, "-c", MODULE]
    command = libvirtd.command(environment)
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(json.dumps({"ANSIBLE_MODULE_ARGS": given}))
        process.stdin.close()
        process.stdin = None
        try:
            yield process
        finally:
            process.kill()


def result_of(watch: subprocess.Popen[str]) -> dict[str, Any]:
    return json.loads(watch.communicate(timeout=PATIENCE)[0])


def told(libvirtd: PrivateLibvirtd) -> list[dict[str, Any]]:
    with suppress(FileNotFoundError):
        lines = libvirtd.path(EVENTS).read_text().splitlines()
        return [json.loads(line) for line in lines]
    return []


def wait_until_told(libvirtd: PrivateLibvirtd, who: str, words: str) -> None:
    def has_told() -> bool:
        return any(event["who"] == who and words in event["state"] for event in told(libvirtd))

    wait_until(f"{who} {words}", has_told, seen=lambda: told(libvirtd))


@contextmanager
def resets(libvirtd: PrivateLibvirtd) -> Iterator[list[str]]:
    """What libvirt tells of VMs that are reset: more than once for each time, as SeaBIOS then does it again itself."""
    seen: list[str] = []
    events = libvirtd.command(["virsh", "--connect", "qemu:///system", "event", "--event", "reboot", "--loop"])
    with subprocess.Popen(["stdbuf", "-oL", *events], text=True, stdout=subprocess.PIPE) as process:
        lines = process.stdout
        assert lines
        reader = threading.Thread(target=lambda: seen.extend(lines), daemon=True)
        reader.start()
        yield seen
        process.terminate()
        reader.join()


def test_a_node_that_hangs_is_reset_once_and_only_that(libvirtd: PrivateLibvirtd, installer: Installer) -> None:
    speaks = libvirtd.path(f"{CONSOLES}/demo-control-plane-1-console.log")
    speaks.write_text("Linux\n")
    os.utime(speaks, (time.time() + 5, time.time() + 5))
    with resets(libvirtd) as seen, watching(libvirtd) as first:
        wait_until_told(libvirtd, "control-plane-0", "was reset")
        wait_until_told(libvirtd, "bootstrap", "has no address")
        wait_until("the reset is seen", lambda: seen)
        libvirtd.path(EVENTS).unlink()  # what comes now is the second's
        with watching(libvirtd) as second:
            handed_over = result_of(first)
            before = len(seen)
            wait_until_told(libvirtd, "control-plane-0", "without a sign")
            wait_until_told(libvirtd, "BMC", "has no BMCs on this host")
            installer.end()
            result = result_of(second)
            assert len(seen) == before
    assert {line.split("'")[3] for line in seen if "reboot" in line} == {"demo-control-plane-0"}
    assert "Another run has begun to watch" in handed_over["msg"]
    assert json.loads(inside(libvirtd, "power-cycled.json").read_text()) == {
        str(installer.started): ["control-plane-0"]
    }
    assert (result["state"], result["stage"], result["power_cycled"]) == ("interrupted", "api", [])
    assert not result["changed"]
    assert not any("control-plane-1" in trouble for trouble in result["troubles"])
    [bootstrap] = [finding for finding in result["diagnosis"] if finding.startswith("bootstrap")]
    assert "demo-x7k2p-bootstrap, MAC address 52:54:00:00:00:01, has no address" in bootstrap


def test_another_run_may_reset_it_again(libvirtd: PrivateLibvirtd, installer: Installer) -> None:
    with watching(libvirtd) as watch:
        wait_until_told(libvirtd, "control-plane-0", "was reset")
        installer.end()
        result = result_of(watch)
    assert (result["changed"], result["power_cycled"]) == (True, ["control-plane-0"])
    assert [event for event in told(libvirtd) if event.get("trouble")]
