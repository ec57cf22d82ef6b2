"""IPMI BMCs as ipmitool and attackers in the provisioning network see them, and what holds their processes together."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import ipmi_lab, private_libvirtd, processes
from support.ipmi_lab import ADDRESS, FIRST_PORT, PASSWORD
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.ipmi_lab import IpmiLab

NODES = 20
OTHER_PASSWORD = "another one"  # noqa: S105 - not of anything real
FROM_INSIDE = f"""
import os, random, socket, sys
random.seed(4)
where = ("{ADDRESS}", {FIRST_PORT})
opening = bytes.fromhex("0600ff07" "0610" "00000000" "00000000" "2000" "00040000" "a4a3a2a0"
                        "0000000801000000" "0100000801000000" "0200000801000000")
def send(packet):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(packet, where)
"""
GARBAGE = """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.sendto(opening, where)
    for turn in range(3000):
        kind = bytes([6, random.choice((0, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0xc0, 0x40, 1, 63))])
        head = random.choice((b"", b"\\x06\\x00\\xff\\x07", b"\\x06\\x00\\xff\\x07" + kind, opening[:20]))
        packet = head + os.urandom(random.choice((0, 1, 3, 8, 16, 30, 60, 1400)))
        client.sendto(packet, where)
        send(packet)
"""
# ipmitool gives up before this when it finds that the BMC knows another password.
WRONG_PROOF = f"""
def packet(kind, payload):
    return b"\\6\\0\\xff\\7\\6" + bytes([kind]) + bytes(8) + len(payload).to_bytes(2, "little") + payload
name = {ipmi_lab.USER.encode()!r}
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.settimeout(3)
    client.sendto(opening, where)
    session = client.recvfrom(1000)[0][24:28]
    client.sendto(packet(0x12, bytes(4) + session + bytes(16) + bytes([0x14, 0, 0, len(name)]) + name), where)
    client.recvfrom(1000)
    client.sendto(packet(0x14, bytes(4) + session + bytes(20)), where)
"""
# One socket opens sessions at two addresses: each answers for itself.
BOTH = """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.settimeout(3)
    for address in {addresses} * 2:
        client.sendto(opening, (address, where[1]))
        assert client.recvfrom(1000)[1] == (address, where[1])
"""
FLOOD = """
for turn in range(12000):
    send(opening)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[IpmiLab]:
    with private_libvirtd.start() as libvirtd, ipmi_lab.start(libvirtd, nodes=NODES) as started:
        yield started


def inside(lab: IpmiLab, program: str) -> None:
    lab.libvirtd.run([sys.executable, "-c", FROM_INSIDE + program])


def test_status_and_power(lab: IpmiLab) -> None:
    assert lab.tells(0, "power", "status") == "Chassis Power is off\n"
    assert "not supported in present state" in lab.ipmitool(0, "power", "cycle").stderr
    assert "not supported in present state" in lab.ipmitool(0, "power", "reset").stderr
    assert lab.domain_id(0) == "-"
    for way in ("on", "cycle", "reset"):
        console, before = lab.console(0), lab.domain_id(0)
        lab.switch(0, way)
        assert lab.tells(0, "power", "status") == "Chassis Power is on\n"
        console.waits_for("BOOTED FROM DISK")
        assert lab.domain_id(0) != before
    before = lab.domain_id(0)
    lab.switch(0, "on")
    lab.switch(0, "diag")
    lab.switch(0, "soft")  # the guest has no ear for it
    assert lab.domain_id(0) == before
    for _again in range(2):
        lab.switch(0, "off")
        assert lab.domain_id(0) == "-"


def test_a_node_is_known_by_its_uuid(lab: IpmiLab) -> None:
    assert ipmi_lab.uuid_of(1) in lab.tells(1, "mc", "guid")
    lab.libvirtd.run(["virsh", "undefine", "node-1"])
    assert lab.ipmitool(1, "power", "status").returncode != 0
    lab.define([1])
    assert "is off" in lab.tells(1, "power", "status")
    lab.libvirtd.run(["virsh", "domrename", "node-1", "renamed"])
    assert "is off" in lab.tells(1, "power", "status")
    lab.libvirtd.run(["virsh", "domrename", "renamed", "node-1"])


def test_a_restart_of_libvirtd_passes_unnoticed(lab: IpmiLab) -> None:
    before = lab.bmcs()
    lab.libvirtd.restart()
    lab.switch(2, "on")
    lab.libvirtd.restart()
    assert "is on" in lab.tells(2, "power", "status")
    lab.tells(2, "chassis", "bootdev", "cdrom")
    lab.switch(2, "off")
    assert lab.bmcs() == before


def test_a_request_that_is_sent_again_is_obeyed_once(lab: IpmiLab) -> None:
    """A client asks again after a second without an answer; libvirtd gives none until it has."""
    lab.switch(0, "on")
    before = int(lab.domain_id(0))
    daemon = lab.libvirtd.path("/run/libvirt/libvirtd.pid").read_text().strip()
    received = datagrams(lab)
    lab.tells(0, "power", "status")
    whole_session = datagrams(lab) - received
    with ThreadPoolExecutor(1) as client:
        lab.libvirtd.run(["kill", "-STOP", daemon])
        try:
            received = datagrams(lab)
            cycle = client.submit(lab.switch, 0, "cycle", options=["-N", "1", "-R", "99"])
            wait_until("it asks again", lambda: datagrams(lab) - received > whole_session)
            assert not cycle.done()
        finally:
            lab.libvirtd.run(["kill", "-CONT", daemon])
        cycle.result()
    assert int(lab.domain_id(0)) == before + 1
    lab.switch(0, "off")


def test_the_log_tells_who_did_what(lab: IpmiLab) -> None:
    lab.switch(0, "on")
    lab.tells(0, "chassis", "bootdev", "pxe")
    lab.tells(0, "chassis", "bootdev", "disk", "options=persistent")
    lab.switch(0, "off")
    lab.ipmitool(0, "power", "cycle")
    log = lab.log_file.read_text()
    done = rf"\d+ ms {ipmi_lab.USER} from 172\.22\.0\.\d+$"
    for line in (
        rf"^INFO nometal_bmc\.access: node-0: power on: accepted {done}",
        rf"node-0: boot from network once: done {done}",
        rf"node-0: boot from disk always: done {done}",
        rf"node-0: power off: accepted {done}",
        r"node-0: power off: ended after \d+ ms$",
        rf"node-0: power cycle: declined \(0xd5\) {done}",
    ):
        assert re.search(line, log, re.MULTILINE), line
    refused = r"^WARNING \S+: Refused a login from 172\.22\.0\.\d+ for {} at the BMC of node-0: "

    def tells_of(who: str) -> bool:
        return re.search(refused.format(who), lab.log_file.read_text(), re.MULTILINE) is not None

    lab.ipmitool(0, "power", "on", user="nobody", options=["-N", "1", "-R", "1"])
    wait_until("an unknown account is told", lambda: tells_of("an unknown account"))
    inside(lab, WRONG_PROOF)
    wait_until("a wrong password is told", lambda: tells_of(ipmi_lab.USER))


def test_a_node_is_served_at_each_address_that_is_there(lab: IpmiLab) -> None:
    second, later = "172.22.0.1", "172.22.0.77"
    lab.configure(range(NODES), others=[later, second])
    try:
        wait_until("the second address is served", lambda: len(lab.sockets()) == 2 * NODES)
        assert "is off" in lab.tells(0, "power", "status", at=second)
        assert "is off" in lab.tells(0, "power", "status")
        before = lab.bmcs()
        lab.libvirtd.run(["ip", "address", "add", f"{later}/32", "dev", "provisioning"])
        wait_until("the later address is served", lambda: len(lab.sockets()) == 3 * NODES)
        assert "is off" in lab.tells(0, "power", "status", at=later)
        inside(lab, BOTH.format(addresses=[ADDRESS, second]))
        lab.libvirtd.run(["ip", "address", "del", f"{later}/32", "dev", "provisioning"])
        assert "is off" in lab.tells(0, "power", "status")
        assert lab.bmcs() == before
        assert lab.log_file.read_text().count(f"node-0 cannot listen yet at {later} port {FIRST_PORT}") == 1
    finally:
        lab.configure(range(NODES))
        wait_until("only the first address is served", lambda: len(lab.sockets()) == NODES)


def test_what_ipmi_has_but_we_have_not_is_declined(lab: IpmiLab) -> None:
    for words in ("sol activate", "mc watchdog get", "chassis bootdev floppy", "chassis bootdev bios"):
        assert lab.ipmitool(0, *words.split()).stderr, words
    assert "data length invalid" in lab.ipmitool(0, "raw", "0", "8", "5", "0x80").stderr
    assert "data length invalid" in lab.ipmitool(0, "raw", "0", "2").stderr
    assert "is off" in lab.tells(0, "power", "status")


@pytest.mark.parametrize("wrong", [{"password": "wrong"}, {"password": PASSWORD[:-1]}, {"user": "root"}, {"user": ""}])
def test_nobody_gets_in_without_the_password(lab: IpmiLab, wrong: dict[str, str]) -> None:
    options = ["-N", "1", "-R", "1"]
    refused = lab.ipmitool(0, "power", "on", **wrong, options=options)
    assert "Unable to establish" in refused.stderr
    older = ["ipmitool", "-I", "lan", *options, "-H", ADDRESS, "-p", str(FIRST_PORT), "-U", ipmi_lab.USER]
    assert lab.libvirtd.run([*older, "-P", PASSWORD, "power", "on"], check=False).returncode != 0
    assert lab.ipmitool(0, "power", "on", options=["-C", "0", *options]).returncode != 0
    assert lab.domain_id(0) == "-"


def test_garbage_and_a_flood_of_sessions_change_nothing(lab: IpmiLab) -> None:
    before = lab.bmcs()
    inside(lab, GARBAGE)
    assert lab.answers(0)
    inside(lab, FLOOD)
    lab.tells(0, "power", "status")
    assert lab.bmcs() == before


def test_only_the_labs_address_is_listened_at_and_nothing_is_told(lab: IpmiLab) -> None:
    ours = socket.inet_aton(ADDRESS)[::-1].hex().upper()
    assert sorted(lab.sockets().values()) == [(ours, FIRST_PORT + node) for node in range(NODES)]
    for pid in lab.processes("nometal_bmc"):
        for file in ("cmdline", "environ"):
            assert PASSWORD.encode() not in Path(f"/proc/{pid}/{file}").read_bytes()
    log = lab.log_file.read_text()
    assert "The BMC of node-0 listens" in log
    assert PASSWORD not in log
    assert "Traceback" not in log


def test_twenty_bmcs_are_forks_that_share_their_memory(lab: IpmiLab) -> None:
    for node in range(NODES):
        lab.tells(node, "power", "status")
    supervisor, *bmcs = lab.processes("nometal_bmc.ipmi.supervisor")
    assert len(bmcs) == NODES
    assert {processes.parent(pid) for pid in bmcs} == {supervisor}


def test_a_bmc_that_was_killed_is_back(lab: IpmiLab) -> None:
    before = lab.bmcs()
    os.kill(before[3], signal.SIGKILL)
    wait_until("another process serves it", lambda: lab.bmcs().get(3, before[3]) != before[3])
    wait_until("it answers", lambda: lab.answers(3))
    after = lab.bmcs()
    assert {**after, 3: before[3]} == before


def test_a_changed_configuration_touches_only_what_has_changed(lab: IpmiLab) -> None:
    before = lab.bmcs()
    lab.configure(range(NODES - 1), passwords={4: OTHER_PASSWORD})

    def is_adjusted() -> bool:
        bmcs = lab.bmcs()
        return len(bmcs) == NODES - 1 and bmcs.get(4, before[4]) != before[4]

    wait_until("one is gone and one another", is_adjusted)
    lab.tells(4, "power", "status", password=OTHER_PASSWORD)
    assert lab.ipmitool(4, "power", "status").returncode != 0
    after = lab.bmcs()
    assert {node for node in after if after[node] != before[node]} == {4}
    lab.configure(range(NODES))
    wait_until("all are back", lambda: len(lab.bmcs()) == NODES)


def test_bmcs_wait_for_their_address(lab: IpmiLab) -> None:
    lab.libvirtd.run(["ip", "address", "del", f"{ADDRESS}/32", "dev", "provisioning"])
    begun, killed = len(lab.log_file.read_text()), dict(list(lab.bmcs().items())[:2])
    for pid in killed.values():
        os.kill(pid, signal.SIGKILL)

    def wait_for_it() -> bool:
        log = lab.log_file.read_text()[begun:]
        return all(f"node-{node} cannot listen yet" in log for node in killed)

    wait_until("those that are new wait for it", wait_for_it)
    lab.libvirtd.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "provisioning"])
    wait_until("all are there", lambda: len(lab.bmcs()) == NODES)


def test_nothing_outlives_those_who_started_it(lab: IpmiLab) -> None:
    supervisor, *orphans = lab.processes("nometal_bmc.ipmi.supervisor")
    os.kill(supervisor, signal.SIGKILL)
    wait_until("all have ended", lambda: not any(map(processes.status, orphans)))
    wait_until("all are back", lambda: len(lab.bmcs()) == NODES)
    everyone = lab.processes("nometal_bmc.ipmi.supervisor")
    lab.stop_service(signal.SIGKILL)
    wait_until("they have ended", lambda: not any(map(processes.status, everyone)))
    lab.start_service()
    wait_until("all are back", lambda: len(lab.bmcs()) == NODES)
    everyone = lab.processes("nometal_bmc.ipmi.supervisor")
    lab.stop_service()
    assert not any(processes.status(pid) for pid in everyone)


def datagrams(lab: IpmiLab) -> int:
    """How many UDP datagrams have been sent in its network."""
    lines = lab.libvirtd.run(["cat", "/proc/net/snmp"]).stdout.splitlines()
    names, values = (line.split() for line in lines if line.startswith("Udp:"))
    return int(values[names.index("OutDatagrams")])
