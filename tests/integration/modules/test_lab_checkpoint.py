"""Checkpoints of VMs on a real libvirtd: taken, restored and removed, also while guests run, and killed at any step."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import libvirt
import pytest
from support import guest, private_libvirtd
from support.checkout import ROOT
from support.modules import run_beside
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd

pytestmark = pytest.mark.long
POOL = "nometal-demo"
DIRECTORY = f"/var/lib/libvirt/images/{POOL}"
HOME, BMC_HOME = "/var/lib/libvirt/own", "/var/lib/libvirt/bmc"
MEDIUM = f"/var/lib/libvirt/images/{'0' * 64}.iso"
UUID = "0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e{:02x}"
MIB = 1024**2
PREPARATION = f"""
virsh pool-define-as {POOL} dir --target {DIRECTORY} && virsh pool-build {POOL} && virsh pool-start {POOL} &&
ip link add baremetal type bridge && ip link set baremetal up
"""
PLACE = {"lab": "demo", "home": HOME}
SECRET = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE
KILLED = -9
COUNT = "i=0; while :; do i=$((i+1)); printf '%08d' $i | dd of=/dev/vda conv=notrunc,fsync; usleep 50000; done"
# After how many steps a module is killed: after some of them, and in `make test-full` after each.
SWEEP = pytest.mark.parametrize(
    "points",
    [pytest.param(slice(2, None, 3), id="some"), pytest.param(slice(1, None), id="each", marks=pytest.mark.full)],
)
# The module, killed when it has done so many steps.
KILLS = """
import json, os, signal, sys
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.port import CheckpointPort
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.resource import LabCheckpoint
params, left = json.loads(sys.argv[1]), [int(sys.argv[2])]
apply = CheckpointPort.apply
def killed(port, step):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    apply(port, step)
CheckpointPort.apply = killed
LabCheckpoint.run(params, check_mode=False)
"""


def vm(number: int, **others: Any) -> dict[str, Any]:
    return {
        "name": f"node-{number}",
        "vm_name": f"demo-{number}",
        "uuid": UUID.format(number),
        "vcpus": 1,
        "memory_mib": 128,
        "firmware": "bios",
        "disks": [{"name": f"demo-{number}-0.qcow2", "size_bytes": 64 * MIB, "bus": "virtio"}],
        "nics": [{"mac": f"52:54:00:00:00:{number:02x}", "bridge": "baremetal", "boot_order": 1}],
        **others,
    }


TWO = (vm(1, firmware="uefi"), vm(2))


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        started.run(["sh", "-c", PREPARATION])
        yield started


@pytest.fixture(autouse=True)
def _clean(libvirtd: PrivateLibvirtd) -> Iterator[None]:
    yield
    run_beside(libvirtd, "bmh_vm", {"owner": "demo", "state": "absent"})
    libvirtd.run(["rm", "-rf", HOME, BMC_HOME, MEDIUM, f"/var/lib/libvirt/swtpm/{UUID.format(1)}"])


def make(libvirtd: PrivateLibvirtd, *vms: dict[str, Any], **others: Any) -> dict[str, Any]:
    made = run_beside(libvirtd, "bmh_vm", {"owner": "demo", "pool": POOL, "vms": list(vms), **others})
    assert not made["failed"], made["msg"]
    return made


def checkpoint(
    libvirtd: PrivateLibvirtd, name: str = "x", *, check_mode: bool = False, **others: Any
) -> dict[str, Any]:
    given = {**PLACE, "bmc_home": BMC_HOME, "name": name, **others}
    return run_beside(libvirtd, "lab_checkpoint", given, check_mode=check_mode)


def done(libvirtd: PrivateLibvirtd, name: str = "x", **others: Any) -> dict[str, Any]:
    answer = checkpoint(libvirtd, name, **others)
    assert not answer["failed"], answer["msg"]
    return answer


def refused(libvirtd: PrivateLibvirtd, name: str = "x", **others: Any) -> str:
    before = everything(libvirtd)
    answer = checkpoint(libvirtd, name, **others)
    assert answer["failed"], answer
    assert everything(libvirtd) == before
    return " ".join(answer["msg"].split())


def everything(libvirtd: PrivateLibvirtd) -> str:
    places = f"{HOME} {DIRECTORY} /etc/libvirt/qemu /var/lib/libvirt/qemu/nvram"
    shown = f"ls -lR {places}; for i in {DIRECTORY}/*.qcow2; do qemu-img info -U $i; done; virsh list --all"
    return libvirtd.run(["sh", "-c", shown], check=False).stdout


def disk(number: int) -> str:
    return f"{DIRECTORY}/demo-{number}-0.qcow2"


def write(libvirtd: PrivateLibvirtd, number: int, pattern: int) -> None:
    libvirtd.run(["qemu-io", "-c", f"write -P {pattern} 0 1M", disk(number)])


def holds(libvirtd: PrivateLibvirtd, number: int, pattern: int) -> bool:
    read = libvirtd.run(["qemu-io", "-r", "-c", f"read -P {pattern} 0 1M", disk(number)], check=False)
    return "verification failed" not in read.stdout + read.stderr and read.returncode == 0


def snapshots(libvirtd: PrivateLibvirtd, number: int) -> list[str]:
    info = json.loads(libvirtd.run(["qemu-img", "info", "-U", "--output=json", disk(number)]).stdout)
    return [snapshot["name"] for snapshot in info.get("snapshots", [])]


def domain(libvirtd: PrivateLibvirtd, number: int) -> libvirt.virDomain:
    return libvirt.open(libvirtd.uri).lookupByName(f"demo-{number}")


def names(libvirtd: PrivateLibvirtd) -> list[str]:
    answer = run_beside(libvirtd, "checkpoint_info", PLACE)
    return [each["name"] for each in answer["checkpoints"]]


def firmware_of(libvirtd: PrivateLibvirtd) -> Path:
    return libvirtd.path("/var/lib/libvirt/qemu/nvram/demo-1_VARS.fd")


def state_of(libvirtd: PrivateLibvirtd) -> dict[str, Path]:
    """What belongs to VM 1 beside its disks and its definition."""
    return {
        "nvram": firmware_of(libvirtd),
        "tpm": libvirtd.path(f"/var/lib/libvirt/swtpm/{UUID.format(1)}/tpm2/tpm2-00.permall"),
        "bmc": libvirtd.path(f"{BMC_HOME}/demo/state/machines/{UUID.format(1)}.json"),
    }


def set_state(libvirtd: PrivateLibvirtd, text: str) -> None:
    for path in state_of(libvirtd).values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def redefine(libvirtd: PrivateLibvirtd, old: str, new: str) -> None:
    """What a BMC does to VM 1."""
    text = domain(libvirtd, 1).XMLDesc(SECRET)
    assert old in text
    domain(libvirtd, 1).connect().defineXML(text.replace(old, new, 1))


def insert_medium(libvirtd: PrivateLibvirtd) -> None:
    libvirtd.path(MEDIUM).write_text("image")
    redefine(libvirtd, "<target dev='sdz'", f"<source file='{MEDIUM}' startupPolicy='optional'/><target dev='sdz'")
    redefine(
        libvirtd, "</metadata>", "<bmc:state xmlns:bmc='urn:nometal:ipi:bmc' target='Cd' enabled='Once'/></metadata>"
    )


def test_acceptance(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, *TWO)
    domain(libvirtd, 1).create()  # libvirt makes its UEFI variables
    domain(libvirtd, 1).destroy()
    for number in (1, 2):
        write(libvirtd, number, number)
    set_state(libvirtd, "then")
    insert_medium(libvirtd)
    definition = domain(libvirtd, 1).XMLDesc(SECRET)

    before = everything(libvirtd)
    foreseen = checkpoint(libvirtd, check_mode=True)
    assert everything(libvirtd) == before
    taken = done(libvirtd)
    assert taken["changed"]
    assert taken["steps"] == foreseen["steps"]
    assert not done(libvirtd)["changed"]
    assert make(libvirtd, *TWO)["changed"] is False
    assert names(libvirtd) == ["x"]

    for _twice in range(2):
        for number in (1, 2):
            write(libvirtd, number, 9)
        set_state(libvirtd, "now")
        redefine(libvirtd, ' target="Cd"', "")
        redefine(libvirtd, f"file='{MEDIUM}'", "file='/other.iso'")
        libvirtd.path(MEDIUM).unlink()
        assert done(libvirtd, state="restored")["changed"]
        assert [holds(libvirtd, number, number) for number in (1, 2)] == [True, True]
        assert {name: path.read_text() for name, path in state_of(libvirtd).items()} == dict.fromkeys(
            state_of(libvirtd), "then"
        )
        assert domain(libvirtd, 1).XMLDesc(SECRET) == definition
        assert libvirtd.path(MEDIUM).read_text() == "image"
        assert make(libvirtd, *TWO)["changed"] is False

    assert done(libvirtd, state="absent")["changed"]
    assert not done(libvirtd, state="absent")["changed"]
    assert [snapshots(libvirtd, number) for number in (1, 2)] == [[], []]
    assert not libvirtd.path(f"{HOME}/labs/demo/checkpoints").exists()
    assert [holds(libvirtd, number, number) for number in (1, 2)] == [True, True]
    assert not domain(libvirtd, 2).isActive()


def test_what_was_not_there_at_a_checkpoint_is_not_there_after_it_is_restored(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, *TWO)
    done(libvirtd)
    set_state(libvirtd, "later")
    done(libvirtd, state="restored")
    assert not any(path.exists() for path in state_of(libvirtd).values())


def count(libvirtd: PrivateLibvirtd, number: int) -> guest.Guest:
    """A guest that counts on its disk, for ever."""
    guest.equip(libvirtd, f"demo-{number}")
    domain(libvirtd, number).create()
    counting = guest.of_vm(libvirtd, f"demo-{number}")
    counting.run(f"({COUNT}) >/dev/null 2>&1 &")
    wait_until("it counts", lambda: counter(counting) > 0)
    return counting


def counter(asked: guest.Guest) -> int:
    return int(asked.run("dd if=/dev/vda bs=8 count=1 2>/dev/null").stdout.strip("\0") or 0)


def counts_on(asked: guest.Guest, before: int) -> None:
    wait_until("it counts on", lambda: counter(asked) > before)


def test_running_guests_are_paused_and_go_on_and_their_disks_are_restored_twice(libvirtd: PrivateLibvirtd) -> None:
    three = (vm(1), vm(2), vm(3, firmware="uefi", nics=[]))
    make(libvirtd, *three)
    guests = {number: count(libvirtd, number) for number in (1, 2)}
    domain(libvirtd, 3).create()  # its firmware finds nothing to boot
    assert "demo-1, demo-2 and demo-3 are switched on" in refused_while_on(libvirtd)
    before = {number: counter(each) for number, each in guests.items()}
    taken = done(libvirtd, running=True)
    assert "pause demo-1, demo-2, demo-3" in taken["steps"]
    after = {number: counter(each) for number, each in guests.items()}
    for number, each in guests.items():
        counts_on(each, after[number])
    assert make(libvirtd, *three)["changed"] is False

    restored = []
    for _twice in range(2):
        assert "are switched on" in refused_while_on(libvirtd, state="restored")
        done(libvirtd, state="restored", stop=True)
        assert all(domain(libvirtd, number).isActive() for number in (1, 2, 3))  # as they were
        restored.append({number: counter(guest.of_vm(libvirtd, f"demo-{number}")) for number in (1, 2)})
        assert make(libvirtd, *three)["changed"] is False
    assert restored[0] == restored[1]
    assert all(before[number] <= restored[0][number] <= after[number] for number in (1, 2))

    done(libvirtd, state="absent")  # while they run, by QEMU
    assert [snapshots(libvirtd, number) for number in (1, 2, 3)] == [[], [], []]
    assert all(domain(libvirtd, number).isActive() for number in (1, 2, 3))


def refused_while_on(libvirtd: PrivateLibvirtd, **others: Any) -> str:
    answer = checkpoint(libvirtd, **others)
    assert answer["failed"]
    return " ".join(answer["msg"].split())


def test_guests_shut_down_for_a_checkpoint_and_are_started_again(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, vm(1))
    counting = count(libvirtd, 1)
    begun = libvirtd.path(f"{HOME}/labs/demo/checkpoints/unfinished.json")

    def obey_the_power_button() -> None:
        wait_until("the checkpoint has begun", begun.exists)
        with suppress(guest.GuestFailed):  # it goes off before it has answered
            counting.run("poweroff -f")

    obeying = threading.Thread(target=obey_the_power_button)
    obeying.start()
    taken = done(libvirtd, stop=True)
    obeying.join()
    assert [step for step in taken["steps"] if "demo-1" in step and "disk" not in step] == [
        "shut down demo-1",
        "copy state of demo-1",
        "start demo-1",
    ]
    assert domain(libvirtd, 1).isActive()


def test_a_guest_that_does_not_shut_down_keeps_a_checkpoint_from_being_taken(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, vm(1))
    counting = count(libvirtd, 1)
    assert "demo-1 did not shut down" in refused_while_on(libvirtd, stop=True, stop_timeout=1)
    assert names(libvirtd) == []
    assert counter(counting) > 0
    with suppress(guest.GuestFailed):  # it shuts down too late
        counting.run("poweroff -f")
    wait_until("it is off", lambda: not domain(libvirtd, 1).isActive())
    assert done(libvirtd, state="absent")["steps"] == ["start demo-1", "end checkpoint x"]
    assert domain(libvirtd, 1).isActive()
    assert not libvirtd.path(f"{HOME}/labs/demo/checkpoints").exists()


def kill_after(libvirtd: PrivateLibvirtd, steps: int, **others: Any) -> None:
    params = {**PLACE, "bmc_home": BMC_HOME, "libvirt_uri": "qemu:///system", "name": "x", "stop_timeout": 60}
    given = json.dumps({**params, "state": "present", "running": False, "stop": False, **others})
    program = ["env", f"PYTHONPATH={ROOT}/playbooks/collections", sys.executable, "-c", KILLS, given, str(steps)]
    killed = libvirtd.run(program, check=False)
    assert killed.returncode in (KILLED, 128 - KILLED), killed.stdout + killed.stderr


@SWEEP
def test_a_checkpoint_that_is_killed_at_any_step_is_whole_or_not_there(
    libvirtd: PrivateLibvirtd, points: slice
) -> None:
    make(libvirtd, *TWO)
    guest.equip(libvirtd, "demo-2")
    domain(libvirtd, 2).create()
    steps = checkpoint(libvirtd, check_mode=True, running=True)["steps"]
    for number in range(len(steps))[points]:
        kill_after(libvirtd, number, running=True)
        is_whole = any(step.startswith("write") for step in steps[:number])
        assert names(libvirtd) == (["x"] if is_whole else []), steps[:number]
        if domain(libvirtd, 2).state()[0] == libvirt.VIR_DOMAIN_PAUSED:
            assert "demo-2 is paused since" in refused(libvirtd, "y")
        done(libvirtd, "y", running=True)
        assert domain(libvirtd, 2).state()[0] == libvirt.VIR_DOMAIN_RUNNING
        tags = ["nometal-x", "nometal-y"] if is_whole else ["nometal-y"]
        assert [sorted(snapshots(libvirtd, each)) for each in (1, 2)] == [tags, tags]
        for name in ("x", "y"):
            done(libvirtd, name, state="absent")
        assert not libvirtd.path(f"{HOME}/labs/demo/checkpoints").exists()


@SWEEP
def test_a_restore_that_is_killed_at_any_step_is_repeated(libvirtd: PrivateLibvirtd, points: slice) -> None:
    make(libvirtd, *TWO)
    set_state(libvirtd, "then")
    for number in (1, 2):
        write(libvirtd, number, number)
    done(libvirtd)
    steps = checkpoint(libvirtd, check_mode=True, state="restored")["steps"]
    for number in range(len(steps))[points]:
        for each in (1, 2):
            write(libvirtd, each, 9)
        set_state(libvirtd, "now")
        kill_after(libvirtd, number, state="restored")
        assert "make restore NAME=x" in refused(libvirtd, "y")
        assert "make restore NAME=x" in refused(libvirtd, state="absent")
        assert "was interrupted" in run_beside(libvirtd, "checkpoint_info", PLACE)["table"][-1]
        done(libvirtd, state="restored")
        assert [holds(libvirtd, each, each) for each in (1, 2)] == [True, True]
        assert firmware_of(libvirtd).read_text() == "then"
        assert make(libvirtd, *TWO)["changed"] is False


def test_a_restore_that_was_killed_and_cannot_be_repeated_is_given_up_with_its_checkpoint(
    libvirtd: PrivateLibvirtd,
) -> None:
    make(libvirtd, *TWO)
    done(libvirtd)
    kill_after(libvirtd, 1, state="restored")
    make(libvirtd, *TWO, vm(3))
    assert "make checkpoint-remove NAME=x" in refused(libvirtd, "y")
    done(libvirtd, state="absent")
    assert not libvirtd.path(f"{HOME}/labs/demo/checkpoints").exists()
    done(libvirtd, "y")


@SWEEP
def test_a_removal_that_is_killed_at_any_step_is_completed(libvirtd: PrivateLibvirtd, points: slice) -> None:
    make(libvirtd, *TWO)
    done(libvirtd)
    steps = checkpoint(libvirtd, check_mode=True, state="absent")["steps"]
    for number in range(len(steps))[points]:
        kill_after(libvirtd, number, state="absent")
        assert names(libvirtd) == []
        done(libvirtd)
        assert [snapshots(libvirtd, each) for each in (1, 2)] == [["nometal-x"], ["nometal-x"]]


def test_a_snapshot_that_was_left_is_not_what_a_disk_goes_back_to(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, vm(1))
    write(libvirtd, 1, 1)
    libvirtd.run(["qemu-img", "snapshot", "-c", "nometal-x", disk(1)])
    write(libvirtd, 1, 2)
    done(libvirtd)
    assert snapshots(libvirtd, 1) == ["nometal-x"]
    write(libvirtd, 1, 9)
    done(libvirtd, state="restored")
    assert holds(libvirtd, 1, 2)


def test_nodes_and_disks_that_differ_from_the_checkpoint_are_named(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, *TWO)
    done(libvirtd)
    larger = [{**TWO[1]["disks"][0], "size_bytes": 128 * MIB}]
    make(libvirtd, TWO[0], {**TWO[1], "disks": larger}, vm(3))  # disks with snapshots grow
    text = refused(libvirtd, state="restored")
    assert "demo-3 was not a part of it" in text
    assert "demo-2: disk demo-2-0.qcow2 had 64MiB then, and has 128MiB now" in text
    [shown] = run_beside(libvirtd, "checkpoint_info", PLACE)["table"]
    assert "cannot be restored" in shown
    make(libvirtd, *TWO, exclusive=True, recreate=True)
    assert "has no snapshot of checkpoint x: it was made anew since" in refused(libvirtd, state="restored")
    done(libvirtd, state="absent")
    raw = [{"name": "demo-3-0.raw", "size_bytes": MIB, "format": "raw"}]
    make(libvirtd, *TWO, vm(3, disks=raw))
    assert "its disk demo-3-0.raw is raw" in refused(libvirtd)
    header = ["qemu-img", "create", "-q", "-f", "qcow2", f"{DIRECTORY}/demo-3-0.raw", "1M"]
    libvirtd.run(header)  # a guest may write the same
    assert "its disk demo-3-0.raw is raw" in refused(libvirtd)


def test_a_disk_that_is_wiped_keeps_what_checkpoints_hold(libvirtd: PrivateLibvirtd) -> None:
    make(libvirtd, vm(1))
    write(libvirtd, 1, 1)
    done(libvirtd)
    utils = "ansible_collections.nometal.ipi.plugins.module_utils"
    wipe = f"from {utils}._resources.vm.wipe import make_blank as m; from {utils}._observe.node_vms import content as c"
    program = f"{wipe}; m({disk(1)!r}); print(c({disk(1)!r}))"
    shown = libvirtd.run(["env", f"PYTHONPATH={ROOT}/playbooks/collections", sys.executable, "-c", program]).stdout
    assert shown == "blank\n"
    done(libvirtd, state="restored")
    assert holds(libvirtd, 1, 1)
