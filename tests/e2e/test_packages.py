"""Packages: a power cut while they are installed, and their removal when it is asked for."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from support import checkout, lab_host, processes, stranger
from support.checkout import run_playbook
from support.failures import ending
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

# dpkg is held while its state is looked at, so what is seen is what the power cut meets.
HALF_DONE = """\
pkill -STOP -x dpkg || exit 1
[ -n "$(dpkg --audit)$(ls /var/lib/dpkg/updates)" ] && exit
pkill -CONT -x dpkg
exit 1
"""
INSTALL_SECONDS = 300


@pytest.fixture
def bare() -> Iterator[LabHost]:
    with lab_host.start(layer="bare", mirror=True) as host:
        yield host


@pytest.mark.full
def test_a_power_cut_while_packages_are_unpacked_is_repaired_by_the_next_run(bare: LabHost, tmp_path: Path) -> None:
    inventory = checkout.inventory(bare, tmp_path)
    with subprocess.Popen(
        checkout.command("host", inventory), cwd=checkout.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as controller:
        wait_until("a package is unpacked", lambda: bare.run(HALF_DONE, check=False).returncode == 0, INSTALL_SECONDS)
        for process in (controller.pid, *processes.descendants(controller.pid)):
            os.kill(process, signal.SIGKILL)
    bare.kill()

    repaired = run_playbook("host", inventory)
    assert repaired.returncode == 0, ending(repaired.stdout)
    assert bare.run("dpkg --audit").stdout == ""


@pytest.mark.full
def test_packages_that_were_brought_go_when_asked_and_others_stay(bare: LabHost, tmp_path: Path) -> None:
    # tree is somebody's; libjansson4 lies about needlessly, is needed by what the lab brings, and needless again after.
    # dnsmasq was in use once, and somebody wants to keep its configuration.
    bare.run(BEFORE, timeout=300)
    before = packages(bare)
    inventory = checkout.inventory(bare, tmp_path)
    assert run_playbook("site", inventory).returncode == 0

    # Meanwhile somebody has a VM and a network, and has configured qemu; and a program that goes better with what came.
    stranger.define_vm(bare)
    bare.run(["virsh", "net-define", "/dev/stdin"], input="<network><name>theirs</name></network>")
    bare.write("/root/theirs/DEBIAN/control", SOMEBODYS_PROGRAM)
    bare.run("dpkg-deb --build /root/theirs && dpkg --install /root/theirs.deb && rm -r /root/theirs*")
    bare.run("echo '# edited' >>/etc/libvirt/qemu.conf")
    kept = run_playbook("teardown", inventory, *REMOVE_PACKAGES)
    assert kept.returncode == 0, ending(kept.stdout)
    assert "libvirt and its packages stay for what is not a lab's: VM mine, network theirs" in kept.stdout
    assert "libvirt-daemon-system" in packages(bare)

    bare.run("virsh undefine mine; virsh net-undefine theirs")
    removed = run_playbook("teardown", inventory, *REMOVE_PACKAGES)
    assert removed.returncode == 0, ending(removed.stdout)
    for reason in ("zstd (theirs depends on it)", "xorriso (theirs recommends it)", "mtools (theirs suggests it)"):
        assert reason in removed.stdout
    [of_qemu] = bare.run("dpkg-query --search /etc/libvirt/qemu.conf").stdout.split(":")[:1]
    assert packages(bare) == before | needed_by_somebodys_program(bare) | {f"{of_qemu} config-files"}
    for edited in ("/etc/libvirt/qemu.conf", "/etc/dbus-1/system.d/dnsmasq.conf"):
        assert bare.read(edited).endswith("edited -->\n" if edited.endswith("dnsmasq.conf") else "# edited\n")
    assert "/etc/libvirt/qemu.conf" in removed.stdout
    assert bare.run("ls /var/lib/nometal", check=False).stdout == ""


BEFORE = """
apt-get update -qq && apt-get install -qq --yes tree libjansson4 dnsmasq-base && apt-mark auto libjansson4
echo '<!-- edited -->' >>/etc/dbus-1/system.d/dnsmasq.conf
apt-get remove -qq --yes dnsmasq-base && apt-get autoremove -qq --yes
apt-get install -qq --yes libjansson4 && apt-mark auto libjansson4
"""
SOMEBODYS_PROGRAM = """\
Package: theirs
Version: 1
Architecture: all
Maintainer: They <they@example.test>
Depends: zstd
Recommends: xorriso
Suggests: mtools
Description: somebody's program
"""
REMOVE_PACKAGES = ("-e", "host_prep_remove_packages=true")


def packages(host: LabHost) -> set[str]:
    """With `config-files` where only those are left."""
    shown = host.run("dpkg-query --show --showformat='${Package} ${db:Status-Status}\\n'").stdout
    return {line.replace(" installed", "") for line in shown.splitlines()}


def needed_by_somebodys_program(host: LabHost) -> set[str]:
    foreseen = host.run("apt-get --simulate purge --autoremove theirs").stdout
    return {line.split()[1] for line in foreseen.splitlines() if line.startswith("Purg ")}
