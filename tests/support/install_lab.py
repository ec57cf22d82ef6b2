"""A lab on a host that a stand-in installer installs, as it would a real cluster."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from support import checkout, made_lab, stand_in_mirror
from support.checkout import run_playbook
from support.failures import ending

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from subprocess import CompletedProcess

    from support.lab_host import LabHost

MIRROR = "/srv/mirror"
SCENARIO = "/etc/stand-in-installer.json"
VERSIONS = {"4.14.30": "stable-4.14", "4.20.3": "stable-4.20", "4.22.1": "stable-4.22"}
# So small are the VMs; lab_spec with `install` refuses such nodes, so it is told of larger ones afterwards.
SMALL = {"vcpus": 1, "memory": "192MiB", "disks": [{"size": "64MiB"}]}
REAL = {"vcpus": 4, "memory": "16GiB", "disks": [{"size": "120GiB"}]}
PLANTED = "planted-0f6d2c"
PULL_SECRET = json.dumps({"auths": {"registry.example.test": {"auth": f"{PLANTED}-pull"}}})
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeKeyOfNobodyFakeKeyOfNobodyFakeKeyOfNob operator"


@contextmanager
def start(below: Path, **spec: Any) -> Iterator[InstallLab]:
    """On a host with the mirror, on which the stages before the installation have been made."""
    with made_lab.start(**small(spec)) as host:
        below.mkdir(exist_ok=True)
        put_mirror(host, below)
        yield InstallLab(host, below, **spec)


def small(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The lab_spec by which the stages before the installation are made."""
    return _with_nodes(_spec(spec), SMALL)


def _spec(special: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "lab", "firmware": "bios", **special}


def _with_nodes(spec: Mapping[str, Any], size: Mapping[str, Any]) -> dict[str, Any]:
    groups = spec.get("nodes", {"control_plane": {"count": 3}, "workers": {"count": 0}})
    sized = {group: own if group == "overrides" else {**size, **own} for group, own in groups.items()}
    return {**spec, "nodes": sized}


class InstallLab:
    """The stages before the installation are made; `install()` runs the rest, on the same host."""

    def __init__(self, host: LabHost, below: Path, **spec: Any) -> None:
        self.host = host
        self._below = below
        self._spec = _spec(spec)
        self.name = self._spec["name"]

    def make(self) -> None:
        """Beside another lab; start() has made its own."""
        inventory = checkout.inventory(self.host, self._below / "stages", **small(self._spec))
        made = run_playbook(made_lab.STAGES, inventory)
        assert made.returncode == 0, ending(made.stdout)

    def with_one_node_less(self, stages: str, *arguments: str) -> CompletedProcess[str]:
        """Stages before the installation, for a lab_spec without one of the three control plane nodes."""
        two = {"control_plane": {**SMALL, "count": 2, "fencing": True}, "workers": {"count": 0}}
        inventory = checkout.inventory(self.host, self._below / "less", **{**self._spec, "nodes": two})
        return run_playbook(stages, inventory, *arguments)

    def inventory(
        self, version: str = "stable-4.20", size: Mapping[str, Any] = REAL, *, rehearsed: bool = False, **install: Any
    ) -> Path:
        """With lab_spec.install."""
        (self._below / "files").mkdir(exist_ok=True)
        pull_secret, ssh_key = self._below / "files/pull-secret.json", self._below / "files/key.pub"
        pull_secret.write_text(PULL_SECRET, encoding="utf-8")
        ssh_key.write_text(SSH_KEY, encoding="utf-8")
        files = {"pull_secret_file": str(pull_secret), "ssh_key_file": str(ssh_key)}
        asked = {"version": version, "source": MIRROR, **files, **install}
        spec = {**_with_nodes(self._spec, size), "install": asked}
        return checkout.inventory(self.host, self._below / "install", rehearsed=rehearsed, **spec)

    def scenario(self, **told: Any) -> None:
        """How the stand-in behaves from now on: speed, fail, hang."""
        known = json.loads(self.host.run(["cat", SCENARIO], check=False).stdout or "{}")
        # In one go, for the stand-in reads it all the time.
        self.host.write(f"{SCENARIO}.new", json.dumps({**known, self.name: {"speed": 0.1, **told}}))
        self.host.run(["mv", f"{SCENARIO}.new", SCENARIO])

    def install(self, *arguments: str, **install: Any) -> CompletedProcess[str]:
        return run_playbook("install", self.inventory(**install), *arguments)

    def has_nodes(self, **groups: Any) -> None:
        """In lab_spec, from now on."""
        self._spec = {**self._spec, "nodes": groups}

    def follow(self, *arguments: str, playbooks: str = "site") -> CompletedProcess[str]:
        """After the installation, with VMs as small as they are and the rehearsal."""
        product = checkout.with_small_nodes(self._below)
        return run_playbook(playbooks, self.inventory(size=SMALL, rehearsed=True), *arguments, root=product)

    def command(self, *arguments: str, playbooks: str = "site") -> list[str]:
        """Of `follow`, to be run in such a checkout."""
        return checkout.command(playbooks, self.inventory(size=SMALL, rehearsed=True), *arguments)

    def remove_cluster(self, *arguments: str) -> CompletedProcess[str]:
        return run_playbook("teardown", self.inventory(), "-e", "teardown_scope=cluster", *arguments)


def put_mirror(host: LabHost, below: Path) -> None:
    """The client mirror that the tools come from, as a directory on the host."""
    made = stand_in_mirror.make(
        below / "mirror", list(VERSIONS), {channel: version for version, channel in VERSIONS.items()}
    )
    host.copy_tree(made, MIRROR)
