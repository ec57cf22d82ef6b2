"""VMs whose BMCs speak IPMI: stopped and started by the BMC software's own client, as hosts have no ipmitool."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support import ipmi_lab
from support.ipmi_lab import PACKAGE, PASSWORD, USER
from support.modules import run_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.ipmi_lab import IpmiLab
    from support.private_libvirtd import PrivateLibvirtd

HOME, SOFTWARE = "/run/libvirt/home", "/run/libvirt/software"
NODES = [
    {"name": "control-plane-0", "vm_name": "node-0", "role": "control-plane"},
    {"name": "worker-0", "vm_name": "node-1", "role": "worker"},
]


@pytest.fixture
def lab(private_libvirtd: PrivateLibvirtd) -> Iterator[IpmiLab]:
    with ipmi_lab.start(private_libvirtd, nodes=2) as made:
        own = made.libvirtd.path(f"{HOME}/demo")
        own.mkdir(parents=True)
        (own / "config.json").write_bytes(made.config_file.read_bytes())
        write_passwords(made, PASSWORD)
        python = made.libvirtd.path(f"{SOFTWARE}/bin/python")
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nPYTHONPATH={PACKAGE} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        yield made


def write_passwords(lab: IpmiLab, password: str) -> None:
    logins = {node["vm_name"]: {"username": USER, "password": password} for node in NODES}
    lab.libvirtd.path(f"{HOME}/demo/credentials.json").write_text(json.dumps(logins))


def power(lab: IpmiLab, state: str, **options: Any) -> dict[str, Any]:
    places = {"home": HOME, "bmc_home": HOME, "bmc_software": SOFTWARE}
    arguments = {"lab": "demo", "nodes": NODES, "state": state, "shutdown_seconds": 1, **places}
    return run_beside(lab.libvirtd, "cluster_power", arguments, **options)


def is_on(lab: IpmiLab, number: int) -> bool:
    return lab.domain_id(number) != "-"


def test_by_ipmi(lab: IpmiLab) -> None:
    lab.switch(0, "on")
    assert power(lab, "stopped", check_mode=True)["steps"] == ["shut down control-plane-0"]
    stopped = power(lab, "stopped")
    assert (stopped["switched"], stopped["forced"]) == (["control-plane-0"], ["control-plane-0"])  # it does not hear
    assert not is_on(lab, 0)
    assert not power(lab, "stopped")["changed"]

    assert power(lab, "started")["switched"] == ["control-plane-0"]
    assert (is_on(lab, 0), is_on(lab, 1)) == (True, False)


def test_a_wrong_password_is_named_and_nothing_is_switched(lab: IpmiLab) -> None:
    write_passwords(lab, "another one")
    said = power(lab, "stopped")
    assert said["failed"]
    assert said["msg"].startswith("BMCs give no answer: control-plane-0: ")
    assert "another one" not in json.dumps(said)
