"""The stand-in installer beside a private libvirtd, each in a directory of its own; cluster `one`, of three hosts.

bench = stand_in_bench.Bench(libvirtd, directory, "4.20.3")
bench.configure(externalBridge="elsewhere")  # writes install-config.yaml
bench.play(fail="initialize")  # the scenario, see support/stand_in/scenario.py
bench.run("create", "cluster").returncode
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from support import bmc_lab, private_libvirtd, processes, stand_in_mirror
from support.stand_in.state import STATES
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

POOLS = "/var/lib/libvirt/openshift-images"
COMMAND = "stand-in-cluster"
FAST = {"speed": 0.01, "kubectl": ""}
AUTH = "aWQ6cGFzcwo="
"""Of the pull secret."""


@dataclass
class Bench:
    """An installer in a directory of its own, and where its assets go."""

    libvirtd: PrivateLibvirtd
    place: Path
    version: str

    def __post_init__(self) -> None:
        self.program = stand_in_mirror.program(self.place / "bin/openshift-install", self.version)
        stand_in_mirror.program(self.place / "bin/oc", self.version)
        self.assets = self.place / "assets"
        self.temporary = self.place / "tmp"
        self.temporary.mkdir()
        self.play()

    def play(self, **scenario: Any) -> None:
        new = self.place / "bin/new"
        new.write_text(json.dumps({"*": {**FAST, **scenario}}))
        new.replace(self.place / "bin/stand-in-installer.json")

    def configure(self, **platform: Any) -> None:
        self.assets.mkdir(exist_ok=True)
        (self.assets / "install-config.yaml").write_text(yaml.safe_dump(config(**platform)))

    def command(self, *arguments: str) -> list[str]:
        places = [
            f"TMPDIR={self.temporary}",
            f"XDG_CACHE_HOME={self.place}/cache",
            f"PATH={self.place}/bin:/usr/sbin:/usr/bin",
        ]
        return self.libvirtd.command(["env", *places, str(self.program), *arguments, f"--dir={self.assets}"])

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), check=False, text=True, capture_output=True, timeout=120)

    def oc(self, *arguments: str) -> Any:
        kubeconfig = f"--kubeconfig={self.assets}/auth/kubeconfig"
        command = [str(self.place / "bin/oc"), kubeconfig, "get", *arguments, "-o", "json", "--request-timeout=10s"]
        return json.loads(self.libvirtd.run(command).stdout)

    def etcdctl(self, *words: str) -> str:
        """In the pod of the first node."""
        kubeconfig = f"--kubeconfig={self.assets}/auth/kubeconfig"
        pod = ["rsh", "-n", "openshift-etcd", "etcd-control-plane-0", "etcdctl"]
        return self.libvirtd.run([str(self.place / "bin/oc"), kubeconfig, *pod, *words]).stdout

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(self.command(*arguments), text=True, stderr=subprocess.DEVNULL) as running:
            try:
                yield running
            finally:
                running.kill()

    def waits_for(self, text: str) -> None:
        wait_until(f"the log says {text!r}", lambda: text in self.log(), seen=lambda: self.log()[-3000:])

    def log(self) -> str:
        file = self.assets / ".openshift_install.log"
        return file.read_text() if file.exists() else ""

    def infra_id(self) -> str:
        return str(json.loads((self.assets / "metadata.json").read_text())["infraID"])

    def virsh(self, *arguments: str) -> list[str]:
        return self.libvirtd.run(["virsh", "-q", *arguments]).stdout.split()

    def answers(self) -> bool:
        kubeconfig = f"--kubeconfig={self.assets}/auth/kubeconfig"
        command = [str(self.place / "bin/oc"), kubeconfig, "get", "nodes", "--request-timeout=1s"]
        return self.libvirtd.run(command, check=False).returncode == 0

    def is_kept(self) -> bool:
        """Whether there is something that the cluster can come back from."""
        return self.libvirtd.path(f"{STATES}/{self.infra_id()}").exists()

    def end_process(self) -> None:
        """Of the installed cluster, as if the host were switched off."""
        self.libvirtd.run(["sh", "-c", f"kill -KILL $(cat {STATES}/{self.infra_id()}/pid)"])

    def come_back(self) -> None:
        """As a unit of systemd does it on a host."""
        own = self.infra_id()
        command = [str(self.program), COMMAND, own, f"{STATES}/{own}/told.json"]
        self.libvirtd.run(["sh", "-c", '"$@" >/dev/null 2>&1 &', "-", *command])

    def clean(self) -> None:
        """What the product's removal is for."""
        for name in self.virsh("list", "--all", "--name"):
            self.libvirtd.run(["virsh", "destroy", name], check=False)
            if name.endswith("-bootstrap"):
                self.libvirtd.run(["virsh", "undefine", name, "--nvram"])
        for pool in self.virsh("pool-list", "--all", "--name"):
            self.libvirtd.run(["virsh", "pool-destroy", pool], check=False)
            self.libvirtd.run(["virsh", "pool-undefine", pool])
        self.libvirtd.run(["rm", "-rf", POOLS])
        self.until_the_cluster_is_gone()

    def until_the_cluster_is_gone(self) -> None:
        show = ["ip", "-br", "-4", "address"]
        wait_until("the cluster is gone", lambda: "/32" not in self.libvirtd.run(show).stdout)


@contextmanager
def libvirtd_with_bridge() -> Iterator[PrivateLibvirtd]:
    """The bridge that the configuration names, with carrier."""
    with private_libvirtd.start() as started:
        started.run(["ip", "link", "add", "baremetal", "up", "type", "bridge"])
        started.run(["ip", "link", "add", "one", "up", "master", "baremetal", "type", "veth", "peer", "name", "other"])
        started.run(["ip", "link", "set", "other", "up"])
        # Before the kernel has seen the carrier, libvirt does not hold the bridge to be active.
        shown = ["ip", "-br", "link", "show", "baremetal"]
        wait_until("the bridge is up", lambda: started.run(shown).stdout.split()[1] == "UP")
        yield started


def send(running: subprocess.Popen[str], number: signal.Signals) -> None:
    """To the program itself, for whom others wait."""
    found = processes.descendants(running.pid)
    [own] = [pid for pid in found if processes.status(pid).get("Name", "").startswith("openshift")]
    os.kill(own, number)


def config(**platform: Any) -> dict[str, Any]:
    hosts = [
        {
            "name": f"control-plane-{number}",
            "role": "master",
            "bootMACAddress": f"52:54:00:00:00:0{number}",
            "bmc": {
                "address": f"redfish-virtualmedia+http://127.0.0.1:8000/redfish/v1/Systems/{bmc_lab.UUIDS[number]}",
                "username": bmc_lab.USER,
                "password": bmc_lab.PASSWORD,
            },
        }
        for number in range(3)
    ]
    baremetal = {
        "apiVIPs": ["192.168.77.5"],
        "ingressVIPs": ["192.168.77.6"],
        "provisioningNetwork": "Disabled",
        "externalBridge": "baremetal",
        "hosts": hosts,
    }
    for key in [key for key in platform if key.endswith("VIP")]:
        del baremetal[f"{key}s"]
    return {
        "apiVersion": "v1",
        "metadata": {"name": "one"},
        "baseDomain": "lab.test",
        "networking": {
            "networkType": "OVNKubernetes",
            "machineNetwork": [{"cidr": "192.168.77.0/24"}],
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
            "serviceNetwork": ["172.30.0.0/16"],
        },
        "controlPlane": {"name": "master", "replicas": 3},
        "compute": [{"name": "worker", "replicas": 0}],
        "platform": {"baremetal": {**baremetal, **platform}},
        "pullSecret": json.dumps({"auths": {"fake": {"auth": AUTH}}}),
    }
