"""The doctor's table on hosts made bad on purpose; a blocker stops site.yml before anything is changed."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from support import checkout, lab_host, stranger
from support.checkout import run_playbook
from support.failures import ending

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from support.lab_host import LabHost

INSTALL = {"install": {"version": "stable-4.20", "pull_secret_file": "~/pull-secret.json"}}
REAL_SIZE = {"vcpus": 4, "memory": "8GiB", "disks": [{"size": "120GiB"}]}


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Iterator[LabHost]:
    with lab_host.start(layer="prepared", **getattr(request, "param", {})) as started:
        yield started


def finding(table: str, check: str) -> str:
    """A check's row with its advice, as one line."""
    rows = table.splitlines()
    starts = [number for number, row in enumerate(rows) if re.match(rf"(ok|warning|BLOCKER) +{check} ", row)]
    assert starts, table
    row = rows[starts[0]]
    for more in rows[starts[0] + 1 :]:
        if not more.startswith(" "):
            break
        row += " " + more.strip()
    return re.sub(r" +", " ", row)


def sentence(output: str, check: str) -> str:
    """What a finding says where it is no line of a table."""
    what, advice = re.split(r" +-> ", finding(output, check).partition(f"{check} ")[2])
    return f"{what}. {advice}"


class Bad(NamedTuple):
    """What makes a host unfit for a lab."""

    spoil: str = "true"
    spec: Mapping[str, Any] = MappingProxyType({})


TAKE_SUBNET = "ip link add taken type bridge && ip address add 192.168.126.77/24 dev taken && ip link set taken up"
HANG_LIBVIRT = "systemctl start libvirtd && kill -STOP $(cat /run/libvirtd.pid)"
FILL_DISK = "fallocate -l $(($(df --output=avail --block-size=1 /var/lib | tail -n 1) - 100000000)) /var/lib/full"
HUGE = {"nodes": {"control_plane": {"count": 3, "memory": "1TiB"}}}
BAD_HOSTS = [
    pytest.param(Bad(spec=HUGE), "memory", "3145728 MiB needed", id="too little memory", marks=pytest.mark.full),
    pytest.param(Bad(FILL_DISK), "pool_space", "0.1 GiB free", id="a full disk", marks=pytest.mark.full),
    pytest.param(Bad(TAKE_SUBNET), "subnets", "192.168.126.0/24", id="a taken subnet", marks=pytest.mark.full),
    pytest.param(Bad(HANG_LIBVIRT), "libvirt", "libvirt-sock", id="a hung libvirtd"),
]


@pytest.mark.parametrize(("bad", "check", "measured"), BAD_HOSTS)
def test_a_bad_host_is_told_and_left_alone(host: LabHost, tmp_path: Path, bad: Bad, check: str, measured: str) -> None:
    inventory = checkout.inventory(host, tmp_path, **bad.spec)
    host.run("virsh uri")  # when libvirt starts for the first time, it makes directories
    host.run(bad.spoil)
    files = "find /etc /var/lib/nometal /var/lib/libvirt 2>/dev/null | sort"
    before = host.run(files).stdout

    told = run_playbook("doctor", inventory)
    assert told.returncode != 0
    assert f"This host cannot carry lab rehearsal: {check}" in told.stdout
    stopped = run_playbook("site", inventory)
    assert stopped.returncode != 0
    assert finding(stopped.stdout, check).startswith("BLOCKER ")
    assert measured in finding(stopped.stdout, check)
    assert "->" in finding(stopped.stdout, check)
    assert f"- {check}: {sentence(told.stdout, check)}" in told.stdout  # whole, though the table wraps it
    refusals = stopped.stdout.partition("Nothing was changed, because of this:")[2]
    assert f"- doctor: {check}: {sentence(stopped.stdout, check)}" in refusals
    assert "Prepare the host" not in stopped.stdout
    assert host.run(files).stdout == before


@pytest.mark.full
def test_a_dead_libvirtd_is_brought_back(host: LabHost, tmp_path: Path) -> None:
    """That is work for host_prep and no blocker."""
    stranger.stop_libvirt(host)
    run = run_playbook("site", checkout.inventory(host, tmp_path))
    assert run.returncode == 0, ending(run.stdout)
    first, second = run.stdout.split("PLAY [Prepare the host]")
    assert finding(first, "libvirt").startswith("warning ")
    assert finding(second, "libvirt").startswith("ok ")


@pytest.mark.parametrize(
    "host",
    [
        pytest.param({"kvm": "machine"}, id="lies"),
        pytest.param({"kvm": "absent"}, id="is not there", marks=pytest.mark.full),
    ],
    indirect=True,
)
def test_a_kvm_that_cannot_run_a_guest_is_enough_for_a_rehearsal_only(host: LabHost, tmp_path: Path) -> None:
    # Where this machine's own KVM works, there is none that lies.
    lies = host.facts["kvm"] == "machine"
    rehearsal = run_playbook("doctor", checkout.inventory(host, tmp_path))
    if lies and finding(rehearsal.stdout, "kvm").startswith("ok "):
        return
    assert rehearsal.returncode == 0, ending(rehearsal.stdout)
    assert finding(rehearsal.stdout, "kvm").startswith("warning ")

    real: dict[str, Any] = {**INSTALL, "nodes": {"control_plane": {"count": 3, **REAL_SIZE}}}
    refused = run_playbook("doctor", checkout.inventory(host, tmp_path, **real))
    assert refused.returncode != 0
    assert finding(refused.stdout, "kvm").startswith("BLOCKER ")
