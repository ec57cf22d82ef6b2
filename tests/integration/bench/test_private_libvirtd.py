"""What a private libvirtd promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import libvirt
import pytest
from support import private_libvirtd
from support.failures import CommandFailed

if TYPE_CHECKING:
    from support.private_libvirtd import PrivateLibvirtd

NETWORK = """
<network><name>lan</name><forward mode='nat'/><bridge name='lan0'/>
<ip address='192.168.150.1' netmask='255.255.255.0'><dhcp><range start='192.168.150.2' end='192.168.150.9'/></dhcp></ip>
</network>
"""
GUEST = """
<domain type='qemu'><name>guest</name><memory unit='MiB'>64</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><interface type='network'><source network='lan'/><model type='virtio'/></interface></devices></domain>
"""


def test_when_it_has_started_it_is_empty() -> None:
    with private_libvirtd.start() as libvirtd:
        assert libvirtd.run(["virsh", "net-list", "--all", "--name"]).stdout.strip() == ""
        assert list(libvirtd.path("/var/lib/libvirt/images").iterdir()) == []
        assert libvirtd.run(["ip", "-br", "link"]).stdout.count("\n") == 1


def test_networks_and_guests_live_through_its_restart(private_libvirtd: PrivateLibvirtd) -> None:
    connection = libvirt.open(private_libvirtd.uri)
    connection.networkCreateXML(NETWORK)
    connection.createXML(GUEST)
    assert "lan0" in private_libvirtd.run(["ip", "-br", "link"]).stdout
    private_libvirtd.kill()
    with pytest.raises(CommandFailed):
        private_libvirtd.run(["virsh", "uri"])
    private_libvirtd.boot()
    again = libvirt.open(private_libvirtd.uri)
    assert again.lookupByName("guest").isActive()
    assert again.networkLookupByName("lan").isActive()


def test_defining_a_guest_does_not_probe_qemu_each_time(shared_private_libvirtd: PrivateLibvirtd) -> None:
    """Each time it does, it writes down anew what it has found."""
    connection = libvirt.open(shared_private_libvirtd.uri)
    connection.getDomainCapabilities()
    probed = shared_private_libvirtd.path("/var/cache/libvirt/qemu/capabilities")
    before = {path.name: path.stat().st_mtime_ns for path in probed.iterdir()}
    assert before
    for _time in range(5):
        connection.defineXML(GUEST).undefine()
    assert {path.name: path.stat().st_mtime_ns for path in probed.iterdir()} == before


def test_the_machines_libvirt_is_out_of_sight(shared_private_libvirtd: PrivateLibvirtd) -> None:
    own = Path("/etc/libvirt/seen-by-the-machine-only")
    own.touch()
    try:
        assert not shared_private_libvirtd.path(str(own)).exists()
    finally:
        own.unlink()


def test_ansible_runs_a_module_beside_it(shared_private_libvirtd: PrivateLibvirtd) -> None:
    ansible = [Path(sys.executable).with_name("ansible"), "localhost", "-o", "-m", "command", "-a", "virsh uri"]
    command = shared_private_libvirtd.command([*map(str, ansible), "-e", "ansible_python_interpreter=/usr/bin/python3"])
    done = subprocess.run(command, check=True, text=True, capture_output=True, env=os.environ)
    assert "qemu:///system" in done.stdout


def test_kvm_is_absent_unless_asked_for(shared_private_libvirtd: PrivateLibvirtd) -> None:
    assert not shared_private_libvirtd.path("/dev/kvm").exists()
    if Path("/dev/kvm").exists():
        with private_libvirtd.start(kvm="machine") as libvirtd:
            assert libvirtd.path("/dev/kvm").group() == "kvm"
