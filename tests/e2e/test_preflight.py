"""What any stage would refuse is refused before the first change of a run, all of it in one list, by "refusals"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from support import checkout, lab_host, made_lab, snapshot, stranger
from support.checkout import run_playbook
from support.failures import ending
from unit.lab.samples import shipped

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

    from support.lab_host import LabHost

NAME = "rehearsal"
MODEL = lab_model(shipped(NAME), ["hypervisor"])


class Row(NamedTuple):
    """Something that a stage does not take, how it comes about, and what is said of it."""

    stage: str
    spoil: str
    told: str

    def is_in(self, refusal: str) -> bool:
        return refusal.startswith(f"{self.stage}: ") and self.told in refusal


END = MODEL["veth_pairs"][0]["a"]["name"]
NETWORK, BRIDGE = MODEL["networks"][0]["bridge"], MODEL["bridge"]
MAC = MODEL["nodes"][0]["nics"][0]["mac"]
VM = (
    "virsh define /dev/stdin <<'VM'\n<domain type='qemu'><name>mine</name><memory unit='MiB'>64</memory><os><type>hvm"
    f"</type></os><devices><interface type='user'><mac address='{MAC}'/></interface></devices></domain>\nVM"
)
ON_A_FRESH_HOST = [
    Row("host", "echo '{' >/var/lib/nometal/host.json", "/var/lib/nometal/host.json, which remembers"),
    Row("host", "true", "user 'bobb' does not exist on this host"),
    Row("network", f"ip link add {END} type bridge", f"{END} exists and is not a veth but bridge"),
    Row("network", f"ip link add {NETWORK} type bridge", f"bridge {NETWORK} exists and belongs to no libvirt network"),
    Row(
        "network",
        f"ip link add {BRIDGE} type veth peer name theirs0",
        f"{BRIDGE} exists and is not a bridge; the firewall",
    ),
    Row("network", "echo 'options rotate' >>/etc/resolv.conf", "has `options rotate`"),
    Row("nodes", VM, f"MAC {MAC} is VM mine's"),
    Row("bmc", "mkdir -p /opt/nometal && ln -s /srv /opt/nometal/bmc", "/opt/nometal/bmc is there and is not BMC"),
    Row("bmc", "mkdir /var/lib/nometal/bmc && chmod o+w /var/lib/nometal/bmc", "must be a directory that only root"),
    Row("rehearse", "true", "argument 'rehearsal_required' is of type"),
    Row("rehearse", "true", "rehearsal_patience is 0: must be a number above 0"),
    Row("rehearse", "rm /var/cache/nometal/rehearsal/.nometal*", "/var/cache/nometal/rehearsal is there and"),
]
# The doctor may come to see these first.
OF_THE_SPECIFICATION = [
    Row("host", "virsh pool-define-as theirs dir --target /srv/pool", "/srv/pool belongs to storage pool theirs"),
    Row("bmc", f"virsh pool-define-as nometal-{NAME}-media dir --target /srv/media", "/srv/media is not this lab's"),
    Row("install", "true", "There is no public SSH key in /nowhere/key.pub"),
    Row("install", "true", "names /nowhere/secret.json, and there is no such file on the controller"),
    Row("install", "true", "manifests_dir names /nowhere, which must be a directory"),
]
# What the controller has is as it should be, so the modules are asked.
OF_THE_INSTALLATION = [
    Row("install", "true", "/srv/no-mirror"),
    Row("install", "true", "Manifest broken.yaml must have an apiVersion and a kind"),
    Row("install", "true", "ipi_install_patience is 0: must be a number above 0"),
]
IN_A_LAB = [
    Row("network", "true", "only a restart can change mtu from 1500 to 1400"),
    Row("nodes", "true", "disks only grow"),
    Row("bmc", f"echo '{{' >/var/lib/nometal/bmc/{NAME}/credentials.json", f"/var/lib/nometal/bmc/{NAME}/credentials"),
]


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host.start(layer="prepared") as started:
        stranger.use_libvirt(started)
        started.run("mkdir /var/lib/nometal")
        yield started


def is_refused_at_once(refused: CompletedProcess[str], rows: list[Row]) -> bool:
    assert_refused(refused, rows, "Nothing was changed")
    return re.search(r"^hypervisor .* changed=0 .*failed=1", refused.stdout, re.MULTILINE) is not None


def assert_refused(refused: CompletedProcess[str], rows: list[Row], changed: str) -> None:
    said = refused.stdout.replace("\\n", "\n").partition(f"{changed}, because of this:\n")[2]
    refusals = re.split(r"^\s*- (?=[a-z]+: )", said.partition("Origin:")[0], flags=re.MULTILINE)
    missing = [row for row in rows if not any(row.is_in(" ".join(text.split())) for text in refusals)]
    assert missing == [], ending(refused.stdout)


def test_on_a_fresh_host(host: LabHost, tmp_path: Path) -> None:
    for row in ON_A_FRESH_HOST:
        host.run(row.spoil)
    before = snapshot.take(host)
    given = "{host_prep_libvirt_users: [root, bobb], rehearsal_required: perhaps, rehearsal_patience: 0}"
    assert is_refused_at_once(
        run_playbook("site", checkout.inventory(host, tmp_path, rehearsed=True), "-e", given), ON_A_FRESH_HOST
    )
    assert snapshot.take(host).diff(before) == ""

    for row in OF_THE_SPECIFICATION:
        host.run(row.spoil)
    before = snapshot.take(host)
    files = {
        "ssh_key_file": "/nowhere/key.pub",
        "pull_secret_file": "/nowhere/secret.json",
        "manifests_dir": "/nowhere",
    }
    size = {"vcpus": 4, "memory": "16GiB", "disks": [{"size": "120GiB"}]}
    nodes = {"control_plane": {"count": 3, **size}, "workers": {"count": 0}}
    real: dict[str, Any] = {
        "install": {"version": "stable-4.20", **files},
        "nodes": nodes,
        "storage_pool": {"path": "/srv/pool"},
    }
    assert is_refused_at_once(
        run_playbook("preflight", checkout.inventory(host, tmp_path, **real)), OF_THE_SPECIFICATION
    )
    assert snapshot.take(host).diff(before) == ""

    (tmp_path / "key.pub").write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMine me@example.test\n", encoding="utf-8")
    (tmp_path / "secret.json").write_text('{"auths": {"fake": {"auth": "aWQ6cGFzcwo="}}}', encoding="utf-8")
    files = {"ssh_key_file": str(tmp_path / "key.pub"), "pull_secret_file": str(tmp_path / "secret.json")}
    real["install"] = {"version": "4.20.3", "source": "/srv/no-mirror", **files}
    given = "{ipi_install_manifests: {broken.yaml: 'some: thing'}, ipi_install_patience: 0}"
    run = run_playbook("preflight", checkout.inventory(host, tmp_path, **real), "-e", given)
    assert is_refused_at_once(run, OF_THE_INSTALLATION)
    assert snapshot.take(host).diff(before) == ""


def test_in_a_lab_that_is_there(tmp_path: Path) -> None:
    with made_lab.start() as host:
        for row in IN_A_LAB:
            host.run(row.spoil)
        before = snapshot.take(host)
        bridge: dict[str, Any] = {"machine_network": {"bridge": "renamed0", "mtu": 1400}}
        small = {"vcpus": 1, "memory": "512MiB", "disks": [{"size": "16MiB"}]}
        smaller: dict[str, Any] = {"nodes": {"control_plane": {"count": 3, **small}, "workers": {"count": 0}}}
        other = checkout.inventory(host, tmp_path, **bridge, **smaller)
        assert is_refused_at_once(run_playbook("site", other), IN_A_LAB)
        assert snapshot.take(host).diff(before) == ""

        # Its names could change at once, were there not the bridge of its neighbour.
        host.run("ip link add provisioning type bridge")
        before = snapshot.take(host)
        pxe: dict[str, Any] = {
            "bmc": {"protocol": "redfish"},
            "provisioning_network": {"mode": "unmanaged", "bridge": "provisioning"},
        }
        alone = run_playbook("network", checkout.inventory(host, tmp_path, base_domain="other.test", **pxe))
        assert "Stage network has changed nothing, because of this:" in alone.stdout, ending(alone.stdout)
        assert "bridge provisioning exists and belongs to no libvirt network" in alone.stdout
        assert re.search(r"^hypervisor .* changed=0 .*failed=1", alone.stdout, re.MULTILINE)
        assert snapshot.take(host).diff(before) == ""


def test_a_host_where_nothing_is_installed_has_nothing_to_refuse(tmp_path: Path) -> None:
    with lab_host.start(layer="bare", compiled=True) as host:
        before = snapshot.take(host)
        run = run_playbook("preflight", checkout.inventory(host, tmp_path, rehearsed=True))
        assert run.returncode == 0, ending(run.stdout)
        assert snapshot.take(host).diff(before) == ""

        link = Row("network", f"ip link add {END} type bridge", f"{END} exists and is not a veth but bridge")
        host.run(link.spoil)
        assert is_refused_at_once(run_playbook("site", checkout.inventory(host, tmp_path)), [link])


@pytest.mark.full
def test_what_is_not_seen_without_packages_is_refused_when_they_are_there(tmp_path: Path) -> None:
    vm = next(row for row in ON_A_FRESH_HOST if row.spoil == VM)
    with lab_host.start(layer="prepared", mirror=True) as host:
        inventory = checkout.inventory(host, tmp_path)
        ready = run_playbook("host", inventory)  # so that nothing of libvirt has to be changed any more
        assert ready.returncode == 0, ending(ready.stdout)
        host.run(vm.spoil)
        host.run("apt-get -qy remove python3-libvirt")
        networks = host.run("virsh net-list --all --name; ip -brief link").stdout
        assert_refused(
            run_playbook("site", inventory),
            [vm],
            "The host was made ready, and nothing else was changed",
        )
        assert host.run("virsh net-list --all --name; ip -brief link").stdout == networks
