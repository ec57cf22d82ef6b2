"""What somebody who has taken over the service can do: he has its user, its files, and the broker's socket."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.bmc_lab import BROKER, MEDIA, SERVICE_USER, UUIDS, as_user
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab, Vm

FOREIGN = "33333333-3333-4333-8333-333333333333"
FOREIGN_VM = f"""<domain type='qemu'><name>foreign</name><uuid>{FOREIGN}</uuid><memory unit='MiB'>64</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><disk type='file' device='cdrom'><target dev='sdz' bus='sata'/><readonly/></disk></devices></domain>"""
DIGEST = "0" * 64
WISH = {"mode": None, "target": "Cd", "enabled": "Once", "http_uri": None, "forgets_uri": False, "order": None}
EVIL = "<domain type='qemu'><name>evil</name></domain>"
# Asks the broker, and prints what it answers to each request as a line of JSON; `null` when it hangs up.
ASKING = """
import json, socket, struct, sys
where, *requests = json.loads(sys.stdin.read())
def answer(request):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(where)
        data = json.dumps(request).encode()
        connection.sendall(struct.pack("!I", len(data)) + data)
        length = connection.recv(4, socket.MSG_WAITALL)
        return connection.recv(struct.unpack("!I", length)[0], socket.MSG_WAITALL).decode() if length else "null"
for request in requests:
    try:
        print(answer(request))
    except ConnectionError:
        print("null")
"""
TRYING = """
import os, socket, sys
def outcome(action):
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return "done"
def connect(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
for path in sys.argv[1:]:
    is_socket = path.endswith("-sock") or path.endswith("admin")
    print(outcome((lambda: connect(path)) if is_socket else (lambda: open(path, "x").close())))
"""


@pytest.fixture(scope="module")
def vm(running_lab: BmcLab) -> Vm:
    return running_lab.vm(memory=64)


@pytest.fixture
def foreign(lab: BmcLab) -> Iterator[Any]:
    made = lab.connection.defineXML(FOREIGN_VM)
    yield made
    made.undefine()


def as_service(lab: BmcLab, program: str, *arguments: str, told: str = "", user: int = SERVICE_USER) -> list[str]:
    """The lines that a program of the service's user prints."""
    command = lab.libvirtd.command([*as_user(user, "--clear-groups"), sys.executable, "-c", program, *arguments])
    return subprocess.run(command, input=told, check=True, text=True, capture_output=True).stdout.splitlines()


def ask(lab: BmcLab, *requests: Any, user: int = SERVICE_USER) -> list[Any]:
    lines = as_service(lab, ASKING, told=json.dumps([lab.broker.socket, *requests]), user=user)
    return [json.loads(line) for line in lines]


def refused(lab: BmcLab, *requests: Any) -> list[int]:
    return [answer["refused"]["status"] for answer in ask(lab, *requests)]


def request(operation: str, **arguments: Any) -> dict[str, Any]:
    return {"operation": operation, "arguments": arguments}


def test_libvirts_sockets_and_the_brokers_files_are_closed_to_it(lab: BmcLab) -> None:
    paths = ("/run/libvirt/libvirt-sock", f"{MEDIA}/{DIGEST}.iso", f"{BROKER}/other.json", "/etc/libvirt/evil")
    assert as_service(lab, TRYING, *paths) == ["PermissionError"] * len(paths)


def test_who_is_neither_the_service_nor_root_is_not_listened_to(lab: BmcLab) -> None:
    lines = as_service(lab, ASKING, told=json.dumps([lab.broker.socket, request("existing")]), user=2)
    assert lines == ["null"]
    assert "Refused a client with the user id 2" in lab.broker.log.read_text()
    assert ask(lab, request("existing"))[0]["result"] is not None


def test_vms_of_others_do_not_exist_for_it(lab: BmcLab, foreign: Any) -> None:
    before = foreign.XMLDesc(0)
    only = {"uuid": FOREIGN}
    asked = [
        *(request(name, **only) for name in ("active", "definition", "present", "definition_and_present")),
        *(request(name, **only) for name in ("capacities", "power_on", "power_off", "power_cycle", "eject")),
        *(request(name, **only) for name in ("shut_down", "restart", "interrupt")),
        request("check_boot", **only, **WISH),
        request("change_boot", **only, **WISH),
        request("set_secure_boot", **only, wanted=True),
        request("set_clock", **only, zone=None, ahead=1),
        request("set_verify", **only, verify=True),
        request("power_restore", **only),
        request("set_power_restore", **only, policy="AlwaysOn"),
    ]
    assert refused(lab, *asked) == [404] * len(asked)
    assert foreign.XMLDesc(0) == before
    assert FOREIGN not in ask(lab, request("existing"))[0]["result"]


def test_neither_xml_nor_paths_nor_unknown_words_are_taken(lab: BmcLab, vm: Vm) -> None:
    before, own = vm.xml(), {"uuid": vm.uuid}
    asked = [
        request("defineXML", xml=EVIL),
        request("power_on", **own, xml=EVIL),
        request("power_on", uuid=vm.name),
        request("power_on", uuid=[vm.uuid]),
        request("power_on"),
        request("change_boot", **own, **{**WISH, "target": EVIL}),
        request("change_boot", **own, **{**WISH, "mode": "../UEFI"}),
        request("change_boot", **own, **{**WISH, "http_uri": "file:///etc/shadow"}),
        request("change_boot", **own, **{**WISH, "order": ["Hdd-sda'/>"] * 65}),
        request("change_boot", **own, **{**WISH, "order": "Hdd-sda"}),
        request("change_boot", **own, **{**WISH, "path": "/etc/shadow"}),
        request("set_power_restore", **own, policy="/etc/shadow"),
        request("set_clock", **own, zone="'/><evil/>", ahead=None),
        request("set_clock", **own, zone=None, ahead=1e400),
        request("insert", **own, digest="../../../etc/shadow", url="http://x/"),
        request("insert", **own, digest=DIGEST, url="http://x/\n"),
        request("keep_image", digest="../" + DIGEST[3:]),
        request("sweep_images", keep=["/etc/shadow"]),
        {"operation": ["power_on"], "arguments": own},
        {"operation": "power_on", "arguments": [vm.uuid]},
        {},
    ]
    assert refused(lab, *asked) == [400] * len(asked)
    assert refused(lab, request("insert", **own, digest=DIGEST, url="http://x/")) == [409]  # it has not been fetched
    assert refused(lab, request("keep_image", digest=DIGEST)) == [409]
    assert vm.xml() == before


def test_it_can_ask_for_what_the_lab_may_do(lab: BmcLab, vm: Vm) -> None:
    [answer] = ask(lab, request("definition", uuid=vm.uuid))
    assert vm.uuid in answer["result"][0]


def test_an_image_that_was_begun_goes_with_who_has_begun_it(lab: BmcLab) -> None:
    def left() -> list[str]:
        return [path.name for path in lab.libvirtd.path(MEDIA).iterdir()]

    assert ask(lab, request("begin_image"))[0] == {"result": None}
    wait_until("it is gone", lambda: left() == [], seen=left)


def test_noise_ends_the_connection_and_nothing_else(lab: BmcLab) -> None:
    path = str(lab.libvirtd.path(lab.broker.socket))
    for noise in (b"\xff\xff\xff\xff", b"\0\0\0\2{]", b"\0\0\0\2[]", b"\0\0\x10\0" + b"[" * 4096, b"\0"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(100) == b""
    assert "Traceback" not in lab.broker.log.read_text()


def test_a_vm_that_is_taken_from_the_list_is_out_of_reach_at_once(lab: BmcLab, vm: Vm) -> None:
    assert ask(lab, request("active", uuid=vm.uuid)) == [{"result": False}]
    others = [{"uuid": uuid, "name": f"node-{number}"} for number, uuid in enumerate(UUIDS) if uuid != vm.uuid]
    try:
        lab.broker.configure(others, MEDIA)
        assert refused(lab, request("active", uuid=vm.uuid)) == [404]
    finally:
        lab.configure()


def test_a_broker_that_was_killed_is_back_without_the_service_being_disturbed(lab: BmcLab, vm: Vm) -> None:
    before = lab.get(vm.path)
    lab.broker.stop(9)
    assert lab.request("GET", vm.path).status_code == 503
    lab.broker.start()
    assert lab.get(vm.path) == before
