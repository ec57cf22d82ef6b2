"""The redfish_emulator module on a real libvirtd, where no service manager runs, with the real service."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libvirt
import pytest
from support import private_libvirtd, processes
from support.checkout import ROOT
from support.modules import run_beside
from support.waiting import wait_until

from ansible_collections.nometal.ipi.plugins.module_utils._core import network_hook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

NODES: list[dict[str, Any]] = [
    {"vm_name": f"demo-{name}", "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), "bmc": {"address": f"to {name}"}}
    for name in ("control-plane-0", "worker-0", "worker-1")
]
STRANGERS = [
    {"vm_name": "others", "uuid": str(uuid.uuid4()), "owner": "other"},
    {"vm_name": "unmarked", "uuid": str(uuid.uuid4()), "owner": ""},
]
VM = """
<domain type='qemu'><name>{vm_name}</name><uuid>{uuid}</uuid><memory unit='MiB'>64</memory>
<metadata><nometal:vm xmlns:nometal="urn:nometal:ipi" owner="{owner}"/></metadata>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><disk type='file' device='cdrom'><target dev='sdz' bus='sata'/><readonly/></disk></devices></domain>
"""
NETWORK = "<network><name>any</name><bridge name='any0'/></network>"
HOME = "/var/lib/libvirt/bmc"  # which is the sandbox's own
DEMO = f"{HOME}/demo"
MEDIA = "/var/lib/libvirt/images/nometal-demo-media"
MEDIA_LIMITS = {"max_bytes": 2**30, "timeout": 60}
POOL_STEPS = [f"{verb} nometal-demo-media" for verb in ("define", "build", "start", "autostart")]
DIRECTORIES = (DEMO, f"{DEMO}/state", f"{DEMO}/broker", f"{DEMO}/broker/state")
MAKING = [
    *POOL_STEPS,
    *(f"make {path}" for path in (*DIRECTORIES, f"{DEMO}/tls", MEDIA)),
    *(f"write {thing}" for thing in ("credentials", "CA", "certificate", "configuration")),
    "install service",
    "start service",
]
USERS = {"user": "daemon", "broker_user": "games"}
REMOVING = ["remove service", *(f"{verb} nometal-demo-media" for verb in ("stop", "delete", "undefine"))]
REMOVING += ["remove directory"]
# The module without Ansible. Arguments: its parameters, after how many steps it is killed, and how long it waits.
CALL = """
import json, os, sys
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._bmc import readiness
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.emulator import EmulatorPort
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.resource import BmcService
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
    print(json.dumps(BmcService.run(json.loads(sys.argv[1]), check_mode=False)))
except OperatorError as error:
    print(json.dumps({"msg": str(error)}))
"""
ASK = f"""
import base64, json, ssl, sys, urllib.request
login = json.load(open("{DEMO}/credentials.json"))[sys.argv[2]]
secret = base64.b64encode(f"{{login['username']}}:{{login['password']}}".encode()).decode()
request = urllib.request.Request(sys.argv[1], headers={{"Authorization": f"Basic {{secret}}"}})
context = ssl.create_default_context(cafile="{DEMO}/tls/ca.pem")
print(urllib.request.urlopen(request, context=context, timeout=60).status)
"""

CHANGE_PASSWORD = f"""
import base64, json, ssl, sys, urllib.request
name, password = sys.argv[1:]
login = json.load(open("{DEMO}/credentials.json"))[name]
secret = base64.b64encode(f"{{login['username']}}:{{login['password']}}".encode()).decode()
url = f"https://127.0.0.1:8000/redfish/v1/AccountService/Accounts/{{name}}"
body = json.dumps({{"Password": password}}).encode()
request = urllib.request.Request(url, body, {{"Authorization": f"Basic {{secret}}"}}, method="PATCH")
context = ssl.create_default_context(cafile="{DEMO}/tls/ca.pem")
print(urllib.request.urlopen(request, context=context, timeout=60).status)
"""


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        define(started)
        yield started


def define(libvirtd: PrivateLibvirtd) -> None:
    connection = libvirt.open(libvirtd.uri)
    for node in [*({**node, "owner": "demo"} for node in NODES), *STRANGERS]:
        connection.defineXML(VM.format(**node))
    connection.close()


@contextmanager
def undefined(libvirtd: PrivateLibvirtd, *nodes: dict[str, Any]) -> Iterator[None]:
    for node in nodes:
        libvirtd.run(["virsh", "undefine", node["vm_name"]])
    try:
        yield
    finally:
        define(libvirtd)


@pytest.fixture(scope="module")
def software(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the role installs it, but with the virtualenv of the tests."""
    directory = tmp_path_factory.mktemp("software")
    put_program(directory, f'PYTHONPATH={ROOT}/bmc exec {sys.executable} "$@"')
    return directory


def put_program(directory: Path, script: str) -> None:
    program = directory / "bin/python"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def params(software: Path, libvirtd: PrivateLibvirtd) -> Iterator[dict[str, Any]]:
    # Without a system bus the service runs as root; that it does as its user is shown on a whole host.
    listen = [{"address": "127.0.0.1", "port": 8000}]
    given = {"lab": "demo", "home": HOME, "software": str(software), **USERS, "listen": listen, "nodes": NODES}
    yield given
    call(libvirtd, {**given, "state": "absent"})


def emulator(libvirtd: PrivateLibvirtd, params: dict[str, Any], **options: Any) -> dict[str, Any]:
    return run_beside(libvirtd, "redfish_emulator", params, **options)


def call(libvirtd: PrivateLibvirtd, params: dict[str, Any], steps: int = -1, patience: float = 30) -> dict[str, Any]:
    defaults = {"tls": True, "names": [], "media": MEDIA_LIMITS, "ipmi_addresses": [], "libvirt_uri": "qemu:///system"}
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


def wait_until_it_answers(libvirtd: PrivateLibvirtd) -> None:
    wait_until("it answers", lambda: status(libvirtd, NODES[0]) == "200", seen=lambda: status(libvirtd, NODES[0]))


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
    os.kill(running, signal.SIGSTOP)
    assert emulator(libvirtd, params, check_mode=True)["steps"] == ["await service"]
    os.kill(running, signal.SIGCONT)

    fewer, name = {**params, "nodes": NODES[:-1]}, NODES[-1]["vm_name"]
    with undefined(libvirtd, NODES[-1]):
        steps = [f"write credentials (removed: {name})", "write configuration"]
        assert emulator(libvirtd, fewer, check_mode=True)["steps"] == steps
        assert emulator(libvirtd, fewer)["steps"] == steps
        assert status(libvirtd, NODES[-1]) == "404"
    steps = [f"write credentials (new: {name})", "write configuration"]
    assert emulator(libvirtd, params)["steps"] == steps
    assert service(libvirtd) == running

    absent = {**params, "state": "absent"}
    assert emulator(libvirtd, absent, check_mode=True)["steps"] == REMOVING
    assert service(libvirtd) == running
    assert emulator(libvirtd, absent)["steps"] == REMOVING
    assert not any(map(is_service, processes.descendants(libvirtd.sandbox.init)))
    assert not any(libvirtd.path(path).exists() for path in (HOME, MEDIA, str(network_hook.ENTRIES)))
    for check_mode in (True, False):
        assert emulator(libvirtd, absent, check_mode=check_mode)["steps"] == []


def test_a_vm_that_is_not_declared_any_more_keeps_its_bmc_until_it_is_gone(
    libvirtd: PrivateLibvirtd, params: dict[str, Any]
) -> None:
    call(libvirtd, params)
    logins, left = json.loads(libvirtd.path(f"{DEMO}/credentials.json").read_text()), NODES[-1]
    fewer = call(libvirtd, {**params, "nodes": NODES[:-1]})
    assert fewer["steps"] == []
    assert [node["name"] for node in fewer["nodes"]] == [node["vm_name"] for node in NODES[:-1]]
    address = f"redfish-virtualmedia+https://127.0.0.1:8000/redfish/v1/Systems/{left['uuid']}"
    assert fewer["undeclared"] == [{"name": left["vm_name"], "address": address}]
    assert [status(libvirtd, left, account) for account in ("operator", left["vm_name"])] == ["200", "200"]
    assert json.loads(libvirtd.path(f"{DEMO}/credentials.json").read_text()) == logins


def test_by_ipmi_it_keeps_its_port_unless_another_needs_it(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    nodes = [
        {**node, "bmc": {"protocol": "ipmi", "host": "127.0.0.1", "port": port}}
        for port, node in enumerate(NODES, 6230)
    ]
    by_ipmi, name = {**params, "listen": []}, NODES[-1]["vm_name"]
    call(libvirtd, {**by_ipmi, "nodes": nodes})
    fewer = call(libvirtd, {**by_ipmi, "nodes": nodes[:-1]})
    assert (fewer["steps"], fewer["undeclared"]) == ([], [{"name": name, "address": "ipmi://127.0.0.1:6232"}])
    fewer = call(libvirtd, {**by_ipmi, "nodes": [nodes[0], {**nodes[1], "bmc": nodes[2]["bmc"]}]})
    assert fewer["steps"] == [f"write credentials (removed: {name})", "write configuration"]
    assert fewer["undeclared"] == [{"name": name, "address": None}]


def test_a_lab_with_discs_in_its_drives_stays_with_redfish(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    call(libvirtd, params)
    name, image = NODES[0]["vm_name"], f"{MEDIA}/{'0' * 64}.iso"
    libvirtd.path(image).write_text("")
    libvirtd.run(["virsh", "change-media", name, "sdz", image, "--insert", "--config"])
    bmc = {"protocol": "ipmi", "host": "127.0.0.1", "port": 6230}
    by_ipmi = {**params, "listen": [], "nodes": [{**NODES[0], "bmc": bmc}]}
    for refused in (call(libvirtd, by_ipmi), emulator(libvirtd, by_ipmi, check_mode=True)):
        assert refused["msg"].startswith(f"VM {name} has a disc in its drive, which goes with Redfish: eject it")
    assert libvirtd.path(image).exists()
    eject(libvirtd, refused["msg"])
    libvirtd.run(["virsh", "change-media", name, "sdz", image, "--insert", "--config"])
    libvirtd.run(["virsh", "start", name])
    eject(libvirtd, call(libvirtd, by_ipmi)["msg"])
    assert "undefine nometal-demo-media" in call(libvirtd, by_ipmi)["steps"]
    libvirtd.run(["virsh", "destroy", name])


def eject(libvirtd: PrivateLibvirtd, message: str) -> None:
    """As the message says, which it does for one VM."""
    [command] = re.findall("`(virsh [^`]*)`", message)
    libvirtd.run(command.split())


@pytest.mark.parametrize(
    ("making", "removing"),
    [pytest.param(5, 2, id="some"), pytest.param(1, 1, id="each", marks=pytest.mark.full)],
)
def test_what_was_killed_at_any_step_is_completed(
    libvirtd: PrivateLibvirtd, params: dict[str, Any], making: int, removing: int
) -> None:
    for _step in MAKING[:-1:making]:
        assert call(libvirtd, params, steps=making) == {}
    assert call(libvirtd, params)["steps"] == MAKING[-1:]
    assert call(libvirtd, params)["steps"] == []
    libvirtd.path(f"{DEMO}/serving").unlink()  # killed just before it was written
    assert call(libvirtd, params)["steps"] == ["restart service"]
    for _step in REMOVING[:-1:removing]:
        assert call(libvirtd, {**params, "state": "absent"}, steps=removing) == {}
    assert call(libvirtd, {**params, "state": "absent"})["steps"] == REMOVING[-1:]
    assert call(libvirtd, {**params, "state": "absent"})["steps"] == []


def test_what_changes_while_it_runs(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    call(libvirtd, params)
    running, credentials = service(libvirtd), libvirtd.path(f"{DEMO}/credentials.json")

    logins = json.loads(credentials.read_text())
    logins["demo-worker-0"] |= {"username": "me", "password": "chosen by hand"}
    del logins["demo-worker-1"]
    credentials.write_text(json.dumps(logins))
    credentials.chmod(0o644)
    mended = call(libvirtd, params)
    assert mended["steps"] == [
        f"protect {DEMO}/credentials.json",
        "write credentials (new: demo-worker-1; other username: demo-worker-0)",
        "write configuration",
    ]
    assert "chosen by hand" not in json.dumps(mended)
    assert [status(libvirtd, node, node["vm_name"]) for node in NODES] == ["200"] * 3

    ca = libvirtd.path(f"{DEMO}/tls/ca.pem").read_text()
    assert call(libvirtd, {**params, "names": ["bmc.example.test"]})["steps"] == ["write certificate"]
    assert libvirtd.path(f"{DEMO}/tls/ca.pem").read_text() == ca
    libvirtd.path(f"{DEMO}/tls/ca.pem").unlink()
    assert call(libvirtd, {**params, "names": ["bmc.example.test"]})["steps"] == ["write CA"]
    assert service(libvirtd) == running

    elsewhere = {**params, "names": ["bmc.example.test"], "listen": [{"address": "127.0.0.2", "port": 8001}]}
    changes = ["write certificate", "write configuration", "restart service"]
    assert call(libvirtd, elsewhere)["steps"] == changes
    assert call(libvirtd, {**elsewhere, "tls": False})["steps"] == ["write configuration", "restart service"]


def test_a_password_changed_through_its_bmc_goes_into_the_credentials(
    libvirtd: PrivateLibvirtd, params: dict[str, Any]
) -> None:
    call(libvirtd, params)
    name, credentials = "demo-worker-0", libvirtd.path(f"{DEMO}/credentials.json")
    changes = libvirtd.path(f"{DEMO}/state/passwords.json")
    change = ["/usr/bin/python3", "-c", CHANGE_PASSWORD, name, "chosen by its cluster"]
    assert libvirtd.run(change).stdout.strip() == "204"
    assert changes.stat().st_mode & 0o777 == 0o600
    assert status(libvirtd, NODES[1], name) == "401"

    steps = [f"write credentials (changed by their BMCs: {name})", "write configuration", "remove changed passwords"]
    assert emulator(libvirtd, params, check_mode=True)["steps"] == steps
    taken = emulator(libvirtd, params)
    assert taken["steps"] == steps
    assert "chosen by its cluster" not in json.dumps(taken)
    assert json.loads(credentials.read_text())[name] == {"username": name, "password": "chosen by its cluster"}
    assert status(libvirtd, NODES[1], name) == "200"
    assert not changes.exists()
    for check_mode in (True, False):
        assert emulator(libvirtd, params, check_mode=check_mode)["steps"] == []


def test_it_is_back_after_crashes_and_when_a_network_starts(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    call(libvirtd, params)
    os.kill(service(libvirtd), 9)
    wait_until_it_answers(libvirtd)

    libvirtd.run(["pkill", "-KILL", "--full", "^/usr/bin/python3 /var/lib/libvirt/bmc/demo/supervisor"])  # a power cut
    wait_until("it is gone", lambda: not any(map(is_service, processes.descendants(libvirtd.sandbox.init))))
    dispatcher = libvirtd.path(str(network_hook.DISPATCHER))
    dispatcher.parent.mkdir(parents=True)
    dispatcher.write_text(network_hook.DISPATCHER_TEXT)
    dispatcher.chmod(0o755)
    libvirtd.restart()
    libvirtd.run(["virsh", "net-create", "/dev/stdin"], input=NETWORK)
    wait_until_it_answers(libvirtd)
    assert call(libvirtd, params)["steps"] == []

    libvirtd.run(["rm", "-r", DEMO])  # the supervisor that has lost it is found and replaced
    assert call(libvirtd, params)["steps"][-1] == "restart service"
    assert call(libvirtd, params)["steps"] == []


def test_vms_that_are_missing_or_of_others_are_refused_and_nothing_made(
    libvirtd: PrivateLibvirtd, params: dict[str, Any]
) -> None:
    late, renamed = {"vm_name": "demo-late", "uuid": str(uuid.uuid4())}, {**NODES[0], "vm_name": "renamed"}
    other_uuid = {**NODES[1], "uuid": str(uuid.uuid4())}
    told = call(libvirtd, {**params, "nodes": [late, renamed, other_uuid, *STRANGERS]})["msg"].splitlines()
    assert told == [
        "VMs are missing: demo-late. Run playbooks/nodes.yml.",
        f"UUID {NODES[0]['uuid']} is VM demo-control-plane-0's, not renamed's: name both as they are.",
        f"VM demo-worker-0 has the UUID {NODES[1]['uuid']}, not {other_uuid['uuid']}: name both as they are.",
        "VM others is lab other's, which commands it: lab demo needs a VM with another name.",
        "VM unmarked was not made by nometal.ipi: only VMs that playbooks/nodes.yml has made get BMCs.",
    ]
    # Check mode: what an earlier stage makes may be missing, and what is there may still be wrong.
    assert emulator(libvirtd, {**params, "nodes": [late]}, check_mode=True)["steps"] == MAKING
    assert "VM others is lab other's" in emulator(libvirtd, {**params, "nodes": STRANGERS}, check_mode=True)["msg"]
    assert not libvirtd.path(HOME).exists()


def test_all_that_stands_in_the_way_is_told_at_once_and_nothing_made(
    libvirtd: PrivateLibvirtd, params: dict[str, Any]
) -> None:
    wrong = {
        "listen": [{"address": "127.0.0.1", "port": 8000}, {"address": "192.0.2.7", "port": 8000}],
        "media": {"max_bytes": -1, "timeout": 60, "ca_file": "/etc/passwd"},
        "nodes": STRANGERS[:1],
        "home": "/etc/passwd/bmc",
    }
    expected = [
        "media.max_bytes: must be a whole number from 1048576 to 17592186044416 (got -1)",
        "home: /etc/passwd must be a directory.",
        "media.ca_file: /etc/passwd must hold one or more certificates in PEM.",
        r"listen: 127.0.0.1:8000/tcp is in use by python3 \(pid \d+\); stop that, or take another port.",
        "listen: no link of this host has 192.0.2.7; playbooks/network.yml gives it the lab's addresses.",
        "VM others is lab other's, which commands it: lab demo needs a VM with another name.",
    ]
    with holder(libvirtd):
        told = call(libvirtd, {**params, **wrong})["msg"].splitlines()
    assert len(told) == len(expected), told
    for line, pattern in zip(told, expected):
        assert line == pattern or re.fullmatch(pattern, line)
    media = {**MEDIA_LIMITS, "ca_file": "/etc/nothing.pem"}
    assert "there is no file /etc/nothing.pem on this host" in call(libvirtd, {**params, "media": media})["msg"]
    media = {**MEDIA_LIMITS, "ca_file": "/etc/shadow"}
    assert (
        "media.ca_file: /etc/shadow must hold one or more certificates"
        in call(libvirtd, {**params, "media": media})["msg"]
    )
    assert not libvirtd.path(HOME).exists()


@contextmanager
def holder(libvirtd: PrivateLibvirtd) -> Iterator[None]:
    """Another process on the port, until its input ends."""
    script = "import socket, sys; held = socket.create_server(('127.0.0.1', 8000)); print(flush=True); sys.stdin.read()"
    command, pipe = libvirtd.command(["python3", "-c", script]), subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        try:
            yield
        finally:
            process.stdin.close()


def test_a_service_that_fails_is_quoted(libvirtd: PrivateLibvirtd, params: dict[str, Any], tmp_path: Path) -> None:
    put_program(tmp_path, "echo The port is taken, sorry.; exit 1")
    failing = {**params, "software": str(tmp_path)}
    told = call(libvirtd, failing, patience=1)["msg"]
    assert "does not answer for demo-control-plane-0, demo-worker-0, demo-worker-1" in told
    assert "The port is taken, sorry." in told
    assert told.endswith("It has never answered, so it was stopped, and is not started at boot.")
    assert not libvirtd.path(str(network_hook.ENTRIES)).exists()
    with undefined(libvirtd, *NODES):
        told = call(libvirtd, {**failing, "nodes": []}, patience=1)["msg"]
    assert "does not answer for 127.0.0.1:8000" in told

    libvirtd.path(f"{DEMO}/credentials.json").write_text('{"operator": {"username": "operator"}}')
    told = call(libvirtd, failing)["msg"]
    assert told.startswith(f"{DEMO}/credentials.json: entry operator has no password")
    assert call(libvirtd, {**failing, "state": "absent"})["steps"] == REMOVING[1:]  # nothing keeps the lab


def test_an_ipmi_lab_is_served_at_all_its_addresses_and_has_nothing_of_redfish(
    libvirtd: PrivateLibvirtd, params: dict[str, Any]
) -> None:
    bmc = {"protocol": "ipmi", "host": "127.0.0.1", "port": 6230}
    nodes = [{"vm_name": node["vm_name"], "uuid": node["uuid"], "bmc": bmc} for node in NODES[:1]]
    by_ipmi = {**params, "listen": [], "nodes": nodes, "ipmi_addresses": ["127.0.0.1", "127.0.0.2"]}
    made = call(libvirtd, by_ipmi)
    assert made["steps"] == [
        *(f"make {path}" for path in DIRECTORIES),
        *(f"write {thing}" for thing in ("credentials", "configuration")),
        *("install service", "start service"),
    ]
    assert (made["nodes"][0]["address"], made["ca_file"]) == ("ipmi://127.0.0.1:6230", None)
    password = json.loads(libvirtd.path(f"{DEMO}/credentials.json").read_text())["demo-control-plane-0"]["password"]
    for address in ("127.0.0.1", "127.0.0.2"):
        ask = ["ipmitool", "-I", "lanplus", "-H", address, "-p", "6230", "-U", "admin", "-E", "power", "status"]
        assert "Chassis Power is off" in libvirtd.run(["env", f"IPMI_PASSWORD={password}", *ask]).stdout
    assert not libvirtd.path(MEDIA).exists()
    assert call(libvirtd, by_ipmi)["steps"] == []
    libvirtd.path(f"{DEMO}/serving").unlink()  # who holds the ports is looked for then, and it is this lab
    assert call(libvirtd, by_ipmi)["steps"] == ["restart service"]

    call(libvirtd, params)
    assert libvirtd.path(MEDIA).exists()
    gone = [f"{verb} nometal-demo-media" for verb in ("stop", "delete", "undefine")]
    assert call(libvirtd, by_ipmi)["steps"][-4:] == ["restart service", *gone]
    assert call(libvirtd, by_ipmi)["steps"] == []


def test_a_pool_of_another_lab_that_has_the_name_of_ours_stays(
    libvirtd: PrivateLibvirtd, params: dict[str, Any]
) -> None:
    """Lab demo-media has it for its disks."""
    libvirtd.run(["virsh", "pool-define-as", "nometal-demo-media", "dir", "--target", "/srv/theirs"])
    try:
        refused = emulator(libvirtd, params)
        assert "storage pool nometal-demo-media at /srv/theirs is not this lab's" in refused["msg"]
        assert not libvirtd.path(DEMO).exists()
        for check_mode in (True, False):
            gone = emulator(libvirtd, {"lab": "demo", "home": HOME, "state": "absent"}, check_mode=check_mode)
            assert gone["steps"] == []
        assert "nometal-demo-media" in libvirtd.run(["virsh", "pool-list", "--all", "--name"]).stdout
    finally:
        libvirtd.run(["virsh", "pool-undefine", "nometal-demo-media"])


def test_before_the_role_has_run_it_foresees_all(libvirtd: PrivateLibvirtd, params: dict[str, Any]) -> None:
    bare = {**params, "user": "nobody-yet", "software": "/opt/none"}
    assert emulator(libvirtd, bare, check_mode=True)["steps"] == MAKING
    refused = emulator(libvirtd, bare)
    assert refused["failed"]
    assert "role nometal.ipi.bmc_emulation makes" in refused["msg"]
