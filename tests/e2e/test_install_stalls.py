"""Installations on a whole host in which something is broken on purpose: what is told of it, and how they go on."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, install_lab, rehearsal_lab, stall_faults, stall_recorder, stall_recording
from support.failures import ending
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.install_lab import InstallLab
    from support.lab_host import LabHost

    Look = Callable[..., None]

FILTER = """table inet mine {{
    chain in {{ type filter hook input priority 0; {rule}; }}
}}"""
NO_DHCP, NO_BMC = "udp dport 67 drop", "tcp dport 8000 drop"
LIBVIRT = "libvirtd.service libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket"
CREDENTIALS = "/var/lib/nometal/bmc/lab/credentials.json"
NETWORK = "nometal-lab"
UNUSED = "192.168.126.250"
BOOTSTRAP = "virsh list --name | grep -- -bootstrap$"
IMPATIENCE = "ipi_install_patience=0.01"
"""Eight seconds for the API, three for a BMC, and six for a node that says nothing."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstallLab]:
    with install_lab.start(tmp_path_factory.mktemp("stalls")) as made:
        yield made


@pytest.fixture
def look(lab: InstallLab, request: pytest.FixtureRequest) -> Look:
    """Find what is wrong with this fault; a recording has its name, and is judged by tests/unit."""

    def look(fault: str, **installation: Any) -> None:
        seen = stall_recorder.look(lab, **installation)
        if request.config.getoption("--record"):
            stall_recorder.keep(lab, fault, seen)
        else:
            stall_faults.judge(fault, stall_recording.read(seen).findings())

    return look


def events(host: LabHost, lab: InstallLab) -> list[dict[str, Any]]:
    told = host.run(["cat", f"/run/nometal/install/{lab.name}/events.jsonl"], check=False).stdout
    return [json.loads(line) for line in told.splitlines()]


def wait_until_told(lab: InstallLab, who: str, words: str) -> str:
    def told() -> list[str]:
        states = [str(event["state"]) for event in events(lab.host, lab) if event["who"] == who]
        return [state for state in states if words in state]

    return wait_until(f"{who} {words}", told, seen=lambda: events(lab.host, lab))[0]


@contextmanager
def installing(lab: InstallLab, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = checkout.command("install", lab.inventory(), *arguments)
    with subprocess.Popen(
        command, cwd=checkout.ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as run:
        try:
            yield run
        finally:
            run.kill()


@contextmanager
def filtered(host: LabHost, rule: str) -> Iterator[None]:
    host.run(["nft", "-f", "/dev/stdin"], input=FILTER.format(rule=rule))
    try:
        yield
    finally:
        host.run("nft delete table inet mine")


def test_what_stands_still_is_named_and_when_it_is_mended_the_installation_goes_on(lab: InstallLab, look: Look) -> None:
    host = lab.host
    lab.scenario(hang={"stage": "api"})
    with installing(lab, "-e", IMPATIENCE) as run:
        with filtered(host, NO_DHCP):
            wait_until_told(lab, "bootstrap", "has no address")
            wait_until_told(lab, "host", "drops packets to the DHCP server")
            look("bootstrap_without_address")
            [mac] = macs_of_bootstrap(host)
            host.run(f"virsh domif-setlink $({BOOTSTRAP}) {mac} down")
            look("static_bootstrap_without_carrier", bootstrap={"mode": "static", "ips": [UNUSED]})
            host.run(f"virsh domif-setlink $({BOOTSTRAP}) {mac} up")

        host.run("systemctl stop nometal-bmc-lab")
        lab.scenario(hang={"stage": "control plane", "host": "control-plane-1"})
        wait_until_told(lab, "bootstrap", "gone on since")
        wait_until_told(lab, "control-plane-1", "registration error")
        wait_until_told(lab, "BMC", "Those of all nodes: No answer")
        look("bmcs_stopped")

        host.run("systemctl start nometal-bmc-lab")
        wait_until_told(lab, "control-plane-1", "was reset")
        shown = run.communicate(timeout=PATIENCE)[0]
    assert run.returncode == 0, ending(shown)
    assert re.search(r"installer +100%  has installed the cluster", shown)
    assert re.findall(r"(\S+) +TROUBLE: did not boot", shown) == ["control-plane-1"]
    record = json.loads(host.read(f"/var/lib/nometal/install/{lab.name}/power-cycled.json"))
    assert list(record.values()) == [["control-plane-1"]]


@pytest.mark.full
def test_what_fails_at_once_is_blamed_on_nobody_else(lab: InstallLab, look: Look) -> None:
    removed = lab.remove_cluster()
    assert removed.returncode == 0, ending(removed.stdout)
    lab.scenario(fail={"stage": "infrastructure", "message": "something unheard of"})
    failed = lab.install()
    assert failed.returncode != 0
    said = re.search(r"is not complete: .*? Run this again", failed.stdout, re.DOTALL)
    assert said, ending(failed.stdout)
    assert "something unheard of" in said[0]
    look("failed_at_once")


@pytest.mark.full
def test_control_plane_nodes_that_are_off_after_bootstrapping(lab: InstallLab, look: Look) -> None:
    removed = lab.remove_cluster()
    assert removed.returncode == 0, ending(removed.stdout)
    lab.scenario(hang={"stage": "initialize"})
    with installing(lab):
        wait_until_told(lab, "installer", "initialize")
        lab.host.run("\n".join(f"virsh destroy {name}" for name in stall_faults.EVERY_VM))
        wait_until_told(lab, "control plane", "switched off")
        look("nodes_off")


@pytest.fixture(scope="module")
def hung(lab: InstallLab) -> Iterator[InstallLab]:
    """While nothing but the API is missing."""
    removed = lab.remove_cluster()
    assert removed.returncode == 0, ending(removed.stdout)
    lab.scenario(hang={"stage": "api"})
    with installing(lab):
        wait_until_told(lab, "installer", "waits for the API")
        yield lab


@pytest.mark.full
def test_an_api_that_does_not_come_up(hung: InstallLab, look: Look) -> None:
    wait_until("the bootstrap VM has its address", lambda: has_lease(hung.host))
    look("api_not_up")


def macs_of_bootstrap(host: LabHost) -> list[str]:
    return host.run(f"virsh domiflist $({BOOTSTRAP}) | grep -o '52:54[0-9a-f:]*'").stdout.split()


def has_lease(host: LabHost) -> bool:
    [mac] = macs_of_bootstrap(host)
    return mac in host.run(f"virsh net-dhcp-leases {NETWORK}").stdout


@pytest.mark.full
def test_a_libvirt_that_is_stopped(hung: InstallLab, look: Look) -> None:
    hung.host.run(f"systemctl stop {LIBVIRT}")
    try:
        look("libvirt_stopped")
    finally:
        hung.host.run(f"systemctl start {LIBVIRT}")


@pytest.mark.full
def test_a_name_that_the_host_does_not_know(hung: InstallLab, look: Look) -> None:
    host, [vip] = hung.host, rehearsal_lab.model(hung.inventory())["vips"]["api"]
    known = re.search(rf"<host ip='{vip}'>.*?</host>", host.run(f"virsh net-dumpxml {NETWORK}").stdout, re.DOTALL)
    assert known
    change = ["virsh", "net-update", NETWORK, "--live", "--section", "dns-host", "--xml", known[0], "--command"]
    host.run([*change, "delete"])
    try:
        look("api_name_unknown")
    finally:
        host.run([*change, "add"])


@pytest.mark.full
def test_bmcs_that_are_filtered_or_refuse_their_password_and_a_bootstrap_vm_that_is_off(
    hung: InstallLab, look: Look
) -> None:
    """One after the other: without the bootstrap VM, nothing goes on."""
    host = hung.host
    hung.scenario(hang={"stage": "control plane", "host": "control-plane-1"})
    for name in ("control-plane-0", "control-plane-2"):
        wait_until_told(hung, name, "provisioned")
    with filtered(host, NO_BMC):
        look("bmcs_filtered")

    kept = host.read(CREDENTIALS)
    wrong = {name: {**login, "password": login["password"][:-1]} for name, login in json.loads(kept).items()}
    host.write(CREDENTIALS, json.dumps(wrong), "0600")
    try:
        look("bmc_passwords_changed")
    finally:
        host.write(CREDENTIALS, kept, "0600")

    host.run(f"virsh destroy $({BOOTSTRAP})")
    look("bootstrap_switched_off")
