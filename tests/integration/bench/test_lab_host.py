"""What a lab host promises, one by one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import lab_host
from support.failures import CommandFailed
from support.street import OUTSIDE, Street

if TYPE_CHECKING:
    from support.lab_host import LabHost

GUEST = """
<domain type='qemu'><name>guest</name><memory unit='MiB'>64</memory>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><interface type='network'><source network='default'/><model type='virtio'/></interface></devices></domain>
"""
# A service that leaves a file when it is stopped.
SAYS_FAREWELL = "systemd-run -r -p ExecStop='/usr/bin/touch /etc/stopped' /usr/bin/true"
# A machine behind libvirt's network without the cost of a guest. The bridge learns for some seconds before it forwards.
BEHIND_NAT = """
ip netns add behind
ip link add b0 type veth peer name b1 netns behind
ip link set b0 master virbr0 up
ip -n behind address add 192.168.122.50/24 dev b1
ip -n behind link set b1 up
ip -n behind route add default via 192.168.122.1
ip netns exec behind ping -c 1 -w 20 203.0.113.1
"""


def test_when_it_has_started_all_its_units_are_well() -> None:
    with lab_host.start() as host:
        assert host.run("systemctl is-system-running").stdout == "running\n"
        assert host.run("hostname").stdout == "lab\n"


def test_a_reboot_keeps_the_disk_and_nothing_else(lab_host: LabHost) -> None:
    lab_host.write("/etc/kept", "kept")
    lab_host.run("touch /run/lost; ip link add lost type bridge")
    lab_host.run(SAYS_FAREWELL)
    lab_host.reboot()
    assert lab_host.read("/etc/kept") == "kept"
    assert lab_host.run("ls /etc/stopped").stdout == "/etc/stopped\n"
    assert lab_host.run("ls /run/lost", check=False).returncode != 0
    assert "lost" not in lab_host.run("ip link").stdout
    assert lab_host.run(["ping", "-c1", "-W5", OUTSIDE]).returncode == 0


def test_a_power_cut_stops_no_service_properly(lab_host: LabHost) -> None:
    lab_host.run(SAYS_FAREWELL)
    lab_host.run("setsid sleep 4711 >/dev/null 2>&1 & echo kept > /etc/kept")
    lab_host.kill()
    assert lab_host.read("/etc/kept") == "kept\n"
    assert lab_host.run("ls /etc/stopped", check=False).returncode != 0
    assert "sleep 4711" not in lab_host.run("ps ax").stdout


def test_without_systemd_it_runs_nothing_and_survives_the_same_treatment() -> None:
    with lab_host.start(init="none") as host:
        assert host.run("ls -d /run/systemd/system", check=False).returncode != 0
        assert "systemd" not in host.run("ps -e -o comm").stdout
        host.write("/etc/kept", "kept")
        host.reboot()
        host.kill()
        assert host.read("/etc/kept") == "kept"
        assert host.run(["ping", "-c1", "-W5", OUTSIDE]).returncode == 0


def test_debian_13_has_the_newer_python() -> None:
    with lab_host.start(suite="trixie") as host:
        assert host.run("systemctl is-system-running").stdout == "running\n"
        assert host.run("python3 --version").stdout.startswith("Python 3.13.")


def test_libvirt_its_nat_network_and_a_guest_work(lab_host: LabHost) -> None:
    lab_host.run("virsh net-start default")
    assert "dnsmasq" in lab_host.run("ps -e -o comm").stdout
    # The first answers may come together, when the bridge has learnt its ports.
    assert re.search(r" [1-9]\d* received", lab_host.run(BEHIND_NAT).stdout)
    assert "masquerade" in lab_host.run("nft list ruleset").stdout
    lab_host.run(["virsh", "create", "/dev/stdin"], input=GUEST)
    assert lab_host.run("virsh domstate guest").stdout.strip() == "running"
    assert "master virbr0" in lab_host.run("bridge link show dev vnet0").stdout


def test_ansible_reaches_it_by_real_ssh(lab_host: LabHost) -> None:
    def ansible(*arguments: str) -> str:
        program = Path(sys.executable).with_name("ansible")
        command = [str(program), "all", "-i", str(lab_host.inventory("it")), "-o", *arguments]
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout

    assert "it | SUCCESS" in ansible("-m", "ping")
    assert "/usr/bin/python3" in ansible("-m", "setup", "-a", "filter=ansible_python")
    ansible("-m", "copy", "-a", "content=hello dest=/etc/hello")
    assert lab_host.read("/etc/hello") == "hello"
    lab_host.reboot()  # with Ansible's connection still open
    assert "it | SUCCESS" in ansible("-m", "ping")


def test_it_has_no_way_to_the_machines_network(shared_lab_host: LabHost) -> None:
    machines = subprocess.run(["hostname", "-I"], check=True, text=True, capture_output=True).stdout.split()
    for address in machines:
        assert shared_lab_host.run(["ping", "-c1", "-W1", address], check=False).returncode != 0


def test_a_mirror_gives_apt_and_pip_what_the_machine_has() -> None:
    with lab_host.start(layer="bare", mirror=True) as host:
        host.run("apt-get -q update && apt-get -qy install python3-venv", timeout=300)
        host.run("python3 -m venv /opt/venv && /opt/venv/bin/pip install -q six", timeout=300)
        assert host.run("/opt/venv/bin/python -c 'import six; print(six.__name__)'").stdout == "six\n"
        host.reboot()
        host.run("apt-get -q update")


def test_without_kvm_there_is_no_device_and_with_it_the_group_may_open_it(shared_lab_host: LabHost) -> None:
    assert shared_lab_host.run("ls /dev/kvm", check=False).returncode != 0
    if Path("/dev/kvm").exists():
        with lab_host.start(kvm="machine") as host:
            assert host.run("stat -c '%A %U:%G' /dev/kvm").stdout == "crw-rw---- root:kvm\n"


def test_its_disk_can_be_made_small() -> None:
    with (
        lab_host.start(layer="bare", disk="64M") as host,
        pytest.raises(CommandFailed, match="No space left on device"),
    ):
        host.run("dd if=/dev/zero of=/big bs=1M count=100")


def test_hosts_on_one_street_reach_each_other() -> None:
    street = Street()
    with (
        lab_host.start(street=street, number=11, hostname="one") as one,
        lab_host.start(street=street, number=12, hostname="two") as two,
    ):
        assert one.run(["ping", "-c1", "-W5", two.address]).returncode == 0
        assert "1 received" in street.run(["ping", "-c1", "-W5", one.address]).stdout
    street.close()


def test_a_directory_can_be_copied_into_it(shared_lab_host: LabHost, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("text")
    (tmp_path / "link").symlink_to("kept/file")
    (tmp_path / "left_out").write_text("")
    shared_lab_host.copy_tree(tmp_path, "/srv/copy", exclude=["left_out"])
    assert shared_lab_host.run("cat /srv/copy/link; ls /srv/copy").stdout == "textkept\nlink\n"


def test_a_command_that_fails_says_what_it_said(shared_lab_host: LabHost) -> None:
    with pytest.raises(CommandFailed, match="no-such-file"):
        shared_lab_host.run("cat /no-such-file")


def test_a_command_over_its_time_is_killed(shared_lab_host: LabHost) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        shared_lab_host.run(["sleep", "4712"], timeout=1)
    assert "sleep 4712" not in shared_lab_host.run("ps ax").stdout
