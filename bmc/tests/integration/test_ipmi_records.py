"""The event log, the inventory and the sensors of an IPMI BMC, as ipmitool reads them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from support import ipmi_lab, private_libvirtd
from support.ipmi_lab import ADDRESS, FIRST_PORT, PASSWORD
from support.waiting import wait_until

from nometal_bmc.events.log import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.ipmi_lab import IpmiLab

SYSINFO = "<sysinfo type='smbios'><system><entry name='serial'>SN-4711</entry></system></sysinfo>"
ONCE = ["-N", "5", "-R", "1"]


@pytest.fixture(scope="module")
def lab() -> Iterator[IpmiLab]:
    with private_libvirtd.start() as libvirtd, ipmi_lab.start(libvirtd, nodes=2) as started:
        yield started


def fields(told: str) -> dict[str, str]:
    lines = [line.partition(":") for line in told.splitlines()]
    return {name.strip(): value.strip() for name, _colon, value in lines}


def event_log(lab: IpmiLab, *options: str) -> list[str]:
    """Sensor and event of each record, the oldest first."""
    lines = [line.split(" | ") for line in lab.tells(0, "sel", "list", options=options).splitlines()]
    return [": ".join(part.strip() for part in line[3:5]) for line in lines]


def test_the_event_log_tells_of_resets_boots_and_logins(lab: IpmiLab) -> None:
    lab.tells(0, "sel", "clear")
    for way in ("on", "reset", "cycle", "diag", "soft", "off"):
        lab.switch(0, way)
    lab.tells(0, "chassis", "bootdev", "pxe")
    assert [event for event in event_log(lab) if not event.startswith("Session Audit")] == [
        "Event Logging Disabled: Log area reset/cleared",
        "System Boot Initiated: Initiated by power up",
        "System Boot Initiated: Initiated by hard reset",
        "Power Unit: Power cycle",
        "Critical Interrupt: NMI/Diag Interrupt",
        "Button: Power Button pressed",
        "Power Unit: Power off/down",
        "System Event: System Reconfigured",
    ]
    lab.ipmitool(0, "power", "status", user="nobody", options=ONCE)
    assert event_log(lab)[-1].startswith("Session Audit")
    *_before, last = EventLog(lambda: lab.config_file.parent / "events").events(ipmi_lab.uuid_of(0))
    assert (last.text, last.account, last.address) == ("Login refused", "an unknown account", ADDRESS)


def test_what_has_failed_is_in_the_event_log(lab: IpmiLab) -> None:
    disk = lab.libvirtd.path("/var/lib/libvirt/images/disk")
    disk.rename(disk.with_name("elsewhere"))
    try:
        lab.tells(0, "power", "on")
        wait_until("it has failed", lambda: event_log(lab)[-1] == "Power Unit: Soft-power control failure")
    finally:
        disk.with_name("elsewhere").rename(disk)
    assert "is off" in lab.tells(0, "power", "status")
    assert "node-0: power on: failed: " in lab.log_file.read_text()


def test_the_event_log_outlives_the_service(lab: IpmiLab) -> None:
    lab.switch(0, "on")
    lab.switch(0, "off")
    before = event_log(lab)
    lab.stop_service()
    lab.start_service()
    wait_until("it answers", lambda: lab.answers(0))
    after = event_log(lab)
    assert after[: len(before)] == before
    assert after[len(before) :] == ["Session Audit: "] * (len(after) - len(before))


def test_the_event_log_is_read_by_users_and_cleared_by_operators(lab: IpmiLab) -> None:
    lab.tells(0, "chassis", "bootdev", "none")
    whole = event_log(lab, "-L", "USER")
    assert "nsufficient privilege" in lab.ipmitool(0, "sel", "clear", options=["-L", "USER", *ONCE]).stderr
    assert event_log(lab) == whole
    told = fields(lab.tells(0, "sel", "info"))
    assert (told["Entries"], told["Version"]) == (str(len(whole)), "1.5 (v1.5, v2 compliant)")
    lab.tells(0, "sel", "clear", options=["-L", "OPERATOR"])
    assert event_log(lab) == ["Event Logging Disabled: Log area reset/cleared"]
    told = fields(lab.tells(0, "sel", "info"))
    assert told["Entries"] == "1"
    assert told["Last Del Time"] == told["Last Add Time"]
    assert fields(lab.tells(0, "sel", "get", "0xffff"))["Sensor Type"] == "Event Logging Disabled"


def test_a_record_is_read_in_parts_and_under_a_reservation(lab: IpmiLab) -> None:
    lab.tells(1, "chassis", "bootdev", "none")
    whole = lab.tells(1, "raw", "0x0a", "0x43", "0", "0", "0", "0", "0", "0xff").split()
    assert len(whole) == 2 + 16
    mine = lab.tells(1, "raw", "0x0a", "0x42").split()
    part = ["raw", "0x0a", "0x43", f"0x{mine[0]}", f"0x{mine[1]}", "0", "0", "10", "3"]
    assert lab.tells(1, *part).split() == whole[:2] + whole[12:15]
    assert "rsp=0xc9" in lab.ipmitool(1, *part[:-2], "16", "1").stderr
    lab.tells(1, "raw", "0x0a", "0x42")
    assert "rsp=0xc5" in lab.ipmitool(1, *part).stderr
    assert "rsp=0xcb" in lab.ipmitool(1, "raw", "0x0a", "0x43", "0", "0", "0xef", "0xbe", "0", "0xff").stderr
    assert "rsp=0xc9" in lab.ipmitool(1, "raw", "0x0a", "0x43", "0", "0", "0", "0", "16", "1").stderr.replace(
        "c5", "c9"
    )


def test_the_clock_is_the_hosts(lab: IpmiLab) -> None:
    day = lab.libvirtd.run(["date", "-u", "+%m/%d/%y"]).stdout.strip()
    later = lab.tells(0, "sel", "time", "get")
    assert later.startswith((day, lab.libvirtd.run(["date", "-u", "+%m/%d/%y"]).stdout.strip()))


def test_the_inventory_names_the_vm(lab: IpmiLab) -> None:
    told = fields(lab.tells(0, "fru", "print", options=["-L", "USER"]))
    assert (told["Product Manufacturer"], told["Product Name"]) == ("nometal.ipi", "Virtual machine")
    assert told["Product Asset Tag"] == "node-0"
    assert {told[f"{of} Serial"] for of in ("Chassis", "Board", "Product")} == {ipmi_lab.uuid_of(0)}
    xml = lab.libvirtd.run(["virsh", "dumpxml", "--inactive", "node-1"]).stdout
    lab.libvirtd.run(["virsh", "define", "/dev/stdin"], input=xml.replace("<os>", f"{SYSINFO}<os>"))
    told = fields(lab.tells(1, "fru", "print"))
    assert {told[f"{of} Serial"] for of in ("Chassis", "Board", "Product")} == {"SN-4711"}
    assert "rsp=0xcb" in lab.ipmitool(0, "raw", "0x0a", "0x10", "1").stderr
    assert "rsp=0xc9" in lab.ipmitool(0, "raw", "0x0a", "0x11", "0", "0", "0x10", "8").stderr


def test_pyghmis_client_gets_along(lab: IpmiLab) -> None:
    """Which confluent and others use."""
    where = [ADDRESS, str(FIRST_PORT), ipmi_lab.USER, PASSWORD]
    told = json.loads(lab.libvirtd.run([sys.executable, "-c", BY_PYGHMI, *where]).stdout)
    assert told == {
        "power": ["off", "on", "off"],
        "boot": {"bootdev": "network", "persistent": False, "uefimode": False},
        "events": ["Log clear", "System reconfigured", "System reconfigured", "Power up"],
        "serial": ipmi_lab.uuid_of(0),
        "sensors": [],
        "users": ["admin"],
    }


BY_PYGHMI = """
import json, sys
from pyghmi.ipmi.command import Command
address, port, user, password = sys.argv[1:]
bmc = Command(address, user, password, port=int(port))
told = {"power": [bmc.get_power()["powerstate"]]}
list(bmc.get_event_log(clear=True))
bmc.set_bootdev("network")
told["boot"] = bmc.get_bootdev()
bmc.set_bootdev("default")
for state in ("on", "off"):
    told["power"].append(bmc.set_power(state, wait=120)["powerstate"])
told["events"] = [event["event"] for event in bmc.get_event_log()][:4]  # the last becomes one when it has ended
told["serial"] = dict(bmc.get_inventory())["System"]["Serial Number"]
told["sensors"] = list(bmc.get_sensor_data())
told["users"] = [user["name"] for user in bmc.get_users().values()]
print(json.dumps(told))
"""


def test_there_are_no_sensors(lab: IpmiLab) -> None:
    assert lab.tells(0, "sdr", "list", options=["-L", "USER"]) == ""
    assert lab.tells(0, "sensor", "list") == ""
    assert fields(lab.tells(0, "sdr", "info"))["Record Count"] == "1"
    assert lab.tells(0, "sdr", "list", "mcloc").startswith("BMC ")
