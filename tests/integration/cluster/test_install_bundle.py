"""The install_bundle module on a real libvirtd: everything that tells why it failed is in the bundle, and no secret."""

from __future__ import annotations

import base64
import json
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import private_libvirtd
from support.checkout import ROOT
from support.modules import run_beside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd

INSTALL = "/var/lib/nometal/install/demo"
BOOTSTRAP = "demo-x7k2p-bootstrap"
MAC = "52:54:00:00:00:99"
LOGS = "/var/log/libvirt/qemu"
OURS = ("/var/lib/nometal", "/run/nometal")
SECRETS = {
    "pull": "pLanted-pull-secret",
    "bmc": "pLanted-bmc-password",
    "config": "pLanted-config-password",
    "vault": "pLanted-vaulted-value",
    "kubeadmin": "pLant-ed9Ku-b3adm-1nPWD",
    "token": "pLanted-kubeconfig-token",
}
DOMAIN = """<domain type='qemu'><name>{name}</name><description>{text}</description><memory unit='MiB'>32</memory>
<os><type machine='q35'>hvm</type></os><devices>{devices}<interface type='bridge'><mac address='{mac}'/>
<source bridge='nm-demo'/></interface></devices></domain>"""
NETWORK = """<network><name>nometal-demo</name><bridge name='nm-demo'/><ip address='192.0.2.1' prefix='24'>
<dhcp><range start='192.0.2.130' end='192.0.2.135'/></dhcp></ip></network>"""
# What the real one does, as far as anybody sees: it must be told the addresses, and leaves an archive.
INSTALLER = """#!/bin/sh -e
echo "$@"; cd "$4"; test -e auth/kubeconfig
echo "level=debug msg=\\"Fetching {secrets}\\"" >&2
mkdir -p log-bundle-1/bootstrap/journals
echo "bootkube: {secrets}" >log-bundle-1/bootstrap/journals/bootkube.log
echo "{encoded}" | base64 -d >log-bundle-1/bootstrap/rendered.json
gzip -k log-bundle-1/bootstrap/rendered.json
tar -czf log-bundle-1.tar.gz log-bundle-1
"""


def auths(password: str) -> str:
    return json.dumps({"auths": {"registry.test": {"auth": base64.b64encode(f"me:{password}".encode()).decode()}}})


def plant(libvirtd: PrivateLibvirtd) -> None:
    """Every secret where the installation keeps it, and all of them in all that is gathered."""
    everything = " ".join(SECRETS.values())
    config = {"pullSecret": auths(SECRETS["pull"]), "platform": {"hosts": [{"bmc": {"password": SECRETS["config"]}}]}}
    ignition = {"source": f"data:;base64,{base64.b64encode(everything.encode()).decode()}"}
    installer = INSTALLER.format(
        secrets=everything, encoded=base64.b64encode(json.dumps({"files": [ignition]}).encode()).decode()
    )
    written = {
        f"{INSTALL}/install-config.yaml": yaml.safe_dump(config),
        f"{INSTALL}/secrets.json": json.dumps({"secrets": [SECRETS["vault"]]}),
        f"{INSTALL}/cluster/auth/kubeadmin-password": SECRETS["kubeadmin"],
        f"{INSTALL}/cluster/auth/kubeconfig": yaml.safe_dump({"users": [{"user": {"token": SECRETS["token"]}}]}),
        f"{INSTALL}/cluster/metadata.json": json.dumps({"infraID": "demo-x7k2p"}),
        f"{INSTALL}/cluster/.openshift_install.log": f'level=info msg="waits: {everything}"\n',
        f"{INSTALL}/output.log": f'level=error msg="{auths(SECRETS["pull"])} {everything}"\n',
        f"{INSTALL}/run.json": json.dumps({"exit_code": 5, "more": everything}),
        "/var/lib/nometal/bmc/demo/credentials.json": json.dumps(
            {"demo-0": {"username": "demo-0", "password": SECRETS["bmc"]}}
        ),
        "/var/lib/nometal/bmc/demo/service.log": f"a login with {everything}\n",
        "/var/lib/nometal/tools/openshift-install": installer,
        f"{LOGS}/{BOOTSTRAP}-serial0.log": f"login: core {everything}\n",
        f"{LOGS}/demo-0-console.log": f"console says {everything}\n",
    }
    for name, text in written.items():
        path = libvirtd.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    libvirtd.path("/var/lib/nometal/tools/openshift-install").chmod(0o755)


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        started.run(
            ["sh", "-ec", f"for d in {' '.join(OURS)}; do mkdir -p $d; mount -t tmpfs -o mode=755 tmpfs $d; done"]
        )
        yield started


def make(libvirtd: PrivateLibvirtd, *, check_mode: bool = False, **params: Any) -> dict[str, Any]:
    given = json.dumps({"ANSIBLE_MODULE_ARGS": {"lab": "demo", **params, "_ansible_check_mode": check_mode}})
    module = "ansible_collections.nometal.ipi.plugins.modules.install_bundle"
    command = ["env", f"PYTHONPATH={ROOT}/playbooks/collections", sys.executable, "-m", module]
    answer: dict[str, Any] = json.loads(libvirtd.run(command, input=given, check=False).stdout)
    return answer


def read(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2]: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in files.items() if file}


def test_everything_is_in_it_and_no_secret(libvirtd: PrivateLibvirtd) -> None:
    plant(libvirtd)
    libvirtd.run(["sh", "-ec", "virsh net-define /dev/stdin; virsh net-start nometal-demo"], input=NETWORK)
    lease = {"ip-address": "192.0.2.130", "mac-address": MAC, "hostname": "bootstrap", "expiry-time": 4000000000}
    libvirtd.path("/var/lib/libvirt/dnsmasq/nm-demo.status").write_text(json.dumps([lease]))
    video, text = "<video><model type='vga'/></video>", " ".join(SECRETS.values())
    vms = {BOOTSTRAP: (MAC, ""), "demo-0": ("52:54:00:00:00:01", video), "demo-1": ("52:54:00:00:00:02", "")}
    for name, (mac, devices) in vms.items():
        xml = DOMAIN.format(name=name, text=text, mac=mac, devices=devices)
        libvirtd.run(["sh", "-ec", f"virsh define /dev/stdin; virsh start --paused {name}"], input=xml)
    nodes = [{"vm_name": f"demo-{number}", "role": "control-plane", "ips": [f"192.0.2.2{number}"]} for number in (0, 1)]
    params: dict[str, Any] = {
        "nodes": [*nodes, {"vm_name": "demo-2", "role": "worker", "ips": ["192.0.2.22"]}],
        "networks": ["nometal-demo"],
        "tools": "/var/lib/nometal/tools",
        "extra": {"doctor.txt": f"all is well {text}"},
    }
    assert make(libvirtd, check_mode=True, **params)["contents"] == []
    assert not libvirtd.path(f"{INSTALL}/bundles").exists()

    answer = make(libvirtd, **params)
    assert answer["changed"]
    path = libvirtd.path(answer["path"])
    found = read(path)
    assert answer["contents"] == list(dict.fromkeys(["README.txt", *found]))
    assert set(found) == {
        "README.txt",
        *(f"installer/{name}" for name in ("openshift_install.log", "output.log", "run.json")),
        "libvirt.txt",
        *(f"bootstrap/{BOOTSTRAP}{ending}" for ending in (".xml", ".log", "-serial0.log")),
        *("nodes/demo-0.xml", "nodes/demo-0-console.log", "nodes/demo-0.log", "screenshots/demo-0.png"),
        *("nodes/demo-1.xml", "nodes/demo-1.log"),
        *("networks/nometal-demo.xml", "networks/nometal-demo-leases.txt", "networks/nm-demo.status"),
        "bmc/service.log",
        "extra/doctor.txt",
        "gather/output.txt",
        "gather/log-bundle-1/bootstrap/journals/bootkube.log",
        "gather/log-bundle-1/bootstrap/rendered.json",
    }
    assert found["screenshots/demo-0.png"].startswith(b"\x89PNG")
    said = found["gather/output.txt"].decode()
    assert "--bootstrap 192.0.2.130 --master 192.0.2.20 --master 192.0.2.21" in said
    assert "exit code 0" in said
    assert MAC in found["networks/nometal-demo-leases.txt"].decode()
    readme = found["README.txt"].decode()
    assert "screenshots/demo-1: it has no screen, for its VM has no video device" in readme
    assert f"nodes/demo-1-console.log: {LOGS}/demo-1-console.log is not there" in readme
    assert "nodes/demo-2.xml: libvirt at qemu:///system refused: Domain not found" in readme

    for name, data in found.items():
        assert b"pLant" not in data, name
        assert base64.b64encode(b"me:pLanted")[:12] not in data, name
    told = [name for name in found if name.endswith((".xml", "-console.log", "-serial0.log", ".json"))]
    for name in ("installer/output.log", "bmc/service.log", "extra/doctor.txt", "gather/output.txt", *told):
        assert b"[redacted]" in found[name] or name.startswith("networks/"), name
    assert "pLant" not in json.dumps({key: value for key, value in answer.items() if key != "invocation"})
    assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o600, 0)
    assert not list(libvirtd.path(INSTALL).glob("gather*"))
    assert libvirtd.path(f"{INSTALL}/cluster/.openshift_install.log").read_text().count("\n") == 1


def test_where_there_is_nothing_it_says_so(libvirtd: PrivateLibvirtd) -> None:
    answer = run_beside(libvirtd, "install_bundle", {"lab": "empty", "libvirt_uri": "qemu:///system?socket=/run/none"})
    assert answer["contents"] == ["README.txt"]
    path = libvirtd.path(answer["path"])
    readme = read(path)["README.txt"].decode()
    assert "bootstrap: Nothing answers for qemu:///system?socket=/run/none" in readme
    assert "gather: Nothing answers" in readme
    assert path.parents[1].stat().st_mode & 0o777 == 0o700
    assert make(libvirtd, lab="../demo")["failed"]
