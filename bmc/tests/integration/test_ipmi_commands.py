"""Who may do what by IPMI, with which cipher suite, and the answers to what a BMC does not know."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from support import ipmi_lab, private_libvirtd
from support.ipmi_lab import ADDRESS, FIRST_PORT, PASSWORD
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.ipmi_lab import IpmiLab

ONCE = ["-N", "5", "-R", "1"]
"""A request without an answer is not sent again."""
THROTTLED, DISTURBED = 1, 2
"""Nodes of their own for those who guess, and for those who forge packets."""

FORGED = f"""
import socket, sys
where = ("{ADDRESS}", {FIRST_PORT + DISTURBED})
opening = bytes.fromhex("0600ff07" "0610" "00000000" "00000000" "2000" "{{tag}}0{{role}}0000a4a3a2a0"
                        "00000008{{auth}}000000" "0100000801000000" "0200000801000000")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.settimeout(60)
    client.sendto({{packet}}, where)
    sys.stdout.write(client.recv(1000).hex())
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[IpmiLab]:
    with private_libvirtd.start() as libvirtd, ipmi_lab.start(libvirtd, nodes=3) as started:
        yield started


def complaint(lab: IpmiLab, *words: str, number: int = 0, **access: Any) -> str:
    """ipmitool does not end with an error after each."""
    return lab.ipmitool(number, *words, **{"options": ONCE, **access}).stderr


def answer_to(lab: IpmiLab, packet: str, *, tag: str = "01", role: int = 4, auth: str = "01") -> bytes:
    """To a packet made by hand: Python that may use `opening`."""
    program = FORGED.format(packet=packet, tag=tag, role=role, auth=auth)
    return bytes.fromhex(lab.libvirtd.run([sys.executable, "-c", program]).stdout)


@pytest.mark.parametrize("suite", ["3", "17"])
def test_both_cipher_suites_work(lab: IpmiLab, suite: str) -> None:
    options = ["-C", suite, *ONCE]
    assert "is off" in lab.tells(0, "power", "status", options=options)
    assert ipmi_lab.uuid_of(0) in lab.tells(0, "mc", "guid", options=options)
    lab.tells(0, "chassis", "bootdev", "none", options=options)


@pytest.mark.parametrize("suite", ["0", "1", "2", "6", "8", "15", "16"])
def test_no_other_cipher_suite_does(lab: IpmiLab, suite: str) -> None:
    assert "Unable to establish" in complaint(lab, "power", "status", options=["-C", suite, *ONCE])


def test_clients_are_told_of_the_cipher_suites(lab: IpmiLab) -> None:
    told = lab.tells(0, "channel", "getciphers", "ipmi")
    suites = [line.split()[0] for line in told.splitlines() if line[:1].isdigit()]
    assert suites == ["3", "17"]


@pytest.mark.parametrize(
    ("words", "level"),
    [
        (["mc", "info"], "USER"),
        (["mc", "selftest"], "USER"),
        (["chassis", "status"], "USER"),
        (["channel", "info"], "USER"),
        (["chassis", "identify", "0"], "OPERATOR"),
        (["chassis", "bootdev", "none"], "OPERATOR"),
        (["chassis", "bootparam", "get", "5"], "OPERATOR"),
        (["power", "soft"], "OPERATOR"),
        (["chassis", "policy", "always-off"], "OPERATOR"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else value,
)
def test_each_command_takes_a_privilege_level(lab: IpmiLab, words: list[str], level: str) -> None:
    """A session asks for a level, and has no more than that even for an account that may do everything."""
    lab.tells(0, *words, options=["-L", level])
    if level == "OPERATOR":
        assert "nsufficient privilege" in complaint(lab, *words, options=["-L", "USER", *ONCE])


def test_a_session_cannot_raise_its_level_beyond_what_it_has_logged_in_for(lab: IpmiLab) -> None:
    assert "rsp=0x81" in complaint(lab, "raw", "6", "0x3b", "4", options=["-L", "USER", *ONCE])
    assert lab.tells(0, "raw", "6", "0x3b", "0", options=["-L", "OPERATOR"]).strip() == "03"
    assert "rsp=0xcc" in complaint(lab, "raw", "6", "0x3b", "1")


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        ("0x2e 0x01", "0xc1"),  # of a manufacturer
        ("0x06 0x02", "0xc1"),  # a cold reset of the BMC
        ("0x06 0x48 1 1 0 0 0 0", "0xc1"),  # a serial console
        ("0x00 0x02 0x0f", "0xcc"),
        ("0x00 0x02", "0xc7"),
        ("0x00 0x06 4", "0xcc"),  # a power restore policy of later versions
        ("0x00 0x08 0x05 0x80", "0xc7"),
        ("0x00 0x08 0x60 0", "0x80"),
        ("0x00 0x09 0x07 0 0", "0x80"),
    ],
)
def test_what_it_does_not_know_is_answered_at_once(lab: IpmiLab, request_bytes: str, code: str) -> None:
    assert f"rsp={code}" in complaint(lab, "raw", *request_bytes.split())


def test_every_request_has_an_answer(lab: IpmiLab) -> None:
    """By another client, pyghmi's, which proposes SHA-256 first as well."""
    where = [ADDRESS, str(FIRST_PORT), ipmi_lab.USER, PASSWORD]
    codes = lab.libvirtd.run([sys.executable, "-c", EVERYTHING, *where]).stdout.split()
    assert len(codes) == 8 * 128 * 3 - 9
    assert set(codes) <= {"0x0", "0x80", "0xc1", "0xc5", "0xc7", "0xc9", "0xcb", "0xcc", "0xd5"}
    assert "has failed at a command" not in lab.log_file.read_text()


EVERYTHING = """
import random, sys
from pyghmi.ipmi.private.session import Session
random.seed(4)
address, port, user, password = sys.argv[1:]
client = Session(address, user, password, int(port))
# Not asked for: power, the level of the session, its end.
left_out = {(0, 2), (6, 0x3b), (6, 0x3c)}
for function in (0x00, 0x02, 0x04, 0x06, 0x08, 0x0a, 0x0c, 0x2c):
    for command in range(128):
        for length in (0, 3, 9):
            if (function, command) not in left_out:
                answer = client.raw_command(function, command, data=random.randbytes(length))
                sys.stdout.write(hex(answer["code"]) + "\\n")
"""


def test_what_takes_no_login_is_answered_and_nothing_else(lab: IpmiLab) -> None:
    chassis_status = 'bytes.fromhex("0600ff07 00 00000000 00000000 07 2000e0810401" "7a")'
    assert answer_to(lab, chassis_status)[-2:-1] == b"\xd4"
    login_kinds = 'bytes.fromhex("0600ff07 00 00000000 00000000 09 2018c8810438 8e04" "b1")'
    assert answer_to(lab, login_kinds)[-10:-8] == b"\x00\x01"


def test_a_session_that_cannot_be_is_refused_in_words(lab: IpmiLab) -> None:
    for changes, status in (({"auth": "02"}, 0x11), ({"role": 6}, 0x09)):
        answer = answer_to(lab, "opening", **changes)
        assert (answer[5], answer[17]) == (0x11, status)
    unknown = 'bytes.fromhex("0600ff07 06 12 0000000000000000 2000 05000000 01020304" + "00" * 24)'
    answer = answer_to(lab, unknown)
    assert (answer[5], answer[16:18]) == (0x13, b"\x05\x02")


def test_the_light_for_whom_to_look_for(lab: IpmiLab) -> None:
    def light() -> int:
        return int(lab.tells(0, "raw", "0", "1").split()[2], 16) >> 4 & 0b111

    lab.tells(0, "chassis", "identify", "200")
    assert light() == 0b101
    lab.tells(0, "chassis", "identify", "force")
    assert light() == 0b110
    lab.tells(0, "chassis", "identify", "0")
    assert light() == 0b100


def test_what_the_chassis_says_of_itself(lab: IpmiLab) -> None:
    assert "passed" in lab.tells(0, "mc", "selftest")
    info = lab.tells(0, "mc", "info")
    assert "IPMI Version              : 2.0" in info
    assert "Chassis Device" in info


def test_the_power_restore_policy_is_read_and_set(lab: IpmiLab) -> None:
    listed = lab.tells(0, "chassis", "policy", "list")
    assert all(policy in listed for policy in ("always-off", "previous", "always-on"))
    for policy in ("always-on", "previous", "always-off"):
        lab.tells(0, "chassis", "policy", policy)
        assert f"Power Restore Policy : {policy}" in lab.tells(0, "chassis", "status")
    assert "Power Restore Policy : always-off" in lab.tells(1, "chassis", "status")


def test_the_account_is_listed(lab: IpmiLab) -> None:
    told = lab.tells(0, "user", "list", "1", options=["-L", "OPERATOR"])
    users = {line.split()[0]: line.split()[1:] for line in told.splitlines() if line[:1].isdigit()}
    assert users["2"] == [ipmi_lab.USER, "true", "false", "true", "ADMINISTRATOR"]
    assert users["1"][-2:] == ["NO", "ACCESS"]
    assert set(users) == {"1", "2"}
    assert "nsufficient privilege" in complaint(lab, "user", "list", "1", options=["-L", "USER", *ONCE])


def test_power_is_answered_before_it_is_switched(lab: IpmiLab) -> None:
    """libvirtd takes no call, and the BMC answers all the same."""
    daemon = lab.libvirtd.path("/run/libvirt/libvirtd.pid").read_text().strip()
    before = lab.log_file.read_text().count(": ended after")
    lab.libvirtd.run(["kill", "-STOP", daemon])
    try:
        lab.tells(0, "power", "on", options=ONCE)
        lab.tells(0, "power", "off", options=ONCE)
        lab.tells(0, "power", "on", options=ONCE)
    finally:
        lab.libvirtd.run(["kill", "-CONT", daemon])
    wait_until("all have ended", lambda: lab.log_file.read_text().count(": ended after") == before + 3)
    assert lab.domain_id(0) != "-"
    assert "chassis power control command" in lab.tells(0, "chassis", "restart_cause").lower()
    lab.switch(0, "off")
    assert lab.domain_id(0) == "-"


def test_who_guesses_has_to_wait_and_nobody_else(lab: IpmiLab) -> None:
    refused = f"for {ipmi_lab.USER} at the BMC of node-{THROTTLED}"

    def is_refused(why: str) -> bool:
        lab.ipmitool(THROTTLED, "power", "status", password="wrong", options=ONCE)  # noqa: S106
        return f"{refused}: {why}" in lab.log_file.read_text()

    wait_until("its password is refused", lambda: is_refused("wrong password"))
    wait_until("it has to wait", lambda: is_refused("there were too many failed logins"))
    where = ["-H", ADDRESS, "-p", str(FIRST_PORT + THROTTLED), "-U", ipmi_lab.USER, "-P", PASSWORD]
    lab.libvirtd.run(["sh", "-ec", ELSEWHERE])
    elsewhere = ["ip", "netns", "exec", "elsewhere", "ipmitool", "-I", "lanplus", *where, "power", "status"]
    assert "is off" in lab.libvirtd.run(elsewhere).stdout


ELSEWHERE = f"""
ip netns add elsewhere
ip link add elsewhere type veth peer name inside netns elsewhere
ip link set elsewhere master provisioning up
ip -n elsewhere address add 172.22.0.200/24 dev inside
ip -n elsewhere link set inside up
ip -n elsewhere link set lo up
ip -n elsewhere route get {ADDRESS}
"""


def test_forged_packets_end_no_session(lab: IpmiLab) -> None:
    """From the client's own address and port: a session is known by a number that only its client has."""
    lab.libvirtd.run([sys.executable, "-c", TWO_SESSIONS, ADDRESS, str(FIRST_PORT + DISTURBED)])


TWO_SESSIONS = """
import socket, sys
where = (sys.argv[1], int(sys.argv[2]))
opening = bytes.fromhex("0600ff07" "0610" "00000000" "00000000" "2000" "01040000a4a3a2a0"
                        "0000000801000000" "0100000801000000" "0200000801000000")
def packet(kind, payload):
    return b"\\6\\0\\xff\\7\\6" + bytes([kind]) + bytes(8) + len(payload).to_bytes(2, "little") + payload
def first_login_message(session):
    return packet(0x12, bytes(4) + session + bytes(16) + bytes([0x14, 0, 0, 5]) + b"admin")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.settimeout(60)
    sessions = []
    for _turn in range(2):
        client.sendto(opening, where)
        sessions.append(client.recv(1000)[24:28])
    for session in sessions:
        client.sendto(first_login_message(session), where)
        answer = client.recv(1000)
        assert (answer[5], answer[17]) == (0x13, 0), answer.hex()
    assert sessions[0] != sessions[1]
    client.sendto(first_login_message(b"none"), where)
    answer = client.recv(1000)
    assert (answer[5], answer[17]) == (0x13, 2), answer.hex()
"""
