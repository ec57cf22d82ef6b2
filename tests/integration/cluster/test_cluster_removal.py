"""The cluster_removal module on a real libvirtd: what the installer leaves goes, and nothing else does."""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import libvirt
import pytest
from support import bmc_lab, private_libvirtd, redfish_images
from support.checkout import ROOT
from support.modules import run_by_ansible_beside
from support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd

POOL = "nometal-demo"
DISKS = f"/var/lib/libvirt/images/{POOL}"
POOLS = "/var/lib/libvirt/openshift-images"
INSTALLS = "/var/lib/nometal/install"
PYTHONPATH = f"PYTHONPATH={ROOT}/playbooks/collections"
OURS = ("/var/lib/nometal", "/run/nometal")
SHARED = "production-cluster-nu"
MIB = 1024**2
# As the installer does it: a pool with volumes, a domain on them, and its logs. A started one would add nothing.
LEFTOVERS = """
name=$1 bridge=$2 layout=$3 directory=/var/lib/libvirt/openshift-images/$1
if [ $layout = 4.20 ]; then os="<os><type>hvm</type></os>" volumes="base bootstrap ign" one=base
else os="<os firmware='efi'><type machine='q35'>hvm</type></os>" volumes="live-provisioner scratch" one=scratch; fi
pools=/var/lib/libvirt/openshift-images
[ -e $pools ] || echo "{\\"directories\\": {\\"$pools\\": \\"missing\\"}}" >/var/lib/nometal/host.json
virsh pool-define-as "$name" dir --target "$directory"
virsh pool-build "$name"; virsh pool-start "$name"; virsh pool-autostart "$name"
for volume in $volumes; do virsh vol-create-as "$name" "$name-$volume" 1M --format qcow2; done
virsh define /dev/stdin <<EOF
<domain type='qemu'><name>$name</name><memory unit='MiB'>64</memory>$os<devices>
<disk type='file'><driver name='qemu' type='qcow2'/><source file='$directory/$name-$one'/><target dev='vda'/></disk>
<interface type='bridge'><source bridge='$bridge'/></interface></devices><features><acpi/></features></domain>
EOF
if [ $layout = 4.22 ]; then
  mkdir -p /var/lib/libvirt/qemu/nvram; echo >/var/lib/libvirt/qemu/nvram/"$name"_VARS.fd
  for log in serial0.log serial0.log.0; do echo >/var/log/libvirt/qemu/"$name-$log"; done
fi
echo >"/var/log/libvirt/qemu/$name.log"
"""
# Asked to end, it first makes what it was about to make.
INSTALLER = f"""
make() {{
{LEFTOVERS}
}}
trap 'make demo-x7k2p-bootstrap baremetal 4.20; exit 0' INT
exec 9>"$0"; flock 9; while :; do sleep 0.1 || :; done
"""
# Answers what it is asked line by line: to start Python for each takes longer than anything else here.
SERVER = """
import json, subprocess, sys
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.modules import cluster_removal
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal.leftovers import RemovalPort
apply = RemovalPort.apply
class Killed(BaseException): pass
def answer(asked):
    left = [None] * asked["steps"]
    def apply_some(port, step):
        if not left: raise Killed
        left.pop()
        apply(port, step)
    RemovalPort.apply = apply_some
    params = {name: known.get("default") for name, known in cluster_removal.ARGUMENTS.items()}
    try:
        return cluster_removal.run({**params, **asked["params"]}, check_mode=asked["check_mode"])
    except OperatorError as error:
        return {"failed": True, "msg": str(error)}
    except Killed:
        return {"killed": True}
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
"""


@dataclass(frozen=True)
class Host:
    libvirtd: PrivateLibvirtd
    server: subprocess.Popen[str]

    def sh(self, script: str, *arguments: str) -> str:
        return self.libvirtd.run(["sh", "-ec", script, "sh", *arguments]).stdout

    def leave(self, name: str, bridge: str = "baremetal", layout: str = "4.20") -> str:
        self.sh(LEFTOVERS, f"{name}-bootstrap", bridge, layout)
        return f"{name}-bootstrap"

    def install(self, lab: str, infra: str = "") -> Path:
        """The installer's directory, with secrets in it."""
        directory = f"{INSTALLS}/{lab}"
        for secret in ("cluster/auth/kubeconfig", "tmp/openshift-install-bootstrap-1.ign"):
            path = self.libvirtd.path(f"{directory}/{secret}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        self.sh(f"mkdir -p /run/nometal/install/{lab}; touch /run/nometal/install/{lab}/events.jsonl")
        if infra:
            metadata = json.dumps({"clusterName": lab, "infraID": infra})
            self.libvirtd.path(f"{directory}/cluster/metadata.json").write_text(metadata)
        return self.libvirtd.path(directory)

    def everything(self) -> str:
        places = "/var/lib/libvirt/openshift-images /var/lib/libvirt/qemu/nvram /var/log/libvirt/qemu /var/lib/nometal"
        return self.sh(
            f"virsh list --all --name; virsh pool-list --all --name; find {places} /run/nometal {DISKS} "
            "-printf '%p %s\n' 2>/dev/null | sort || true"
        )

    def call(self, *, check_mode: bool = False, steps: int = 100, **params: Any) -> dict[str, Any]:
        self.ask(check_mode=check_mode, steps=steps, **params)
        return self.answer()

    def ask(self, *, check_mode: bool = False, steps: int = 100, **params: Any) -> None:
        """Of the module under test; killed after so many steps."""
        assert self.server.stdin
        asked = {"params": params, "check_mode": check_mode, "steps": steps}
        print(json.dumps(asked), file=self.server.stdin, flush=True)

    def answer(self) -> dict[str, Any]:
        assert self.server.stdout
        answer: dict[str, Any] = json.loads(self.server.stdout.readline())
        return answer

    def vms(self, **params: Any) -> dict[str, Any]:
        command = ["env", PYTHONPATH, sys.executable, "-m", "ansible_collections.nometal.ipi.plugins.modules.bmh_vm"]
        done = self.libvirtd.run(command, input=json.dumps({"ANSIBLE_MODULE_ARGS": params}))
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def remove(self, lab: str, **params: Any) -> list[str]:
        """What was done, which check mode foresees; and that the next run has nothing left to do."""
        before = self.everything()
        foreseen = self.call(lab=lab, check_mode=True, **params)
        assert self.everything() == before
        answer = self.call(lab=lab, **params)
        assert not answer.get("failed"), answer
        assert (foreseen["steps"], foreseen["vms"]) == (answer["steps"], answer["vms"])
        assert answer["changed"] == bool(answer["steps"])
        for check_mode in (True, False):
            assert not self.call(lab=lab, check_mode=check_mode, **params)["changed"]
        steps: list[str] = answer["steps"]
        return steps

    def refused(self, lab: str, **params: Any) -> str:
        before = self.everything()
        answer = self.call(lab=lab, **params)
        assert answer.get("failed"), answer
        assert self.everything() == before
        return str(answer["msg"])

    @property
    def connection(self) -> Any:
        return libvirt.open(self.libvirtd.uri)


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        pool = f"virsh pool-define-as {POOL} dir --target {DISKS}; virsh pool-build {POOL}; virsh pool-start {POOL}"
        bridges = "for bridge in baremetal other; do ip link add $bridge up type bridge; done"
        started.run(["sh", "-ec", f"{pool}; {bridges}"])
        yield started


@pytest.fixture(scope="module")
def server(libvirtd: PrivateLibvirtd) -> Iterator[subprocess.Popen[str]]:
    command = libvirtd.command(["env", PYTHONPATH, sys.executable, "-c", SERVER])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield started


@pytest.fixture
def host(libvirtd: PrivateLibvirtd, server: subprocess.Popen[str]) -> Iterator[Host]:
    host = Host(libvirtd, server)
    host.sh(f"for d in {' '.join(OURS)}; do mkdir -p $d; mount -t tmpfs -o mode=755 tmpfs $d; done")
    yield host
    for domain in host.connection.listAllDomains():
        domain.destroy() if domain.isActive() else None
        domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_NVRAM)
    for pool in host.connection.listAllStoragePools():
        if pool.name() != POOL:
            pool.destroy() if pool.isActive() else None
            pool.undefine()
    host.sh(f"rm -rf {POOLS} {DISKS}/* /var/log/libvirt/qemu/*; umount {' '.join(OURS)}")


def node(number: int, **others: Any) -> dict[str, Any]:
    uuid = f"0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e{number:02x}"
    return {
        "name": f"node-{number}",
        "vm_name": f"demo-{number}",
        "uuid": uuid,
        "vcpus": 1,
        "memory_mib": 128,
        "firmware": "uefi",
        "disks": [
            {"name": f"demo-{number}-0.qcow2", "size_bytes": 64 * MIB, "serial": f"NM{number}"},
            {"name": f"demo-{number}-1.raw", "size_bytes": 8 * MIB, "format": "raw", "bus": "virtio"},
        ],
        "nics": [{"mac": f"52:54:00:00:00:{number:02x}", "bridge": "baremetal", "boot_order": 1}],
        "bmc": {"address": f"redfish-virtualmedia+http://127.0.0.1:9/redfish/v1/Systems/{uuid}"},
        **others,
    }


def images(host: Host, number: int) -> list[tuple[Any, ...]]:
    """Format, size, blankness, inode and mode of a node's disks."""
    found = []
    for name in (f"demo-{number}-0.qcow2", f"demo-{number}-1.raw"):
        info = json.loads(host.sh(f"qemu-img info -U --output=json {DISKS}/{name}"))
        parts = json.loads(host.sh(f"qemu-img map -U --output=json {DISKS}/{name}"))
        stat = host.libvirtd.path(f"{DISKS}/{name}").stat()
        blank = all(part["zero"] or not part["data"] for part in parts)
        found.append((info["format"], info["virtual-size"], blank, stat.st_ino, stat.st_mode))
    return found


@pytest.mark.parametrize("layout", ["4.20", "4.22"])
def test_all_goes_that_the_installer_leaves_and_neighbours_stay(host: Host, layout: str) -> None:
    neighbours = {"demo2": "demo2-aaaaa", "demo-2": "demo-2-bbbbb"}
    for lab, infra in neighbours.items():
        host.install(lab, infra)
        host.leave(infra, layout=layout)
    before = host.everything()
    host.install("demo", "demo-x7k2p")
    name = host.leave("demo-x7k2p", layout=layout)
    steps = host.remove("demo", bridges=["baremetal"])
    assert steps[0] == f"undefine {name}"
    assert steps[-2:] == [f"remove {INSTALLS}/demo", "remove /run/nometal/install/demo"]
    assert f"undefine pool {name}" in steps
    assert f"remove {POOLS}/{name}" in steps
    assert host.everything() == before

    for lab, infra in neighbours.items():
        steps = host.remove(lab)
        assert f"undefine {infra}-bootstrap" in steps
    assert f"remove {POOLS}" in steps
    assert "bootstrap" not in host.everything()
    assert host.sh(f"ls -A {' '.join(OURS)}").split() == ["/run/nometal:", "/var/lib/nometal:"]


def test_the_directory_of_pools_that_was_there_before_stays(host: Host) -> None:
    host.sh(f"mkdir {POOLS}")
    host.install("demo", "demo-x7k2p")
    host.leave("demo-x7k2p")
    assert f"remove {POOLS}" not in host.remove("demo")
    assert host.sh(f"ls -A {POOLS}") == ""


def test_without_notes_the_name_and_the_bridge_tell(host: Host) -> None:
    """The neighbours' names begin alike: one with all of its letters, one with the 21 that the installer takes."""
    for infra, bridge in {"demo2-aaaaa": "baremetal", "demo-2-bbbbb": "baremetal", "demo-ccccc": "other"}.items():
        host.leave(infra, bridge)
    before = host.everything()
    host.leave("demo-x7k2p")
    assert host.remove("demo", bridges=["baremetal"])[0] == "undefine demo-x7k2p-bootstrap"
    assert host.everything() == before

    host.install(f"{SHARED}mber-2")
    host.leave(f"{SHARED}-yyyyy", "other")
    before = host.everything()
    host.leave(f"{SHARED}-xxxxx")
    mine: dict[str, Any] = {"lab": f"{SHARED}mber-1", "bridges": ["baremetal"]}
    assert host.remove(**mine)[0] == f"undefine {SHARED}-xxxxx-bootstrap"
    assert host.everything() == before
    host.sh(f"virsh undefine {SHARED}-yyyyy-bootstrap")
    before = host.everything()
    left = host.call(**mine)
    assert (left["steps"], len(left["kept"])) == ([], 1)
    said = f"{SHARED}-yyyyy-bootstrap (it may be a leftover of lab {SHARED}mber-1 or of {SHARED}mber-2, or anybody's"
    assert said in left["kept"][0]
    assert host.everything() == before
    host.install(f"{SHARED}mber-2", f"{SHARED}-yyyyy")
    assert host.remove(**mine) == []


def test_without_notes_what_has_no_vm_on_the_labs_bridges_stays_and_is_named(host: Host) -> None:
    """Whoever called a pool, a directory or a log like that, and whatever is plugged in where no bridges are told."""
    name = host.leave("demo-x7k2p")
    before = host.everything()
    left = host.call(lab="demo")
    assert (left["steps"], left["vms"], len(left["kept"])) == ([], [], 1)
    assert host.everything() == before
    host.sh(f"virsh undefine --nvram {name}")
    before = host.everything()
    left = host.call(lab="demo", bridges=["baremetal"])
    assert (left["steps"], len(left["kept"])) == ([], 1)
    assert f"what is called {name} (it may be a leftover of lab demo, or anybody's" in left["kept"][0]
    assert host.everything() == before
    host.install("demo", "demo-x7k2p")
    assert f"undefine pool {name}" in host.remove("demo")


def test_without_notes_one_that_was_killed_anywhere_is_completed(host: Host) -> None:
    steps = 0
    while True:
        host.leave("demo-x7k2p", layout="4.22")
        if "killed" not in host.call(lab="demo", bridges=["baremetal"], steps=steps):
            break
        host.call(lab="demo", bridges=["baremetal"])
        assert not host.call(lab="demo", bridges=["baremetal"])["changed"]
        assert "demo" not in host.everything().replace(POOL, "")
        steps += 1
    assert steps > 3


def test_one_that_was_killed_anywhere_is_completed(host: Host) -> None:
    steps = 0
    while True:
        host.install("demo", "demo-x7k2p")
        host.leave("demo-x7k2p", layout="4.22")
        if "killed" not in host.call(lab="demo", steps=steps):
            break
        assert host.call(lab="demo")["changed"]
        assert not host.call(lab="demo")["changed"]
        assert "demo" not in host.everything().replace(POOL, "")
        steps += 1
    assert steps == 10


def test_nodes_are_as_new(host: Host) -> None:
    nodes = [node(1), node(2)]
    host.vms(owner="demo", pool=POOL, vms=nodes)
    assert host.remove("demo", nodes=nodes) == []
    new, fresh = images(host, 1), definition(host, 1)

    install_on(host, 1)
    assert not all(blank for _format, _size, blank, *_rest in images(host, 1))
    assert host.remove("demo", nodes=nodes, keep_nodes=True) == []
    over = "/var/lib/libvirt/images/nometal-demo/mine.qcow2"
    host.sh(f"qemu-img create -q -f qcow2 -b demo-1-1.raw -F raw {over}; virsh pool-refresh {POOL} >/dev/null")
    told = f"{DISKS}/demo-1-1.raw is the base of {over}, an image in pool {POOL} that no VM has"
    assert told in host.refused("demo", nodes=nodes)
    host.sh(f"rm {over}")
    steps = host.remove("demo", nodes=nodes)
    nvram = "/var/lib/libvirt/qemu/nvram/demo-1_VARS.fd"
    assert steps == [
        "switch off demo-1",
        f"blank {DISKS}/demo-1-0.qcow2",
        f"blank {DISKS}/demo-1-1.raw",
        "eject medium of demo-1",
        "clear boot override of demo-1",
        f"remove {nvram}",
    ]
    assert images(host, 1) == new
    assert definition(host, 1) == fresh
    assert not host.vms(owner="demo", pool=POOL, vms=nodes)["changed"]
    host.sh("virsh start --paused demo-1")
    assert host.libvirtd.path(nvram).exists()


def definition(host: Host, number: int) -> str:
    text = str(host.connection.lookupByName(f"demo-{number}").XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))
    return "".join(line for line in text.splitlines(keepends=True) if "urn:nometal:ipi:bmc" not in line)


def install_on(host: Host, number: int) -> None:
    """By its BMC, from a medium that is still in its drive; and the system runs."""
    for name in ("0.qcow2", "1.raw"):
        host.sh(f"qemu-io -f {name.partition('.')[2]} -c 'write -P 7 0 1M' {DISKS}/demo-{number}-{name} >/dev/null")
    host.sh("truncate -s 1M /var/lib/libvirt/images/medium.iso")
    host.sh(f"virsh change-media demo-{number} sdz /var/lib/libvirt/images/medium.iso --insert --config >/dev/null")
    domain = host.connection.lookupByName(f"demo-{number}")
    text = domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)
    mac = f"52:54:00:00:00:{number:02x}"
    note = f"target='Cd' enabled='Continuous' order='sda=1 vda=2 {mac}=3 sdz=4'"
    text = text.replace("</nometal:vm>", f"</nometal:vm><bmc:state xmlns:bmc='urn:nometal:ipi:bmc' {note}/>")
    text = text.replace("<boot order='4'/>", "<boot order='9'/>").replace("<boot order='1'/>", "<boot order='4'/>")
    host.connection.defineXML(text.replace("<boot order='9'/>", "<boot order='1'/>"))
    host.sh(f"virsh start --paused demo-{number}")


def test_a_disk_that_was_damaged_is_made_as_declared_and_others_are_left_alone(host: Host) -> None:
    """A VM of the name that is not the lab's, and a disk that somebody has put into a node by hand."""
    nodes = [node(1), node(2)]
    host.vms(owner="demo", pool=POOL, vms=nodes[:1])
    host.vms(owner="other", pool=POOL, vms=nodes[1:])
    new = images(host, 1)
    host.sh(f": >{DISKS}/demo-1-0.qcow2; qemu-io -f raw -c 'write 0 1M' {DISKS}/demo-2-1.raw >/dev/null")
    host.sh(f"echo text >{DISKS}/by-hand; virsh attach-disk demo-1 {DISKS}/by-hand vdx --config >/dev/null")
    assert host.remove("demo", nodes=nodes) == [f"blank {DISKS}/demo-1-0.qcow2"]
    assert [image[:3] for image in images(host, 1)] == [image[:3] for image in new]
    assert host.libvirtd.path(f"{DISKS}/by-hand").read_text() == "text\n"
    host.vms(owner="other", state="absent")


def test_bmcs_that_answer_eject_and_forget(host: Host) -> None:
    with bmc_lab.start(host.libvirtd) as bmcs, bmcs.network():
        vm = bmcs.vm(firmware="bios")
        bmcs.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Continuous"}})
        vm.insert(redfish_images.cd("medium"))
        own = host.libvirtd.path("/var/lib/nometal/bmc/test")
        own.mkdir(parents=True)
        name = vm.domain.name()
        login = {"username": bmc_lab.USER, "password": bmc_lab.PASSWORD}
        (own / "credentials.json").write_text(json.dumps({name: login}))
        address = f"redfish-virtualmedia+{bmc_lab.URL}{vm.path}"
        steps = host.remove("test", nodes=[{"vm_name": name, "firmware": "bios", "bmc": {"address": address}}])
        assert steps == [f"eject medium of {name}", f"clear boot override of {name}"]
        assert "EjectMedia" in bmcs.log()
        assert not bmcs.get(vm.media)["Inserted"]
        assert bmcs.get(vm.path)["Boot"]["BootSourceOverrideEnabled"] == "Disabled"


def test_an_installer_that_runs_is_ended_first(host: Host) -> None:
    directory = host.install("demo", "demo-x7k2p")
    host.leave("demo-x7k2p")
    (directory / "lock").touch()
    holds = host.libvirtd.command(["flock", f"{INSTALLS}/demo/lock", "sleep", "600"])
    with subprocess.Popen(holds, stdout=subprocess.DEVNULL) as installer:
        host.sh(f"until ! flock --nonblock {INSTALLS}/demo/lock true; do :; done")
        assert host.remove("demo", state="tidied") == []
        assert host.remove("demo")[:2] == ["stop installer", "undefine demo-x7k2p-bootstrap"]
        installer.wait(PATIENCE)


def test_what_an_installer_makes_until_it_has_ended_goes_as_well(host: Host) -> None:
    before = host.everything()
    directory = host.install("demo", "demo-x7k2p")
    lock = f"{INSTALLS}/demo/lock"
    with subprocess.Popen(
        host.libvirtd.command(["sh", "-ec", INSTALLER, lock]), stdout=subprocess.DEVNULL
    ) as installer:
        host.sh(f"until [ -e {lock} ] && ! flock --nonblock {lock} true; do :; done")
        assert host.call(lab="demo", check_mode=True)["vms"] == []
        answer = host.call(lab="demo")
        assert installer.wait(PATIENCE) == 0
    assert answer["steps"][:2] == ["stop installer", "undefine demo-x7k2p-bootstrap"]
    assert answer["vms"] == ["demo-x7k2p-bootstrap"]
    assert host.everything() == before
    assert not directory.exists()


@pytest.mark.parametrize("state", ["absent", "tidied"])
def test_whoever_prepares_an_installation_is_waited_for(host: Host, state: str) -> None:
    directory = host.install("demo", "demo-x7k2p")
    holds = host.libvirtd.command(["sh", "-c", 'exec 9<"$0"; flock 9; echo; read -r line', f"{INSTALLS}/demo"])
    with subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin
        assert other.stdout
        other.stdout.readline()
        assert host.call(lab="demo", check_mode=True, state=state)["changed"]
        host.ask(lab="demo", state=state)
        assert host.server.stdout
        assert not select.select([host.server.stdout], [], [], 0.5)[0]
        other.communicate(b"\n")
        assert host.answer()["changed"]
    assert directory.exists() == (state == "tidied")


def test_after_success_what_dangles_is_tidied_away(host: Host) -> None:
    directory = host.install("demo", "demo-x7k2p")
    name = host.leave("demo-x7k2p", layout="4.22")
    (directory / "tmp").rename(directory / "kept")
    assert host.remove("demo", state="tidied") == []  # it is in use
    host.sh(f"virsh undefine --nvram {name}; virsh pool-destroy {name}; rm {POOLS}/{name}/*")
    (directory / "kept").rename(directory / "tmp")
    removed = [f"{POOLS}/{name}", POOLS, f"{INSTALLS}/demo/tmp"]
    assert host.remove("demo", state="tidied") == [*(f"remove {path}" for path in removed), f"undefine pool {name}"]
    assert (directory / "cluster/metadata.json").exists()


def test_without_libvirt_there_is_nothing_or_it_says_what_to_do(host: Host) -> None:
    nowhere = {"libvirt_uri": "qemu:///system?socket=/run/none"}
    assert host.remove("demo", **nowhere) == []
    host.install("demo")
    told = host.refused("demo", **nowhere)
    assert "role nometal.ipi.host_prep installs and starts it" in told
    assert f"{INSTALLS}/demo tells what of libvirt's belongs to the cluster" in told
    assert "lab" in host.refused("../demo")


def test_without_libvirt_files_go_unless_they_tell_what_libvirt_still_has(host: Host) -> None:
    nowhere = {"libvirt_uri": "qemu:///system?socket=/run/none", "keep_nodes": True}
    host.install("demo", "demo-x7k2p")
    name = host.leave("demo-x7k2p", layout="4.22")
    assert f"Nothing was removed: {name} of the cluster" in host.refused("demo", **nowhere)
    host.sh(f"virsh undefine --nvram {name}; virsh pool-destroy {name}; virsh pool-undefine {name}")
    host.sh(f"mkdir -p {POOLS}/demo-yyyyy-bootstrap")  # of a cluster of that name, whosever it was
    assert f"remove {INSTALLS}/demo" in host.remove("demo", **nowhere)
    assert host.sh(f"ls {POOLS}").split() == ["demo-yyyyy-bootstrap"]


def test_as_ansible_runs_it(host: Host) -> None:
    host.leave("demo-x7k2p")
    answer = run_by_ansible_beside(host.libvirtd, "cluster_removal", {"lab": "demo", "bridges": ["baremetal"]})
    assert answer["changed"]
    assert "demo-x7k2p-bootstrap" in answer["shown_diff"]


@pytest.mark.parametrize("check_mode", [True, False], ids=["asked", "done"])
def test_what_others_have_put_beside_the_installers_files_stays_and_is_named(host: Host, check_mode: bool) -> None:
    directory = host.install("tidy", "tidy-aaaaa")
    ours = ("cluster/bootstrap.ign", "cluster/tls/ca.key", "bundles/tidy-20260801T101112Z.1.tar.gz")
    theirs = ("cluster/notes.txt", "cluster/auth/htpasswd", "bundles/photos.tar.gz")
    for name in (*ours, *theirs):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).touch()
    done = host.call(lab="tidy", check_mode=check_mode)
    assert sorted(done["kept"]) == sorted(f"{INSTALLS}/tidy/{name} (not made by nometal.ipi)" for name in theirs)
    if not check_mode:
        assert sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()) == sorted(
            theirs
        )
        assert not host.call(lab="tidy")["changed"]
    shutil.rmtree(directory)
