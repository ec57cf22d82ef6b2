"""Faults on purpose of IPMI BMCs, as ipmitool meets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import ipmi_lab, private_libvirtd, redfish_service
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.ipmi_lab import IpmiLab

ONCE = ["-N", "1", "-R", "1"]
STATUS = ("power", "status")


@pytest.fixture(scope="module")
def running() -> Iterator[IpmiLab]:
    with private_libvirtd.start() as libvirtd, ipmi_lab.start(libvirtd, nodes=2) as started:
        yield started


@pytest.fixture
def lab(running: IpmiLab) -> Iterator[IpmiLab]:
    yield running
    set_faults(running)


def set_faults(lab: IpmiLab, *rules: dict[str, Any], seed: int = 7) -> None:
    redfish_service.set_faults(lab.config_file.parent, *rules, seed=seed)


def outcomes(lab: IpmiLab, number: int, count: int) -> list[str]:
    """What ipmitool says, or that it has failed."""
    done = [lab.ipmitool(number, *STATUS, options=ONCE) for _turn in range(count)]
    return [each.stdout.strip() if each.returncode == 0 else "failed" for each in done]


OFF, ON = "Chassis Power is off", "Chassis Power is on"


def test_the_same_seed_makes_the_same_requests_fail(lab: IpmiLab) -> None:
    rule = {"fault": "status", "status": 503, "rate": 30}
    set_faults(lab, rule)
    first = outcomes(lab, 0, 8)
    assert set(first) == {OFF, "failed"}
    set_faults(lab, rule)
    assert outcomes(lab, 0, 8) == first


def test_only_the_node_that_is_named_has_the_fault(lab: IpmiLab) -> None:
    set_faults(lab, {"fault": "status", "status": 503, "nodes": ["node-0"]})
    assert "busy" in lab.ipmitool(0, *STATUS, options=ONCE).stderr.lower()
    assert outcomes(lab, 1, 1) == [OFF]
    set_faults(lab)
    assert outcomes(lab, 0, 1) == [OFF]


def test_power_is_shown_wrong_and_switching_ignored(lab: IpmiLab) -> None:
    set_faults(lab, {"fault": "power-state-wrong"})
    assert outcomes(lab, 0, 1) == [ON]
    set_faults(lab, {"fault": "power-ignored", "times": 1})
    assert "Up/On" in lab.tells(0, "power", "on")
    assert lab.domain_id(0) == "-"
    lab.switch(0, "on")
    assert lab.domain_id(0) != "-"
    lab.switch(0, "off")


def test_the_boot_device_is_ignored(lab: IpmiLab) -> None:
    set_faults(lab, {"fault": "boot-ignored"})
    lab.tells(0, "chassis", "bootdev", "pxe", "options=persistent")
    assert "Force PXE" not in lab.tells(0, "chassis", "bootparam", "get", "5")
    set_faults(lab)
    lab.tells(0, "chassis", "bootdev", "pxe", "options=persistent")
    assert "Force PXE" in lab.tells(0, "chassis", "bootparam", "get", "5")
    lab.tells(0, "chassis", "bootdev", "none")


def test_sessions_are_refused_and_lost(lab: IpmiLab) -> None:
    set_faults(lab, {"fault": "connection-refused", "times": 1})
    assert outcomes(lab, 0, 2) == ["failed", OFF]
    set_faults(lab, {"fault": "credentials-expired", "times": 1})
    assert outcomes(lab, 0, 2) == ["failed", OFF]


def test_a_lost_answer_is_asked_for_again(lab: IpmiLab) -> None:
    set_faults(lab, {"fault": "latency", "milliseconds": 1}, {"fault": "connection-reset", "times": 1})
    assert lab.tells(0, *STATUS).strip() == OFF
    assert "node-0: latency of 1 ms at command" in lab.log_file.read_text()


def test_a_bmc_reboots(lab: IpmiLab) -> None:
    set_faults(lab, {"fault": "reboot", "seconds": 3600, "times": 1, "nodes": ["node-0"]})
    assert outcomes(lab, 0, 2) == ["failed", "failed"]
    assert outcomes(lab, 1, 1) == [OFF]
    set_faults(lab)
    wait_until("it is back", lambda: outcomes(lab, 0, 1) == [OFF])
