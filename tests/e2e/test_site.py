"""site.yml and teardown.yml from a controller, on hosts that have the packages already."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from support import checkout, controller, former_lab, interruption, lab_host, made_lab, snapshot, stranger
from support.checkout import run_playbook
from support.failures import ending
from support.modules import run_on
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

    from support.lab_host import LabHost
    from support.snapshot import Snapshot


@pytest.fixture
def host() -> Iterator[LabHost]:
    with prepared() as started:
        yield started


@pytest.fixture
def host_of_lab() -> Iterator[LabHost]:
    """With the lab rehearsal."""
    with made_lab.start() as started:
        yield started


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A temporary directory in which ssh finds room for the long names of its sockets."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def prepared() -> LabHost:
    """Where libvirt has been in use, so that what it leaves behind by itself is there already."""
    started = lab_host.start(layer="prepared")
    stranger.use_libvirt(started)
    return started


def went_well(run: CompletedProcess[str], changed: str = r"\d+") -> bool:
    return (
        run.returncode == 0
        and re.search(rf"^hypervisor .* changed={changed} .*failed=0", run.stdout, re.MULTILINE) is not None
    )


def changes(host: LabHost, before: Snapshot) -> str:
    return snapshot.take(host).diff(before)


def pools(host: LabHost) -> list[str]:
    return host.run("virsh pool-list --name").stdout.split()


def pools_of(lab: str) -> list[str]:
    return [f"nometal-{lab}", f"nometal-{lab}-media"]


@pytest.mark.long
def test_a_lab_is_made_once(host: LabHost, tmp_path: Path) -> None:
    inventory = checkout.inventory(host, tmp_path)
    before = snapshot.take(host)
    foreseen = run_playbook("site", inventory, "--check", "--diff")
    assert went_well(foreseen), ending(foreseen.stdout)
    assert "define nometal-rehearsal" in foreseen.stdout
    assert changes(host, before) == ""

    done = run_playbook("site", inventory)
    assert went_well(done), ending(done.stdout)
    assert foreseen_changes(foreseen) == foreseen_changes(done)
    assert pools(host) == pools_of("rehearsal")

    again = run_playbook("site", inventory)
    assert went_well(again, changed="0"), ending(again.stdout)


def test_a_lab_outlives_a_reboot_and_leaves_no_trace(host_of_lab: LabHost, tmp_path: Path) -> None:
    host = host_of_lab
    inventory = checkout.inventory(host, tmp_path)
    switch_one_on(host)
    host.reboot()
    wait_until("its pools are back", lambda: pools(host) == pools_of("rehearsal"))
    after_reboot = run_playbook("site", inventory)
    assert went_well(after_reboot, changed="0"), ending(after_reboot.stdout)

    switch_one_on(host)
    removed = run_playbook("teardown", inventory)
    assert went_well(removed), ending(removed.stdout)
    assert changes(host, made_lab.before()) == ""


def switch_one_on(host: LabHost) -> None:
    host.run("virsh start rehearsal-worker-0")


def foreseen_changes(run: CompletedProcess[str]) -> list[str]:
    """The number of changes, as the recap tells it."""
    return re.findall(r"^hypervisor .* changed=(\d+)", run.stdout, re.MULTILINE)


Points = interruption.Points


def only(number: int) -> Points:
    """Of the tasks that change something."""
    return lambda tasks: [interruption.changing_tasks(tasks)[number]]


# Whether a run is killed when a task has ended, or in its middle: after one task is where the next begins.
@pytest.mark.long
@pytest.mark.parametrize(
    ("points", "during"),
    [
        pytest.param(only(4), False, id="after one"),
        pytest.param(interruption.changing_tasks, False, id="after each", marks=pytest.mark.full),
        pytest.param(interruption.changing_tasks, True, id="in the middle of each", marks=pytest.mark.full),
    ],
)
def test_killed_it_is_completed_by_the_next_run(tmp_path: Path, points: Points, during: bool) -> None:
    assert interruption.interrupt_everywhere(site(tmp_path), prepared, points=points, during=during) == ""


@pytest.mark.full
def test_a_teardown_that_is_killed_is_completed_by_the_next_one(tmp_path: Path) -> None:
    """In test_canaries.py, it is killed once."""
    teardown = interruption.Playbook(
        lambda host: checkout.command("teardown", checkout.inventory(host, tmp_path)), directory=checkout.ROOT
    )
    points = interruption.changing_tasks
    assert interruption.interrupt_everywhere(teardown, made_lab.start, points=points) == ""


def site(tmp_path: Path) -> interruption.Playbook:
    return interruption.Playbook(
        lambda host: checkout.command("site", checkout.inventory(host, tmp_path)), directory=checkout.ROOT
    )


@pytest.mark.full
def test_two_labs_live_side_by_side(host_of_lab: LabHost, tmp_path: Path) -> None:
    host = host_of_lab
    first = checkout.inventory(host, tmp_path)
    second = checkout.inventory(
        host, tmp_path, name="other", machine_network={"cidr": "192.168.127.0/24", "bridge": "othermetal"}
    )
    made = snapshot.take(host)
    for name, storage, key in (
        ("rehearsal-media", {}, "lab_spec.name"),
        ("inside", {"path": "/var/lib/libvirt/images/nometal-rehearsal/inside"}, "lab_spec.storage_pool.path"),
    ):
        network = {"cidr": "192.168.127.0/24", "bridge": "othermetal"}
        clash = checkout.inventory(host, tmp_path, name=name, machine_network=network, storage_pool=storage)
        refused = run_playbook("site", clash)
        assert refused.returncode != 0
        assert f"Change {key}, or remove lab rehearsal first." in refused.stdout
    assert changes(host, made) == ""
    baseline = host.read(HOST_BASELINE)
    assert went_well(run_playbook("site", second))
    assert host.read(HOST_BASELINE) == baseline
    assert went_well(run_playbook("teardown", first))
    assert host.read(HOST_BASELINE) == baseline  # all of it is needed until the last lab goes
    assert pools(host) == pools_of("other")
    assert went_well(run_playbook("site", second), changed="0")
    assert went_well(run_playbook("teardown", second))
    assert changes(host, made_lab.before()) == ""


@pytest.mark.full
def test_the_last_registered_lab_leaves_what_labs_without_registration_have(host: LabHost, tmp_path: Path) -> None:
    """Roles make labs without registering them. VMs of nobody that are named alike are told apart by their bridges."""
    inventory = checkout.inventory(host, tmp_path, name="a--b")
    host.run("systemctl start virtlogd")  # whoever runs a VM leaves it running
    before = snapshot.take(host)
    for stage in ("host", "network"):
        assert went_well(run_playbook(stage, inventory))
    disk = {"name": "mine.qcow2", "size_bytes": 1024**2}
    nic = {"mac": "52:54:00:00:00:01", "network": "nometal-a--b"}
    vm = {"vm_name": "demo-0", "vcpus": 1, "memory_mib": 128, "firmware": "bios", "uuid": str(uuid4())}
    demo = {"owner": "demo", "pool": "nometal-a--b"}
    assert not run_on(inventory, "bmh_vm", {**demo, "vms": [{**vm, "disks": [disk], "nics": [nic]}]})["failed"]
    host.run("mkdir -p /var/lib/nometal/bmc/demo && virsh start demo-0")

    for name, nic_source in (("a-b-x7k2p", "bridge='baremetal'"), ("a-b-yyyyy", "network='nometal-a--b'")):
        stranger.define_vm(host, f"{name}-bootstrap", nic_source)

    made = snapshot.take(host)
    refused = run_playbook("teardown", inventory)
    assert refused.returncode != 0
    assert "volume mine.qcow2 of pool nometal-a--b is a disk of VM demo-0 (lab demo)" in refused.stdout
    assert "VM demo-0 (lab demo) is plugged into network nometal-a--b" in refused.stdout
    assert "VM a-b-yyyyy-bootstrap (no lab) is plugged into network nometal-a--b" in refused.stdout
    assert "x7k2p" not in refused.stdout
    assert changes(host, made) == ""

    host.run("virsh undefine a-b-yyyyy-bootstrap")
    run_on(inventory, "bmh_vm", {**demo, "state": "absent"})
    assert not run_on(inventory, "bmh_vm", {**demo, "vms": [vm]})["failed"]
    host.run("virsh start demo-0")
    removed = run_playbook("teardown", inventory)
    assert went_well(removed), ending(removed.stdout)
    assert "demo: /var/lib/nometal/bmc/demo, VM demo-0" in removed.stdout
    assert host.run("virsh list --all --name").stdout.split() == ["demo-0"]
    assert host.run("ls /var/lib/nometal").stdout.split() == ["bmc", "host.json", "labs"]
    host.run("systemctl is-enabled nometal-libvirt.target && virsh domstate demo-0 | grep running")

    run_on(inventory, "bmh_vm", {**demo, "state": "absent"})
    host.run("rm -r /var/lib/nometal/bmc")
    last = run_playbook("teardown", inventory)
    assert went_well(last), ending(last.stdout)
    assert "Skipped '/var/lib/nometal/bmc'" not in last.stdout
    assert changes(host, before) == ""


@pytest.mark.full
def test_a_lab_whose_spec_was_changed_since_is_removed_all_the_same(host_of_lab: LabHost, tmp_path: Path) -> None:
    changed = checkout.inventory(
        host_of_lab, tmp_path, machine_network={"cidr": "10.9.0.0/24"}, nodes={"workers": {"count": 4}}
    )
    assert went_well(run_playbook("teardown", changed))
    assert changes(host_of_lab, made_lab.before()) == ""


@pytest.mark.full
def test_of_a_lab_that_a_former_release_has_made_only_the_bmcs_change(host_of_lab: LabHost, tmp_path: Path) -> None:
    host, inventory = host_of_lab, checkout.inventory(host_of_lab, tmp_path)
    switch_one_on(host)
    before, number = snapshot.take(host), domain_id(host)
    former_lab.plant(host)
    run = run_playbook("site", inventory)
    assert went_well(run), ending(run.stdout)
    assert {task.partition(" : ")[0] for task in changing_tasks(run)} == {"nometal.ipi.bmc_emulation"}, run.stdout
    assert domain_id(host) == number
    assert went_well(run_playbook("site", inventory), changed="0")
    owner = host.run(["stat", "--format=%U", former_lab.IMAGE]).stdout.strip()
    assert owner == "nometal-bmc-broker"
    host.run(f"rm {former_lab.IMAGE} && virsh pool-refresh nometal-rehearsal-media")
    assert changes(host, before) == ""


def domain_id(host: LabHost) -> str:
    """Another one for each start."""
    return host.run("virsh domid rehearsal-worker-0").stdout


def changing_tasks(run: CompletedProcess[str]) -> list[str]:
    """Their names, with those of their roles."""
    return re.findall(r"^TASK \[(.*?)\] \*+\n(?:(?!TASK ).*\n)*?changed: ", run.stdout, re.MULTILINE)


HOST_BASELINE = "/var/lib/nometal/host.json"
HOMES = ("/var/lib/nometal", "/var/cache/nometal", "/opt/nometal", "/opt/nometal/bmc", "/run/nometal")
LABS_OWN = ("labs", "labs/rehearsal", "bmc", "bmc/rehearsal", "bmc/rehearsal/tls")
POOL, MEDIA = "/srv/alice/labs", "/var/lib/libvirt/images/nometal-rehearsal-media"
INTRUDERS = """
mkdir /srv/alice/bound {pool}/bound {pool}/memory
mount --bind /srv/alice/bound {pool}/bound && mount -t tmpfs tmpfs {pool}/memory
touch {canaries}
qemu-img create -q -f qcow2 -b {base} -F qcow2 /srv/mine/first.qcow2
qemu-img create -q -f qcow2 -b first.qcow2 -F qcow2 /srv/mine/second.qcow2
"""


@pytest.mark.full
def test_what_is_not_the_labs_stays(host: LabHost, tmp_path: Path) -> None:
    """What others have in libvirt and in every directory: mounts, images, a bridge that needs no forwarding."""
    host.run("ip link add theirs type bridge && ip link set theirs up")
    host.run("mkdir -p /srv/mine && virsh pool-define-as mine dir --target /srv/mine && virsh pool-start mine")
    stranger.define_vm(host)
    host.run(f"mkdir -p {POOL} {' '.join(HOMES)} && chown -R 1234:2345 /srv/alice && chmod 1751 {POOL}")
    host.run(f"touch {' '.join(f'{home}/canary' for home in HOMES)}")
    before = snapshot.take(host)
    inventory = checkout.inventory(host, tmp_path, storage_pool={"path": POOL})
    done = run_playbook("site", inventory)
    assert went_well(done), ending(done.stdout)

    places = [*(f"/var/lib/nometal/{name}" for name in LABS_OWN), POOL, f"{POOL}/bound", f"{POOL}/memory", MEDIA]
    canaries = [f"{place}/canary" for place in places]
    base = f"{POOL}/rehearsal-worker-0-0.qcow2"
    host.run(INTRUDERS.format(pool=POOL, canaries=" ".join(canaries), base=base))
    disk = "<disk type='file'><driver type='qcow2'/><source file='/srv/mine/second.qcow2'/><target dev='vda'/></disk>"
    host.run(["virsh", "define", "/dev/stdin"], input=stranger.VM.format(name="based", devices=disk))
    made = snapshot.take(host)
    refused = run_playbook("teardown", inventory)
    assert refused.returncode != 0
    assert "is the base of /srv/mine/second.qcow2, a disk of VM based (no lab)" in refused.stdout
    assert "is the base of /srv/mine/first.qcow2, an image in pool mine that no VM has" not in refused.stdout
    assert changes(host, made) == ""

    host.run("virsh undefine based && rm /srv/mine/*.qcow2")
    removed = run_playbook("teardown", inventory)
    assert went_well(removed), ending(removed.stdout)
    again = run_playbook("teardown", inventory)
    assert went_well(again, changed="0"), ending(again.stdout)
    for name in ("canary", "bound", "memory"):
        assert f"Left in place: {POOL}/{name} (" in removed.stdout
    for place in ("/var/lib/nometal", "/opt/nometal/bmc"):
        assert f"Left in place: {place}/canary (not made by nometal.ipi)" in again.stdout
    assert host.run(f"ls {' '.join(canaries)}").stdout.split() == sorted(canaries)
    host.run(f"rm {' '.join(canaries)} && umount {POOL}/bound {POOL}/memory && rmdir {POOL}/* /srv/alice/bound {MEDIA}")
    host.run(f"cd /var/lib/nometal && rmdir {' '.join(reversed(LABS_OWN))}")
    assert changes(host, before) == ""


@pytest.mark.full
def test_libvirt_that_was_stopped_is_stopped_again(host: LabHost, tmp_path: Path) -> None:
    host.run("systemctl disable --now libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd.service")
    before = snapshot.take(host)
    inventory = checkout.inventory(host, tmp_path)
    assert went_well(run_playbook("site", inventory))
    assert pools(host) == pools_of("rehearsal")
    host.reboot()
    assert pools(host) == pools_of("rehearsal")
    assert went_well(run_playbook("teardown", inventory))
    assert changes(host, before) == ""


def test_bad_input_changes_nothing_and_names_every_mistake(host: LabHost, tmp_path: Path) -> None:
    before = snapshot.take(host)
    inventory = checkout.inventory(
        host, tmp_path, machine_netwrk={}, nodes={"control_plane": {"count": -1, "memory": "16GB"}}
    )
    refused = run_playbook("site", inventory)
    assert refused.returncode != 0
    for told in (
        "machine_netwrk: unknown key",
        "count: must be a whole number from 0",
        "memory: must be a size in binary units",
    ):
        assert told in refused.stdout
    assert "Traceback" not in refused.stdout
    too_early = run_playbook("network", checkout.inventory(host, tmp_path))
    assert too_early.returncode != 0
    assert "not made ready for lab rehearsal. Run playbooks/host.yml first" in too_early.stdout
    assert changes(host, before) == ""


@pytest.mark.parametrize(
    ("playbook", "hosts"),
    [
        ("site", ""),
        pytest.param("doctor", "hypervisors: {hosts: {}}", marks=pytest.mark.full),
        pytest.param("host", "hypervisor: {hosts: {hypervisor: }}", marks=pytest.mark.full),
        pytest.param("network", "", marks=pytest.mark.full),
        ("teardown", "hypervisors: {hosts: {}}"),
    ],
)
def test_an_inventory_without_hypervisors_is_an_error(tmp_path: Path, playbook: str, hosts: str) -> None:
    (tmp_path / "hosts.yml").write_text(f"---\n{hosts}\n", encoding="utf-8")
    refused = run_playbook(playbook, tmp_path)
    assert refused.returncode != 0
    assert "This inventory describes no lab. It needs a host in the group hypervisors" in refused.stdout


@pytest.mark.full
def test_another_lab_than_the_one_that_is_there_is_told_and_left_alone(host_of_lab: LabHost, tmp_path: Path) -> None:
    host = host_of_lab
    renamed = run_playbook("teardown", checkout.inventory(host, tmp_path, name="renamed"))
    assert went_well(renamed, changed="0"), ending(renamed.stdout)
    assert "Lab renamed is not on this host" in renamed.stdout
    assert "Labs here: rehearsal" in renamed.stdout
    assert pools(host) == pools_of("rehearsal")

    let_another_run_have(host, "rehearsal")
    refused = run_playbook("teardown", checkout.inventory(host, tmp_path))
    assert refused.returncode != 0
    assert (
        "Another run has lab rehearsal on host hypervisor: bob@elsewhere, site.yml (process 7), since" in refused.stdout
    )
    assert pools(host) == pools_of("rehearsal")
    take_over = ("-e", "lab_lock_take_over=true")
    gone = run_playbook("teardown network", checkout.inventory(host, tmp_path), *take_over)
    assert "not made ready for lab rehearsal" in gone.stdout  # though this run has seen it registered before


def let_another_run_have(host: LabHost, lab: str) -> None:
    """From a controller that is not here, over a connection that stays: that of the host's first process."""
    first = {"pid": 1, "started": host.read("/proc/1/stat").split()[21]}
    process = {"pid": 7, "started": "1"}
    controller = {"name": "elsewhere", "machine": "m", "boot": "b", "pid_namespace": "p", "process": process}
    boot, now = host.read("/proc/sys/kernel/random/boot_id").strip(), {"taken": 0.0, "renewed": 0.0}
    record = {"controller": controller, "user": "bob", "playbook": "site.yml", "connection": first, "host_boot": boot}
    host.write(f"/run/nometal/locks/{lab}", json.dumps({**record, **now}))


@pytest.mark.full
def test_a_misspelt_user_is_told_and_not_made(host: LabHost, tmp_path: Path) -> None:
    users = host.read("/etc/passwd")
    refused = run_playbook("host", checkout.inventory(host, tmp_path), "-e", "{host_prep_libvirt_users: [bobb]}")
    assert refused.returncode != 0
    assert "user 'bobb' does not exist" in refused.stdout
    assert host.read("/etc/passwd") == users
    assert went_well(run_playbook("teardown", checkout.inventory(host, tmp_path)))


@pytest.mark.full
def test_a_pool_of_somebody_else_by_our_name_is_refused(host: LabHost, tmp_path: Path) -> None:
    host.run("mkdir /srv/theirs && virsh pool-define-as nometal-rehearsal dir --target /srv/theirs")
    before = snapshot.take(host)
    refused = run_playbook("site", checkout.inventory(host, tmp_path))
    assert refused.returncode != 0
    assert "nometal-rehearsal" in refused.stdout
    assert changes(host, before) == ""


def test_it_works_by_fully_qualified_names_from_the_built_collection(host_of_lab: LabHost, short_path: Path) -> None:
    """With what an execution environment has, and nothing else."""
    programs = controller.environment()
    galaxy = [str(programs / "ansible-galaxy"), "collection"]
    subprocess.run(
        [*galaxy, "build", "--output-path", str(short_path)], cwd=checkout.ROOT, check=True, capture_output=True
    )
    [tarball] = short_path.glob("nometal-ipi-*.tar.gz")
    install = ["install", str(tarball), "--offline", "--collections-path", str(short_path / "installed")]
    subprocess.run([*galaxy, *install], cwd=short_path, check=True, capture_output=True)
    run = subprocess.run(
        [programs / "ansible-playbook", "nometal.ipi.site", "-i", checkout.inventory(host_of_lab, short_path)],
        cwd=short_path,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(short_path),
            "ANSIBLE_COLLECTIONS_PATH": str(short_path / "installed"),
        },
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert went_well(run, changed="0"), ending(run.stdout)
