"""The bmh_vm module on a real libvirtd: made, changed and removed, each repeated; and what it must leave alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libvirt
import pytest
from support import private_libvirtd
from support.checkout import ROOT
from support.modules import answer_beside, run_beside
from support.waiting import stays

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from support.private_libvirtd import PrivateLibvirtd

POOL = "nometal-demo"
DIRECTORY = f"/var/lib/libvirt/images/{POOL}"
MIB = 1024**2
GIB = 1024**3
UUID = "0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e{:02x}"
BMC_STATE = "<bmc:state xmlns:bmc='urn:nometal:ipi:bmc' once='cd'/>"
SECRET = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE
MODULE = ["-m", "ansible_collections.nometal.ipi.plugins.modules.bmh_vm"]
PREPARATION = f"""
virsh pool-define-as {POOL} dir --target {DIRECTORY} && virsh pool-build {POOL} && virsh pool-start {POOL} &&
ip link add baremetal type bridge && ip link set baremetal up &&
echo '<network><name>{POOL}</name><bridge name="nm-demo"/></network>' | virsh net-define /dev/stdin &&
virsh net-start {POOL} && echo '<network><name>down</name></network>' | virsh net-define /dev/stdin
"""


def vm(number: int, **others: Any) -> dict[str, Any]:
    return {
        "name": f"node-{number}",
        "vm_name": f"demo-{number}",
        "uuid": UUID.format(number),
        "vcpus": 1,
        "memory_mib": 128,
        "firmware": "bios",
        "disks": [disk(number)],
        "nics": [{"mac": f"52:54:00:00:00:{number:02x}", "bridge": "baremetal", "boot_order": 1}],
        **others,
    }


def disk(number: int, at: int = 0, **others: Any) -> dict[str, Any]:
    return {"name": f"demo-{number}-{at}.qcow2", "size_bytes": GIB, "serial": f"NM{number}-{at}", **others}


def arguments(*vms: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"owner": "demo", "pool": POOL, "vms": list(vms), **others}


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        started.run(["sh", "-c", PREPARATION])
        yield started


@pytest.fixture(autouse=True)
def _clean(libvirtd: PrivateLibvirtd) -> Iterator[None]:
    yield
    make(libvirtd, owner="demo", state="absent")
    libvirtd.run(["sh", "-c", f"for d in $(virsh list --all --name); do virsh undefine $d; done; rm -f {DIRECTORY}/*"])


def command(libvirtd: PrivateLibvirtd) -> list[str]:
    places = f"PYTHONPATH={ROOT}/playbooks/collections"
    return libvirtd.command(["env", places, sys.executable, *MODULE])


def make(libvirtd: PrivateLibvirtd, *, check_mode: bool = False, **params: Any) -> dict[str, Any]:
    return answer_beside(libvirtd, "bmh_vm", params, check_mode=check_mode)


def make_meanwhile(libvirtd: PrivateLibvirtd, **params: Any) -> dict[str, Any]:
    """Beside others that do the same."""
    given = json.dumps({"ANSIBLE_MODULE_ARGS": params})
    done = subprocess.run(command(libvirtd), input=given, text=True, capture_output=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def steps(libvirtd: PrivateLibvirtd, *vms: dict[str, Any], **others: Any) -> list[str]:
    """What a run did, and that the next one has nothing left to do."""
    done = make(libvirtd, **arguments(*vms, **others))
    assert not done.get("failed"), done["msg"]
    assert not make(libvirtd, **arguments(*vms, **others))["changed"]
    return done["steps"]


def refused(libvirtd: PrivateLibvirtd, *vms: dict[str, Any], **others: Any) -> str:
    """Why, and that nothing was changed."""
    before = everything(libvirtd)
    answer = make(libvirtd, **arguments(*vms, **others))
    assert answer.get("failed"), answer
    assert everything(libvirtd) == before
    return answer["msg"]


def everything(libvirtd: PrivateLibvirtd) -> str:
    places = f"/etc/libvirt/qemu {DIRECTORY} /var/lib/libvirt/qemu /var/log/libvirt/qemu/*console*"
    return libvirtd.run(["sh", "-c", f"ls -lR {places} 2>/dev/null; cat /etc/libvirt/qemu/*.xml"], check=False).stdout


def domain(libvirtd: PrivateLibvirtd, number: int = 1) -> libvirt.virDomain:
    return libvirt.open(libvirtd.uri).lookupByName(f"demo-{number}")


def redefine(libvirtd: PrivateLibvirtd, *replacements: tuple[str, str]) -> str:
    """What somebody else does to VM 1; returns what libvirt makes of it."""
    text = domain(libvirtd).XMLDesc(SECRET)
    for pattern, new in replacements:
        text, times = re.subn(pattern, new, text, count=1, flags=re.DOTALL)
        assert times, pattern
    domain(libvirtd).connect().defineXML(text)
    return domain(libvirtd).XMLDesc(SECRET)


def volume(libvirtd: PrivateLibvirtd, name: str) -> dict[str, Any]:
    shown = libvirtd.run(["qemu-img", "info", "-U", "--output", "json", f"{DIRECTORY}/{name}"]).stdout
    return json.loads(shown)


def test_acceptance(libvirtd: PrivateLibvirtd) -> None:
    first = vm(1, firmware="uefi-secure", disks=[disk(1, rotational=False), disk(1, 1, bus="virtio", size_bytes=MIB)])
    nics = [
        {"mac": "52:54:00:00:01:02", "bridge": "baremetal", "boot_order": 2},
        {"mac": "52:54:00:00:02:02", "network": POOL, "boot_order": 1},
    ]
    second = vm(2, firmware="uefi", nics=nics, bmc={"address": "ipmi://192.0.2.1:6231"}, root_device_hints={"wwn": "x"})
    raw = {"size_bytes": GIB, "format": "raw", "bus": "sata", "rotational": True}
    both = arguments(first, {**second, "disks": [raw]})
    making = ["define demo-1", "define demo-2"]
    making += [f"create disk {name}" for name in ("demo-1-0.qcow2", "demo-1-1.qcow2", "demo-2-0.raw")]

    foreseen = run_beside(libvirtd, "bmh_vm", both, check_mode=True)
    assert foreseen["steps"] == making
    assert libvirtd.run(["virsh", "list", "--all", "--name"]).stdout.strip() == ""
    made = run_beside(libvirtd, "bmh_vm", both)
    assert made["changed"]
    assert made["steps"] == making
    assert made["shown_diff"] == foreseen["shown_diff"] != ""
    assert made["vms"] == foreseen["vms"]
    assert made["vms"][1] == {
        "name": "node-2",
        "vm_name": "demo-2",
        "uuid": UUID.format(2),
        "boot_mac": "52:54:00:00:02:02",
        "boot_mode": "UEFI",
        "root_device_hints": {"wwn": "x"},
        "bmc_address": "ipmi://192.0.2.1:6231",
        "console": "/var/log/libvirt/qemu/demo-2-console.log",
        "pending": [],
    }
    assert made["vms"][0]["root_device_hints"] == {"serialNumber": "NM1-0"}
    assert volume(libvirtd, "demo-1-0.qcow2")["virtual-size"] == GIB
    assert volume(libvirtd, "demo-2-0.raw")["actual-size"] == 0

    again = run_beside(libvirtd, "bmh_vm", both)
    assert not again["changed"]
    assert again["shown_diff"] == ""
    for number in (1, 2):
        domain(libvirtd, number).create()  # qemu takes all of it
    assert not make(libvirtd, **both)["changed"]

    gone: dict[str, Any] = {"owner": "demo", "state": "absent", "vms": [{"vm_name": "demo-1"}]}
    foreseen = run_beside(libvirtd, "bmh_vm", gone, check_mode=True)
    assert domain(libvirtd).isActive()
    removed = run_beside(libvirtd, "bmh_vm", gone)
    assert removed["steps"] == foreseen["steps"] == ["remove demo-1"]
    assert removed["shown_diff"] == foreseen["shown_diff"] != ""
    left = everything(libvirtd)
    assert "demo-1" not in left
    assert "demo-2_VARS.fd" in left
    assert not make(libvirtd, **gone)["changed"]
    libvirtd.path("/var/lib/libvirt/qemu/domain-99-demo-2").mkdir()  # it ran when the host went down
    assert make(libvirtd, owner="demo", state="absent")["steps"] == ["remove demo-2"]
    assert "demo-2" not in everything(libvirtd)


def test_what_was_changed_behind_its_back_is_put_right(libvirtd: PrivateLibvirtd) -> None:
    one = vm(1, disks=[disk(1), disk(1, 1)])
    make(libvirtd, **arguments(one))
    redefine(
        libvirtd,
        (r"<memory .*?</currentMemory>", "<memory>4096</memory>"),
        (
            r"<interface type='bridge'>(.*?)<source bridge='baremetal'/>",
            r"<interface type='network'>\1<source network='x'/>",
        ),
        (r"<disk type='file' device='cdrom'>.*?</disk>", ""),
        (r"<serial>NM1-0</serial>", ""),
        (r"<cpu .*?/>", "<cpu mode='host-model'/>"),
        (r"<log file='.*?/>", ""),
        (r"<log file='.*?/>", ""),
    )
    libvirtd.path(f"{DIRECTORY}/demo-1-1.qcow2").unlink()
    assert steps(libvirtd, one) == ["define demo-1", "create disk demo-1-1.qcow2"]
    text = domain(libvirtd).XMLDesc(SECRET)
    assert "<memory unit='KiB'>131072</memory>" in text
    assert "bridge='baremetal'" in text
    assert "device='cdrom'" in text
    assert len(re.findall("<boot order=", text)) == 4


def test_one_that_was_undefined_while_it_runs_is_defined_again(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    domain(libvirtd).create()
    domain(libvirtd).undefine()
    assert steps(libvirtd, vm(1)) == ["define demo-1"]
    assert domain(libvirtd).isPersistent()


def test_what_the_bmc_and_others_have_made_stays(libvirtd: PrivateLibvirtd) -> None:
    one = vm(1, firmware="uefi")
    make(libvirtd, **arguments(one))
    theirs = [
        (r"<boot order='1'/>", "<boot order='9'/>"),
        (r"<target dev='sdz'", "<source file='/srv/boot.iso'/><target dev='sdz'"),
        (r"<firmware>.*?</firmware>", ""),
        (r"<os firmware='efi'>", "<os>"),
        (r"</metadata>", f"{BMC_STATE}</metadata>"),
        (r"</devices>", "<graphics type='vnc' port='-1' passwd='secret'/></devices>"),
        (r"</devices>", "<disk type='file'><source file='/srv/x'/><target dev='vdx' bus='virtio'/></disk></devices>"),
        (r"</devices>", "<interface type='bridge'><source bridge='theirs'/></interface></devices>"),
        (r"</currentMemory>", "</currentMemory><memtune><hard_limit unit='KiB'>9000000</hard_limit></memtune>"),
    ]
    before = redefine(libvirtd, *theirs)
    assert not make(libvirtd, **arguments(one))["changed"]

    changed = {**one, "memory_mib": 256, "vcpus": 2}
    assert steps(libvirtd, changed) == ["define demo-1"]
    after = domain(libvirtd).XMLDesc(SECRET)
    assert "passwd='secret'" in after
    expected = before.replace("131072", "262144").replace("<vcpu placement='static'>1<", "<vcpu placement='static'>2<")
    assert after == expected


def test_one_that_was_undefined_is_made_again_around_its_disks(libvirtd: PrivateLibvirtd) -> None:
    two = vm(1, disks=[disk(1), disk(1, 1, format="raw", name="demo-1-1.raw")])
    make(libvirtd, **arguments(two))
    held = libvirtd.path(f"{DIRECTORY}/demo-1-1.raw")
    with held.open("r+b") as file:
        file.write(b"what it held")
    domain(libvirtd).undefine()
    assert steps(libvirtd, two) == ["define demo-1"]
    assert held.read_bytes()[:12] == b"what it held"

    domain(libvirtd).undefine()
    at = "- demo-1: disks[1]: demo-1-1.raw"
    theirs = f"<disk type='file'><source file='{DIRECTORY}/demo-1-1.raw'/><target dev='vda'/></disk>"
    libvirtd.run(["virsh", "define", "/dev/stdin"], input=stranger("theirs", UUID.format(9), devices=theirs))
    assert f"{at} in pool nometal-demo is in use by VM theirs" in refused(libvirtd, two)
    libvirtd.run(["virsh", "undefine", "theirs"])
    another = {**two, "uuid": UUID.format(8)}
    assert f"{at} exists in pool nometal-demo, and nothing shows that it is this VM's" in refused(libvirtd, another)
    libvirtd.run(["virsh", "vol-delete", "--pool", POOL, "demo-1-1.raw"])
    assert steps(libvirtd, two) == ["define demo-1", "create disk demo-1-1.raw"]
    assert make(libvirtd, owner="demo", state="absent")["changed"]
    assert "demo-1" not in everything(libvirtd)


def test_firmware_changes_when_it_is_declared_otherwise_and_begins_afresh(libvirtd: PrivateLibvirtd) -> None:
    nvram = libvirtd.path("/var/lib/libvirt/qemu/nvram/demo-1_VARS.fd")
    nvram.write_bytes(b"of a former VM of that name")
    make(libvirtd, **arguments(vm(1, firmware="uefi")))
    assert not nvram.exists()
    assert "<feature enabled='no' name='secure-boot'/>" in domain(libvirtd).XMLDesc(SECRET)
    nvram.write_bytes(b"without keys")
    assert steps(libvirtd, vm(1, firmware="uefi-secure")) == ["define demo-1"]
    assert not nvram.exists()
    domain(libvirtd).create()
    assert "secure='yes'" in domain(libvirtd).XMLDesc()
    assert steps(libvirtd, vm(1, firmware="bios")) == ["define demo-1"]
    text = domain(libvirtd).XMLDesc(SECRET)
    assert "firmware='efi'" not in text
    assert "smm" not in text
    pending = make(libvirtd, **arguments(vm(1, firmware="bios")))["vms"][0]["pending"]
    assert pending == ["firmware"]
    domain(libvirtd).destroy()
    domain(libvirtd).create()
    assert "loader" not in domain(libvirtd).XMLDesc()
    assert make(libvirtd, **arguments(vm(1, firmware="bios")))["vms"][0]["pending"] == []


def test_disks_grow_and_only_grow(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    assert steps(libvirtd, vm(1, disks=[disk(1, size_bytes=2 * GIB)])) == ["grow disk demo-1-0.qcow2"]
    assert volume(libvirtd, "demo-1-0.qcow2")["virtual-size"] == 2 * GIB

    why = "demo-1-0.qcow2 is qcow2 of 2147483648 bytes, and disks only grow"
    assert f"demo-1: disks[0].size_bytes: {why}" in refused(libvirtd, vm(1))
    assert f"demo-1: disks[0].format: {why}" in refused(
        libvirtd, vm(1, disks=[disk(1, size_bytes=4 * GIB, format="raw")])
    )
    assert steps(libvirtd, vm(1), recreate=True) == ["recreate disk demo-1-0.qcow2"]
    assert volume(libvirtd, "demo-1-0.qcow2")["virtual-size"] == GIB


def test_a_half_made_disk_is_made_anew(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    path = libvirtd.path(f"{DIRECTORY}/demo-1-0.qcow2")
    path.write_bytes(b"")
    assert steps(libvirtd, vm(1)) == ["recreate disk demo-1-0.qcow2"]
    path.write_bytes(path.read_bytes()[:24] + bytes(8) + path.read_bytes()[32:])  # qemu-img writes the size last
    assert steps(libvirtd, vm(1)) == ["recreate disk demo-1-0.qcow2"]
    assert volume(libvirtd, "demo-1-0.qcow2")["virtual-size"] == GIB


def test_disks_that_are_no_longer_declared_are_kept_until_the_vm_goes(libvirtd: PrivateLibvirtd) -> None:
    two = vm(1, disks=[disk(1), disk(1, 1)])
    make(libvirtd, **arguments(two))
    assert steps(libvirtd, vm(1)) == ["define demo-1"]
    assert "demo-1-1.qcow2'" not in domain(libvirtd).XMLDesc()
    assert volume(libvirtd, "demo-1-1.qcow2")["virtual-size"] == GIB
    assert steps(libvirtd, two) == ["define demo-1"]
    make(libvirtd, **arguments(vm(1)))
    make(libvirtd, owner="demo", state="absent")
    assert "demo-1-1.qcow2" not in everything(libvirtd)


def test_a_running_vm_is_changed_with_its_next_power_cycle(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    domain(libvirtd).create()
    started = domain(libvirtd).ID()
    changed = vm(1, memory_mib=256, disks=[disk(1, size_bytes=2 * GIB), disk(1, 1)])
    assert steps(libvirtd, changed) == [
        "define demo-1",
        "create disk demo-1-1.qcow2",
        "grow disk demo-1-0.qcow2",
    ]
    assert volume(libvirtd, "demo-1-0.qcow2")["virtual-size"] == 2 * GIB
    assert make(libvirtd, **arguments(changed))["vms"][0]["pending"] == ["memory_mib", "disks"]
    assert "power the VM off by its BMC" in refused(libvirtd, {**changed, "disks": [disk(1)]}, recreate=True)
    assert domain(libvirtd).ID() == started

    domain(libvirtd).destroy()
    domain(libvirtd).create()
    assert make(libvirtd, **arguments(changed))["vms"][0]["pending"] == []
    assert make(libvirtd, owner="demo", state="absent")["steps"] == ["remove demo-1"]


def test_vms_of_others_are_neither_changed_nor_removed(libvirtd: PrivateLibvirtd) -> None:
    nic = "<interface type='bridge'><mac address='52:54:00:00:00:02'/><source bridge='x'/></interface>"
    libvirtd.run(["virsh", "define", "/dev/stdin"], input=stranger("demo-1", UUID.format(9), devices=nic))
    make(libvirtd, owner="other", vms=[vm(3, disks=[])])
    message = refused(libvirtd, vm(1), vm(3))
    assert "demo-1: vm_name: is owned by others, not by demo" in message
    assert "demo-3: vm_name: is owned by other, not by demo" in message
    message = refused(libvirtd, vm(2, uuid=UUID.format(9)))
    assert f"demo-2: uuid: {UUID.format(9)} is VM demo-1's" in message
    assert "demo-2: nics: MAC 52:54:00:00:00:02 is VM demo-1's" in message
    gone = make(libvirtd, owner="demo", state="absent", vms=[{"vm_name": "demo-1"}])
    assert "is owned by others, not by demo" in gone["msg"]
    assert make(libvirtd, owner="other", state="absent")["steps"] == ["remove demo-3"]


def stranger(name: str, uuid: str, devices: str) -> str:
    return (
        f"<domain type='qemu'><name>{name}</name><uuid>{uuid}</uuid><memory>4096</memory>"
        f"<os><type machine='q35'>hvm</type></os><devices>{devices}</devices></domain>"
    )


def test_all_that_is_wrong_is_said_at_once_and_nothing_is_changed(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    libvirtd.path(f"{DIRECTORY}/demo-3-0.qcow2").write_text("somebody's")
    nics = [{"mac": "52:54:00:00:00:22", "network": "none"}, {"mac": "52:54:00:00:00:23", "bridge": "none"}]
    wrong = [
        vm(1, uuid=UUID.format(99)),
        vm(2, nics=nics, firmware="uefi", vcpus=9999),
        vm(3, memory_mib=10**9, machine="pc-q35-0.1"),
        vm(4, disks=[disk(4, bus="nvme"), disk(4, 1, bus="virtio", rotational=False)]),
        vm(5, domain_type="kvm"),
        vm(6, uuid=UUID.format(4)),
        vm(7, domain_type="qemu", cpu_mode="host-passthrough"),
        vm(8, disks=[disk(8, size_bytes=10**19)], nics=[{"mac": "52:54:00:00:00:24", "network": "down"}]),
        vm(9, bmc={"adress": "ipmi://192.0.2.1:6230"}, nics=[{"mac": "52:54:00:00:00:25", "bridge": "../x"}]),
    ]
    told = refused(libvirtd, *wrong).splitlines()
    expected = [
        "No VM was changed, because of this:",
        "- demo-2: vcpus: must be a whole number from 1 to 255 (got 9999)",
        "- demo-3: memory_mib: must be a whole number from 128 to 16777216 (got 1000000000)",
        "- demo-4: disks[1].rotational: must be left out: a disk shows it by the bus scsi or sata alone (got virtio)",
        "- demo-7: cpu_mode: must be maximum for domain_type qemu, since it needs KVM (got 'host-passthrough')",
        "- demo-8: disks[0].size_bytes: must be a whole number from 1048576 to 70368744177664 (got a huge number)",
        "- demo-9: nics[0].bridge: must be an interface name: letters, digits, dot, hyphen, underscore (got '../x')",
        "- demo-9: bmc.adress: unknown key; did you mean address?",
        f"- demo-4, demo-6: uuid: must be unique (got {UUID.format(4)} 2 times)",
        f"- demo-1: uuid: is {UUID.format(99)}, and the VM has {UUID.format(1)} and keeps it",
        "- demo-2: nics: network none is missing: role nometal.ipi.lab_network (playbooks/network.yml) makes it",
        "- demo-2: nics: bridge none is missing: role nometal.ipi.lab_network (playbooks/network.yml) makes it",
        "- demo-3: machine: pc-q35-0.1 of type qemu is not available",
        "- demo-4: disks: the bus nvme is not available with this libvirt; available: sata, scsi, virtio",
        "- demo-5: domain_type: kvm is not available: there is no /dev/kvm",
        "- demo-8: nics: network down is not started",
        "- demo-3: disks[0]: demo-3-0.qcow2 exists in pool nometal-demo, and nothing shows that it is this VM's",
    ]
    assert [line[: len(start)] for line, start in zip_longest(told, expected, fillvalue="")] == expected


def test_firmware_that_the_host_lacks_is_refused(libvirtd: PrivateLibvirtd) -> None:
    hidden = "/usr/share/qemu/firmware"
    libvirtd.run(["mount", "-t", "tmpfs", "tmpfs", hidden])
    try:
        message = refused(libvirtd, vm(1), vm(2, firmware="uefi"), vm(3, firmware="uefi-secure"))
    finally:
        libvirtd.run(["umount", hidden])
    assert "demo-1" not in message
    assert "demo-2: firmware: no descriptor in /usr/share/qemu/firmware offers uefi for q35" in message
    assert "demo-3: firmware: no descriptor in /usr/share/qemu/firmware offers uefi-secure" in message


def test_a_full_pool_is_refused_before_the_first_disk(libvirtd: PrivateLibvirtd) -> None:
    small = f"{DIRECTORY}-small"
    libvirtd.run(["mkdir", small])
    libvirtd.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", small])
    libvirtd.run(["virsh", "pool-create-as", "small", "dir", "--target", small])
    message = refused(libvirtd, vm(1), vm(2, disks=[]), vm(3), pool="small")
    assert f"demo-1, demo-3: disks: 0.1 GiB are free in pool small ({small}), and new disks need 1.0 GiB" in message
    assert steps(libvirtd, vm(1, disks=[disk(1, size_bytes=32 * MIB)]), pool="small")
    assert "demo-1: pool: is nometal-demo, and the VM has its disks in small" in refused(libvirtd, vm(1))
    assert make(libvirtd, owner="demo", state="absent")["changed"]
    libvirtd.run(["virsh", "pool-destroy", "small"])


def test_a_pool_that_cannot_hold_disks_is_refused(libvirtd: PrivateLibvirtd) -> None:
    libvirtd.run(
        ["virsh", "pool-define-as", "volumes", "scsi", "--adapter-name", "host0", "--target", "/dev/disk/by-path"]
    )
    libvirtd.run(["virsh", "pool-define-as", "stopped", "dir", "--target", "/srv"])
    assert "- pool: volumes must be of type dir, fs, netfs (got scsi)" in refused(libvirtd, vm(1), pool="volumes")
    hint = "role nometal.ipi.host_prep (playbooks/host.yml) starts the lab's, and `virsh pool-start stopped` any"
    assert f"- pool: stopped is not started: {hint}" in refused(libvirtd, vm(1), pool="stopped")
    foreseen = make(libvirtd, check_mode=True, **arguments(vm(1), pool="stopped"))
    assert f"Nothing would be made yet: pool: stopped is not started: {hint}." in str(foreseen["warnings"])
    for pool in ("volumes", "stopped"):
        libvirtd.run(["virsh", "pool-undefine", pool])


def test_disks_go_with_their_vm_also_from_a_pool_that_is_stopped_or_lost(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    libvirtd.path(f"{DIRECTORY}/theirs").touch()
    libvirtd.run(["virsh", "pool-destroy", POOL])
    assert make(libvirtd, owner="demo", state="absent")["steps"] == ["remove demo-1"]
    assert [path.name for path in libvirtd.path(DIRECTORY).iterdir()] == ["theirs"]
    libvirtd.run(["virsh", "pool-start", POOL])

    make(libvirtd, **arguments(vm(1)))
    libvirtd.run(["rm", "-r", DIRECTORY])
    assert f"- pool: {POOL} has lost its directory" in refused(libvirtd, vm(1))
    assert make(libvirtd, owner="demo", state="absent")["steps"] == ["remove demo-1"]
    libvirtd.run(["mkdir", DIRECTORY])


def test_a_disk_that_another_vm_uses_is_not_destroyed_with_its_own(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    make(libvirtd, owner="other", pool=POOL, vms=[vm(9, disks=[])])
    disks = f"<disk type='file'><source file='{DIRECTORY}/demo-1-0.qcow2'/><target dev='vda' bus='virtio'/></disk>"
    libvirtd.run(["virsh", "attach-device", "demo-9", "/dev/stdin", "--config"], input=disks)
    told = "- demo-1: disks: demo-1-0.qcow2 would be destroyed, and VM demo-9 uses it"
    assert told in refused(libvirtd, state="absent")
    assert told in refused(libvirtd, exclusive=True)
    make(libvirtd, owner="other", state="absent")


def test_a_disk_on_which_an_image_is_based_is_not_destroyed(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    over = f"{DIRECTORY}/mine.qcow2"
    libvirtd.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", "demo-1-0.qcow2", "-F", "qcow2", over])
    told = f"demo-1: disks: demo-1-0.qcow2 would be destroyed, and it is the base of {over}, an image in pool {POOL}"
    smaller = vm(1, disks=[disk(1, size_bytes=GIB // 2)])
    for asked in ({"state": "absent"}, {"exclusive": True}, {"recreate": True, "vms": [smaller]}):
        assert told in refused(libvirtd, **asked)
    libvirtd.run(["rm", over])
    assert steps(libvirtd, smaller, recreate=True) == ["recreate disk demo-1-0.qcow2"]


def test_a_vm_with_an_external_snapshot_is_refused(libvirtd: PrivateLibvirtd) -> None:
    """Its disk is the base of what it runs on, and must not be plugged in beside that."""
    make(libvirtd, **arguments(vm(1)))
    libvirtd.run(["virsh", "snapshot-create-as", "demo-1", "s1", "--disk-only", "--no-metadata"])
    before = everything(libvirtd)
    overlay = f"{DIRECTORY}/demo-1-0.s1"
    told = refused(libvirtd, vm(1))
    assert f"demo-1: disks[0]: demo-1-0.qcow2 is the base of {overlay}" in told
    assert f"virsh blockcommit demo-1 {overlay} --active --pivot" in told
    assert everything(libvirtd) == before
    libvirtd.run(["rm", overlay])


def test_the_logs_of_a_vm_go_with_it(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    libvirtd.run(["virsh", "start", "demo-1"])
    logs = libvirtd.path("/var/log/libvirt/qemu")
    assert {path.name for path in logs.glob("demo-1*")} == {"demo-1.log", "demo-1-console.log"}
    make(libvirtd, owner="demo", state="absent")
    assert list(logs.glob("demo-1*")) == []


def test_wrong_names_are_refused_also_where_vms_are_to_go(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1)))
    gone = refused(libvirtd, {"vm_name": ""}, {"vm_name": "../demo-1"}, owner="../demo", state="absent")
    allowed = "up to 200 letters, digits, dots, hyphens and underscores, the first a letter or digit"
    assert gone.splitlines()[1:] == [
        "- lab: must be lower case letters, digits and inner hyphens, without a dot (got '../demo')",
        f"- vms[0]: vm_name: must be {allowed} (got '')",
        f"- vms[1]: vm_name: must be {allowed} (got '../demo-1')",
    ]


def test_what_an_earlier_stage_makes_is_missing_in_check_mode_without_harm(libvirtd: PrivateLibvirtd) -> None:
    later = vm(1, nics=[{"mac": "52:54:00:00:00:22", "bridge": "later"}])
    foreseen = make(libvirtd, check_mode=True, **arguments(later, pool="later"))
    assert foreseen["steps"] == ["define demo-1", "create disk demo-1-0.qcow2"]
    assert len(foreseen["warnings"]) == 2
    assert "demo-1: nics: bridge later is missing" in refused(libvirtd, later)
    assert "pool: later is missing" in refused(libvirtd, vm(1), pool="later")

    nowhere: dict[str, Any] = {"libvirt_uri": "qemu:///system?socket=/run/none"}
    assert make(libvirtd, check_mode=True, **arguments(later), **nowhere)["steps"] == foreseen["steps"]
    assert "demo-1: vcpus: missing" in make(libvirtd, **arguments(vm(1, vcpus=None)), **nowhere)["msg"]
    assert "role nometal.ipi.host_prep installs and starts it" in make(libvirtd, **arguments(later), **nowhere)["msg"]


def test_those_that_are_no_longer_listed_stay_unless_the_list_is_exclusive(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, owner="other", vms=[vm(9, disks=[])])
    make(libvirtd, **arguments(vm(1), vm(2)))
    assert make(libvirtd, **arguments(vm(1)))["former"] == ["demo-2"]
    renamed = vm(3, uuid=UUID.format(2), nics=vm(2)["nics"])
    assert steps(libvirtd, vm(1), renamed, exclusive=True) == [
        "remove demo-2",
        "define demo-3",
        "create disk demo-3-0.qcow2",
    ]
    assert set(libvirtd.run(["virsh", "list", "--all", "--name"]).stdout.split()) == {"demo-1", "demo-3", "demo-9"}
    make(libvirtd, owner="other", state="absent")


def test_calls_at_the_same_time_wait_for_each_other(libvirtd: PrivateLibvirtd) -> None:
    wanted = arguments(*map(vm, range(1, 5)))
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _turn: make_meanwhile(libvirtd, **wanted), range(4)))
        gone = list(pool.map(lambda _turn: make_meanwhile(libvirtd, owner="demo", state="absent"), range(4)))
    for answers, number in ((made, 8), (gone, 4)):
        assert [answer for answer in answers if answer.get("failed")] == []
        assert sorted(len(answer["steps"]) for answer in answers) == [0, 0, 0, number]


def test_what_is_protected_is_not_destroyed(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, **arguments(vm(1), vm(2)))
    smaller = vm(1, disks=[disk(1, size_bytes=GIB // 2)])
    why = {"exclusive": True, "recreate": True, "protect": "A cluster is on them."}
    told = refused(libvirtd, smaller, **why)
    assert (
        "would be destroyed: VM demo-2 with its disks, disk demo-1-0.qcow2 of VM demo-1. A cluster is on them." in told
    )
    assert make(libvirtd, check_mode=True, **arguments(smaller, **why))["msg"] == told
    assert steps(libvirtd, vm(1), vm(2), vm(3), **why) == ["define demo-3", "create disk demo-3-0.qcow2"]
    (libvirtd.path(DIRECTORY) / "demo-3-0.qcow2").write_bytes(b"")  # half made
    assert steps(libvirtd, vm(1), vm(2), vm(3), **why) == ["recreate disk demo-3-0.qcow2"]


def test_a_vm_is_of_the_type_that_really_runs() -> None:
    """A /dev/kvm that is there may run no guest."""
    has_device = Path("/dev/kvm").exists()
    with private_libvirtd.start(kvm="machine" if has_device else "absent") as libvirtd:
        explicit = make(libvirtd, owner="demo", vms=[vm(1, disks=[], nics=[], domain_type="kvm")], check_mode=True)
        assert not make(libvirtd, owner="demo", vms=[vm(2, disks=[], nics=[])]).get("failed")
        made = domain(libvirtd, 2)
        made.create()
        assert ("type='qemu'" in made.XMLDesc()) == bool(explicit.get("failed"))
        # Where KVM hangs or crashes, it does so at once.
        stays("it runs", lambda: made.state()[0] == libvirt.VIR_DOMAIN_RUNNING, 0.5)


# As the module, which says when it has begun so many steps, and waits for a file before it begins another.
STOPS = f"""
import pathlib, runpy, sys, time
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.port import VmPort
steps, file, apply = int(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)), VmPort.apply
def apply_some(port, step):
    global steps
    if steps == 0:
        print("stopped", flush=True)
        while not file.exists():
            time.sleep(0.01)
    steps -= 1
    apply(port, step)
VmPort.apply = apply_some
runpy.run_module("{MODULE[-1]}", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("victim", "rounds"),
    [
        pytest.param("module", range(3), marks=pytest.mark.full),
        pytest.param("libvirtd", range(2), marks=pytest.mark.full),
        ("module", [1]),
        ("libvirtd", [1]),
    ],
)
def test_a_run_that_was_killed_is_completed_by_the_next(
    libvirtd: PrivateLibvirtd, tmp_path: Path, victim: str, rounds: Iterable[int]
) -> None:
    """Wherever it was: each round kills it a few steps later, while the last ones that it has begun are under way."""
    vms = [vm(number, disks=[disk(number), disk(number, 1)]) for number in range(1, 13)]
    whole = len(make(libvirtd, check_mode=True, **arguments(*vms))["steps"])
    for round_ in rounds:
        begun = 3 + 12 * round_
        left = interrupted(libvirtd, arguments(*vms), begun, tmp_path / f"made-{round_}", victim)
        assert len(left) >= whole - begun
        assert all(volume(libvirtd, f"demo-{number}-1.qcow2")["virtual-size"] == GIB for number in range(1, 13))
        interrupted(libvirtd, {"owner": "demo", "state": "absent"}, 1 + 4 * round_, tmp_path / f"gone-{round_}", victim)
        assert "demo-" not in everything(libvirtd)


def interrupted(libvirtd: PrivateLibvirtd, params: dict[str, Any], begun: int, go_on: Path, victim: str) -> list[str]:
    """Kill it when it has begun so many steps; returns what the next run did, after which all is done."""
    program = [*command(libvirtd)[: -len(MODULE)], "-c", STOPS, str(begun), str(go_on)]
    process = subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps({"ANSIBLE_MODULE_ARGS": params}))
    process.stdin.close()
    assert process.stdout.readline() == "stopped\n"
    if victim == "libvirtd":
        libvirtd.kill()
        go_on.touch()
        process.stdout.read()
        assert process.wait() != 0
        libvirtd.boot()
    else:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    after = make(libvirtd, **params)
    assert not after.get("failed"), after["msg"]
    assert not make(libvirtd, **params)["changed"]
    return after["steps"]
