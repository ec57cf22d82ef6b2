"""The redfish_emulator module on a real libvirtd, where no service manager runs, with the real service."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libvirt
import pytest
from support import private_libvirtd, processes
from support.checkout import ROOT
from support.modules import run_beside

from ansible_collections.nometal.ipi.plugins.module_utils._host import network_hook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

NODES: list[dict[str, Any]] = [
    {"vm_name": f"demo-{name}", "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), "bmc": {"address": f"to {name}"}}
    for name in ("control-plane-0", "worker-0", "worker-1")
]
VM = """
<domain type='qemu'><name>{vm_name}</name><uuid>{uuid}</uuid><memory unit='MiB'>64</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><disk type='file' device='cdrom'><target dev='sdz' bus='sata'/><readonly/></disk></devices></domain>
"""
NETWORK = "<network><name>any</name><bridge name='any0'/></network>"
HOME = "/var/lib/libvirt/bmc"  # which is the sandbox's own
DEMO = f"{HOME}/demo"
MEDIA = "/var/lib/libvirt/images/nometal-demo-media"
POOL_STEPS = [f"{verb} nometal-demo-media" for verb in ("define", "build", "start", "autostart")]
MAKING = [
    *POOL_STEPS,
    *(f"make {path}" for path in (DEMO, f"{DEMO}/tls", f"{DEMO}/state", MEDIA)),
    *(f"write {thing}" for thing in ("credentials", "CA", "certificate", "configuration")),
    "install service",
    "start service",
]
REMOVING = ["remove service", *(f"{verb} nometal-demo-media" for verb in ("stop", "delete", "undefine"))]
REMOVING += ["remove directory"]
# The module without Ansible. Arguments: its parameters, after how many steps it is killed, and how long it waits.
CALL = """
import json, os, sys
from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._redfish import readiness
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.emulator import EmulatorPort
from ansible_collections.nometal.ipi.plugins.modules import redfish_emulator
apply, left = EmulatorPort.apply, int(sys.argv[2])
readiness.PATIENCE = float(sys.argv[3])
def limited(port, step):
    global left
    if not left:
        os._exit(9)
    left -= 1
    apply(port, step)
EmulatorPort.apply = limited
try:
    print(json.dumps(redfish_emulator.run(json.loads(sys.argv[1]), check_mode=False)))
except OperatorError as error:
    print(json.dumps({"msg": str(error)}))
"""
ASK = f"""
import base64, json, ssl, sys, urllib.request
login = json.load(open("{DEMO}/credentials.json"))[sys.argv[2]]
secret = base64.b64encode(f"{{login['username']}}:{{login['password']}}".encode()).decode()
request = urllib.request.Request(sys.argv[1], headers={{"Authorization": f"Basic {{secret}}"}})
print(urllib.request.urlopen(request, context=ssl.create_default_context(cafile="{DEMO}/tls/ca.pem"), timeout=5).status)
"""


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        connection = libvirt.open(started.uri)
        for node in NODES:
            connection.defineXML(VM.format(**node))
        connection.close()
        yield started


@pytest.fixture(scope="module")
def software(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the role installs it, but with the virtualenv of the tests."""
    directory = tmp_path_factory.mktemp("software")
    put_program(directory, f'PYTHONPATH={ROOT}/roles/bmc_emulation/files exec {sys.executable} "$@"')
    return directory


def put_program(directory: Path, script: str) -> None:
    program = directory / "bin/python"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (directory / "digest").write_text(f"{script}\n")


@pytest.fixture
def params(software: Path, libvirtd: PrivateLibvirtd) -> Iterator[dict[str, Any]]:
    # The tests' Python may lie where only root reads; that the user is another one is shown on a whole host.
    listen = [{"address": "127.0.0.1", "port": 8000}]
    given = {"lab": "demo", "home": HOME, "software": str(software), "user": "root", "listen": listen, "nodes": NODES}
    yield given
    call(libvirtd, {**given, "state": "absent"})


def emulator(libvirtd: PrivateLibvirtd, params: dict[str, Any], **options: Any) -> dict[str, Any]:
    return run_beside(libvirtd, "redfish_emulator", params, **options)


def call(libvirtd: PrivateLibvirtd, params: dict[str, Any], steps: int = -1, patience: float = 30) -> dict[str, Any]:
    defaults = {"tls": True, "names": [], "media": {"max_bytes": 1, "timeout": 1}, "libvirt_uri": "qemu:///system"}
    given = json.dumps({**defaults, "state": "present", **params})
    command = [sys.executable, "-c", CALL, given, str(steps), str(patience)]
    done = libvirtd.run(["env", f"PYTHONPATH={ROOT}/playbooks/collections", *command], check=False)
    assert done.returncode in (0, 9), done.stderr
    result: dict[str, Any] = json.loads(done.stdout or "{}")
    return result


def service(libvirtd: PrivateLibvirtd) -> int:
    return next(pid for pid in processes.descendants(libvirtd.sandbox.init) if is_service(pid))


def is_service(pid: int) -> bool:
    return processes.command_line(pid)[1:] == ["-m", "nometal_bmc", f"{DEMO}/config.json"]


def status(libvirtd: PrivateLibvirtd, node: dict[str, Any], account: str = "operator", port: int = 8000) -> str:
    url = f"https://127.0.0.1:{port}/redfish/v1/Systems/{node['uuid']}"
    done = libvirtd.run(["/usr/bin/python3", "-c", ASK, url, account], check=False)
    code = re.search(r"^(?:urllib.error.HTTPError: HTTP Error )?(\d+)", done.stdout + done.stderr, re.MULTILINE)
    return code[1] if code else done.stderr


def seconds_until_it_answers(libvirtd: PrivateLibvirtd) -> float:
    started = time.monotonic()
    while status(libvirtd, NODES[0]) != "200":
        assert time.monotonic() < started + 20
    return time.monotonic() - started


def test_acceptance(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    foreseen = emulator(libvirtd, params, check_mode=True)
    assert foreseen["steps"] == MAKING
    assert not libvirtd.path(DEMO).exists()

    made = emulator(libvirtd, params)
    assert made["steps"] == MAKING
    assert made["shown_diff"] == foreseen["shown_diff"] != ""
    assert made["ca_file"] == f"{DEMO}/tls/ca.pem"
    assert made["nodes"][0] == {
        "name": "demo-control-plane-0",
        "uuid": NODES[0]["uuid"],
        "address": "to control-plane-0",
        "credentials": {"file": f"{DEMO}/credentials.json", "key": "demo-control-plane-0"},
    }
    assert [status(libvirtd, NODES[0], node["vm_name"]) for node in NODES[:2]] == ["200", "404"]
    running = service(libvirtd)
    for check_mode in (True, False):
        assert emulator(libvirtd, params, check_mode=check_mode)["steps"] == []

    fewer = {**params, "nodes": NODES[:-1]}
    assert emulator(libvirtd, fewer, check_mode=True)["steps"] == ["write credentials", "write configuration"]
    assert emulator(libvirtd, fewer)["steps"] == ["write credentials", "write configuration"]
    assert status(libvirtd, NODES[-1]) == "404"
    assert service(libvirtd) == running

    absent = {**params, "state": "absent"}
    assert emulator(libvirtd, absent, check_mode=True)["steps"] == REMOVING
    assert service(libvirtd) == running
    assert emulator(libvirtd, absent)["steps"] == REMOVING
    assert not any(map(is_service, processes.descendants(libvirtd.sandbox.init)))
    assert not any(libvirtd.path(path).exists() for path in (HOME, MEDIA, str(network_hook.ENTRIES)))
    for check_mode in (True, False):
        assert emulator(libvirtd, absent, check_mode=check_mode)["steps"] == []


def test_what_was_killed_at_any_step_is_completed(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    for _step in MAKING[:-1]:
        assert call(libvirtd, params, steps=1) == {}
    assert call(libvirtd, params)["steps"] == MAKING[-1:]
    assert call(libvirtd, params)["steps"] == []
    libvirtd.path(f"{DEMO}/serving").unlink()  # killed just before it was written
    assert call(libvirtd, params)["steps"] == ["restart service"]
    for _step in REMOVING[:-1]:
        assert call(libvirtd, {**params, "state": "absent"}, steps=1) == {}
    assert call(libvirtd, {**params, "state": "absent"})["steps"] == REMOVING[-1:]
    assert call(libvirtd, {**params, "state": "absent"})["steps"] == []


def test_what_changes_while_it_runs(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    call(libvirtd, params)
    running, credentials = service(libvirtd), libvirtd.path(f"{DEMO}/credentials.json")

    logins = json.loads(credentials.read_text())
    logins["demo-worker-0"] |= {"password": "chosen by hand"}
    del logins["demo-worker-1"]
    credentials.write_text(json.dumps(logins))
    credentials.chmod(0o644)
    mended = call(libvirtd, params)
    assert mended["steps"] == [f"protect {DEMO}/credentials.json", "write credentials", "write configuration"]
    assert "chosen by hand" not in json.dumps(mended)
    assert [status(libvirtd, node, node["vm_name"]) for node in NODES] == ["200"] * 3

    ca = libvirtd.path(f"{DEMO}/tls/ca.pem").read_text()
    assert call(libvirtd, {**params, "names": ["bmc.example.test"]})["steps"] == ["write certificate"]
    assert libvirtd.path(f"{DEMO}/tls/ca.pem").read_text() == ca
    assert service(libvirtd) == running

    elsewhere = {**params, "names": ["bmc.example.test"], "listen": [{"address": "127.0.0.2", "port": 8001}]}
    changes = ["write certificate", "write configuration", "restart service"]
    assert call(libvirtd, elsewhere)["steps"] == changes
    assert call(libvirtd, {**elsewhere, "tls": False})["steps"] == ["write configuration", "restart service"]


def test_it_is_back_after_crashes_and_when_a_network_starts(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    call(libvirtd, params)
    os.kill(service(libvirtd), 9)
    assert seconds_until_it_answers(libvirtd) < 2

    libvirtd.run(["pkill", "-KILL", "--full", "^/usr/bin/python3 /var/lib/libvirt/bmc/demo/supervisor"])  # a power cut
    while any(map(is_service, processes.descendants(libvirtd.sandbox.init))):
        time.sleep(0.02)
    dispatcher = libvirtd.path(str(network_hook.DISPATCHER))
    dispatcher.parent.mkdir(parents=True)
    dispatcher.write_text(network_hook.DISPATCHER_TEXT)
    dispatcher.chmod(0o755)
    libvirtd.restart()
    libvirtd.run(["virsh", "net-create", "/dev/stdin"], input=NETWORK)
    assert seconds_until_it_answers(libvirtd) < 2
    assert call(libvirtd, params)["steps"] == []


def test_a_missing_vm_is_refused_and_nothing_made(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    stranger = {"vm_name": "demo-late", "uuid": str(uuid.uuid4())}
    told = call(libvirtd, {**params, "nodes": [*NODES, stranger]})["msg"]
    assert told == "VMs are missing, or have other UUIDs: demo-late. Run playbooks/nodes.yml."
    assert not libvirtd.path(HOME).exists()


def test_a_service_that_fails_is_quoted(libvirtd: PrivateLibvirtd, params: dict[str, Any], tmp_path: Path) -> None:
    put_program(tmp_path, "echo The port is taken, sorry.; exit 1")
    told = call(libvirtd, {**params, "software": str(tmp_path)}, patience=1)["msg"]
    assert "does not answer for demo-control-plane-0, demo-worker-0, demo-worker-1" in told
    assert "The port is taken, sorry." in told


def test_before_the_role_has_run_it_foresees_all(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    bare = {**params, "user": "nobody-yet", "software": "/opt/none"}
    assert emulator(libvirtd, bare, check_mode=True)["steps"] == MAKING
    refused = emulator(libvirtd, bare)
    assert refused["failed"]
    assert "role nometal.ipi.bmc_emulation makes" in refused["msg"]
