"""host_info, host_memory, lab_record and libvirt_service on lab hosts, with and without systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import lab_host, stranger
from support.modules import run_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

INSTALL = "install /etc/libvirt/hooks/network.d/nometal"
NETWORK_AGAIN = "virsh net-destroy default && virsh net-start default"
ANSWERS = "virsh --connect qemu:///system --quiet uri"
# By the pid files: while dnsmasq forks into the background, both of its processes are there.
RUNNING = "cd /run/libvirt; ps -o pid=,lstart= -p $(cat qemu/mine.pid),$(cat network/default.pid)"


@pytest.fixture(params=["systemd", pytest.param("none", marks=pytest.mark.full)])
def host(request: pytest.FixtureRequest) -> Iterator[LabHost]:
    with lab_host.start(layer="prepared", init=request.param) as started:
        yield started


def stop_libvirt_where_it_runs(host: LabHost) -> None:
    if host.facts["init"] == "systemd":
        stranger.stop_libvirt(host)


def service(host: LabHost, state: str, *, check_mode: bool = False) -> dict[str, Any]:
    return run_in(host, "libvirt_service", {"state": state}, check_mode=check_mode)


def test_libvirt_is_started_and_put_back(host: LabHost) -> None:
    stop_libvirt_where_it_runs(host)
    assert host.run(ANSWERS, check=False).returncode != 0
    host.run("rmdir /etc/libvirt/hooks")

    foreseen = service(host, "started", check_mode=True)
    assert foreseen["changed"]
    assert host.run(ANSWERS, check=False).returncode != 0
    started = service(host, "started")
    assert started["steps"] == foreseen["steps"]
    assert host.run(ANSWERS).returncode == 0
    for check_mode in (True, False):
        assert service(host, "started", check_mode=check_mode)["steps"] == []

    foreseen = service(host, "restored", check_mode=True)
    assert host.run(ANSWERS).returncode == 0
    restored = service(host, "restored")
    assert restored["steps"] == foreseen["steps"] != []
    assert host.run(ANSWERS, check=False).returncode != 0
    for check_mode in (True, False):
        assert service(host, "restored", check_mode=check_mode)["steps"] == []
    if host.facts["init"] == "none":
        assert host.run("ls /run/libvirtd.pid /run/virtlogd.pid", check=False).stdout == ""
    assert host.run("ls -d /etc/libvirt/hooks", check=False).stdout == ""


def test_a_lab_is_recorded_and_found(host: LabHost) -> None:
    record = {"lab": "demo", "model": {"name": "demo"}}
    host.run("touch /dev/kvm && chgrp root /dev/kvm && chmod 640 /dev/kvm")
    before = run_in(host, "host_info", {})
    assert before["labs"] == []
    assert "packages" not in before
    looked = run_in(host, "host_info", {"packages": True, "users": ["root", "nobody-here"]})
    assert {"libvirt-clients", "qemu-utils"} < {*looked["packages"]["installed"]}
    assert looked["users"] == {"root": {"comment": "root", "groups": ["root"]}, "nobody-here": None}
    assert before["distribution"]["family"] == "Debian"
    assert before["kvm_device"] == {"group": "root", "mode": "0640", "group_writes": False, "others_write": False}
    foreseen = run_in(host, "lab_record", record, check_mode=True)
    assert run_in(host, "host_info", {})["labs"] == []
    assert run_in(host, "lab_record", record)["steps"] == foreseen["steps"] != []
    assert not run_in(host, "lab_record", record)["changed"]
    host.run("rm /dev/kvm")
    after = run_in(host, "host_info", {}, check_mode=True)
    assert (after["labs"], after["kvm_device"]) == (["demo"], None)


def test_libvirt_is_left_running_for_vms_of_others(host: LabHost) -> None:
    stop_libvirt_where_it_runs(host)
    service(host, "started")
    stranger.define_vm(host)
    restored = service(host, "restored")
    assert restored["kept_for"] == ["mine"]
    assert host.run(ANSWERS).returncode == 0


def test_a_daemon_that_runs_is_restarted_for_the_hook_and_nothing_else_notices(host: LabHost) -> None:
    if host.facts["init"] == "none":
        host.run("virtlogd --daemon && libvirtd --daemon")
    stranger.define_vm(host)
    host.run("virsh start mine && virsh net-start default")
    running = host.run(RUNNING).stdout

    foreseen = service(host, "started", check_mode=True)
    assert {INSTALL, "restart libvirtd"} <= set(foreseen["steps"])
    assert service(host, "started")["steps"] == foreseen["steps"]
    assert service(host, "started")["steps"] == []
    assert host.run(RUNNING).stdout == running
    assert host.run("virsh list --name; virsh net-list --name").stdout.split() == ["mine", "default"]

    host.write("/etc/libvirt/hooks/nometal.d/demo.veth", '#!/bin/sh\necho "$@" >>/run/called\n', mode="0755")
    host.run(NETWORK_AGAIN)
    assert host.read("/run/called") == "default stopped\ndefault started\n"
    host.run("rm -r /etc/libvirt/hooks/nometal.d; echo exit 1 >/etc/libvirt/hooks/network.d/nometal")
    assert service(host, "started")["steps"] == [INSTALL, "restart libvirtd"]

    assert service(host, "restored")["kept_for"] == []
    assert host.run("ls /etc/libvirt/hooks").stdout == ""
    host.run(NETWORK_AGAIN)
    assert host.run("virsh list --name").stdout.split() == ["mine"]


def test_a_daemon_killed_is_started_again(host: LabHost) -> None:
    service(host, "started")
    host.run("kill -KILL $(cat /run/libvirtd.pid)", check=False)
    service(host, "started")
    assert host.run(ANSWERS).returncode == 0


def test_notes_are_kept_first_come(host: LabHost) -> None:
    first = {"notes": {"kvm_device": {"mode": "0600"}}}

    foreseen = run_in(host, "host_memory", first, check_mode=True)
    assert foreseen["changed"]
    assert run_in(host, "host_memory", {})["notes"] == {}
    noted = run_in(host, "host_memory", first)
    assert noted["shown_diff"] == foreseen["shown_diff"] != ""
    assert not run_in(host, "host_memory", first)["changed"]

    later = {"notes": {"kvm_device": {"mode": "0660"}}}
    assert not run_in(host, "host_memory", later)["changed"]
    assert run_in(host, "host_memory", {})["notes"] == first["notes"]


def test_a_damaged_memory_is_told(host: LabHost) -> None:
    host.write("/var/lib/nometal/host.json", "{")
    told = run_in(host, "host_memory", {})
    assert told["failed"]
    assert "host.json, which remembers what the host was like before, cannot be read" in told["msg"]
