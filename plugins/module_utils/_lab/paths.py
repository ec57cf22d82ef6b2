# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of a lab's installation on the host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import cluster_name

STATE = Path("/var/lib/nometal")
INSTALLS = STATE / "install"
RUNS = Path("/run/nometal/install")
CACHE = Path("/var/cache/nometal/installer")
KNOWN_OF_CLUSTER = (
    *(".openshift_install*", "install-config.yaml", "metadata.json", "*.ign", "rendezvousIP", ".*.new"),
    *("terraform*", ".terraform*", "cluster-api", ".clusterapi_output", "log-bundle-*", "serial-log-bundle-*"),
    *("manifests", "openshift", "tls", "auth/kubeconfig", "auth/kubeadmin-password", "auth/spares.yaml"),
    *("auth/kubeconfig-proxy", "auth/proxy.pac", "auth/.*.new"),
)
"""The installer's files in its directory, and ours beside them. Other files belong to an administrator and are kept."""
STAMP = "T".join("[0-9]" * digits for digits in (8, 6))
KNOWN_OF_BUNDLES = (f"*-{STAMP}Z*.tar.gz", ".*.new")
KNOWN_OF_INSTALL = (
    *(f"cluster/{name}" for name in KNOWN_OF_CLUSTER),
    *(f"bundles/{name}" for name in KNOWN_OF_BUNDLES),
    *(f"backups/{name}" for name in ("etcd-*.tar", ".*.new")),
    *("install-config.yaml", "secrets.json", "runner.py", "lock", "plan.json", "run.json", "output.log", "nodes.json"),
    *("tmp", "draft", "gather", "power-cycled.json", "claimed.json", ".*.new"),
    *(".cache", ".config", ".kube", ".local"),  # the installer and oc use it as their home
)
"""The collection's files in a lab's directory. Other files are kept."""
OF_BMC_MACHINES = "state/machines"
"""Below the BMC service's directory of a lab: what each BMC keeps of its machine's firmware, by the VM's UUID."""
OF_BMC_ACCOUNTS = ("credentials.json", "hashes.json")
"""Only _bmc/credentials.py knows what is in which."""
KNOWN_OF_BMC = (
    *("config.json", "faults.json", *OF_BMC_ACCOUNTS, "serving", ".*.new"),
    *("state/", "state/.*", "state/passwords.json", "state/events/*.jsonl", "state/events/.*"),
    *(f"{OF_BMC_MACHINES}/*.json", f"{OF_BMC_MACHINES}/.*"),
    *("supervisor", "supervisor.pid", "service.log*"),
    *("broker/broker.json", "broker/supervisor", "broker/supervisor.pid", "broker/service.log*", "broker/.*.new"),
    *("broker/state/", "broker/state/broker.sock", "broker/state/power.json", "broker/state/.*"),
    *(f"tls/{name}" for name in ("ca.pem", "ca.key", "server.pem", "server.key", ".*.new")),
)
"""The BMC service's files in its directory of a lab. `state` is its home, where programs write hidden files."""
LABS = "labs"
"""Below /var/lib/nometal: one directory for each lab."""
RECORD_OF_MODEL, RECORD_OF_NAME = "lab.json", "registered"
"""One of them registers a lab on a host."""
RECORD_OF_STOP = "stopped.json"
"""Which VMs `make stop` has switched off."""
CHECKPOINTS = "checkpoints"
EXPORT = "export"
"""What was written for other installers, unless they were to have it elsewhere."""
BMC_CA = "bmc-ca.pem"
KNOWN_OF_EXPORT = (
    *("bare-metal-hosts.yaml", "nodes.json", "agent-config.yaml", "install-config.yaml", "cluster-instance.yaml"),
    *("inventory.yml", BMC_CA, ".*.new"),
)
KNOWN_OF_LAB = (
    RECORD_OF_MODEL,
    RECORD_OF_NAME,
    RECORD_OF_STOP,
    "rehearsal.html",
    "rehearsal.json",
    CHECKPOINTS,
    *(f"{EXPORT}/{name}" for name in KNOWN_OF_EXPORT),
    ".*.new",
)
"""In the directory of one lab, /var/lib/nometal/labs/LAB."""
KNOWN_OF_RUNS = ("events.jsonl", "tools.jsonl", "power.jsonl", "nodes.jsonl", "nodes.lock", "watch.lock", "jobs")
"""In the directory of its runs."""


@dataclass(frozen=True)
class Paths:
    """Most of the files are secret, so only root can read the directory."""

    lab: str

    @property
    def directory(self) -> Path:
        return INSTALLS / self.lab

    @property
    def is_in_use(self) -> bool:
        """Whether files of the installation exist."""
        return bool(removal.found(self.directory, KNOWN_OF_INSTALL))

    @property
    def assets(self) -> Path:
        """The installer's directory."""
        return self.directory / "cluster"

    @property
    def cache(self) -> Path:
        """One per lab: from 4.22 the installer extracts images into it without a lock, and deletes them after use."""
        return CACHE / self.lab

    @property
    def config(self) -> Path:
        """A copy, since the installer removes the one in its directory."""
        return self.directory / "install-config.yaml"

    @property
    def secrets(self) -> Path:
        """Other secrets of the operator, which logs and bundles must not contain."""
        return self.directory / "secrets.json"

    @property
    def log(self) -> Path:
        return self.assets / ".openshift_install.log"

    @property
    def metadata(self) -> Path:
        return self.assets / "metadata.json"

    @property
    def claimed(self) -> Path:
        """Bootstrap VMs found by their bridges, recorded for a removal without the installer's metadata."""
        return self.directory / "claimed.json"

    @property
    def kubeconfig(self) -> Path:
        return self.assets / "auth/kubeconfig"

    @property
    def proxy_kubeconfig(self) -> Path:
        """For those who come through a proxy."""
        return self.assets / "auth/kubeconfig-proxy"

    @property
    def pac(self) -> Path:
        return self.assets / "auth/proxy.pac"

    @property
    def password(self) -> Path:
        return self.assets / "auth/kubeadmin-password"

    @property
    def spares(self) -> Path:
        """Manifests of the spares, to be applied by hand."""
        return self.kubeconfig.with_name("spares.yaml")

    @property
    def nodes(self) -> Path:
        """Which hosts of the lab the cluster has."""
        return self.directory / "nodes.json"

    @property
    def runner(self) -> Path:
        """The program that runs the installer independently of Ansible."""
        return self.directory / "runner.py"

    @property
    def lock(self) -> Path:
        """Locked while an installation runs."""
        return self.directory / "lock"

    @property
    def run(self) -> Path:
        """The current or last run, with its outcome."""
        return self.directory / "run.json"

    @property
    def output(self) -> Path:
        """The installer's output."""
        return self.directory / "output.log"

    @property
    def temporary(self) -> Path:
        """The installer's directory for temporary files, in which it leaves secrets."""
        return self.directory / "tmp"

    @property
    def bundles(self) -> Path:
        return self.directory / "bundles"

    @property
    def backups(self) -> Path:
        """Of etcd."""
        return self.directory / "backups"

    @property
    def events(self) -> Path:
        """The event log of the run."""
        return RUNS / self.lab / "events.jsonl"

    @property
    def power_events(self) -> Path:
        """The event log of a stop or start."""
        return RUNS / self.lab / "power.jsonl"

    @property
    def node_events(self) -> Path:
        """The event log of changes of the cluster's nodes."""
        return self.events.with_name("nodes.jsonl")

    @property
    def nodes_lock(self) -> Path:
        """Locked while the cluster's nodes change."""
        return self.events.with_name("nodes.lock")


def lab_name(lab: str) -> str:
    """The same, if it can be one: it is used for directories and to recognise the installer's resources."""
    try:
        return cluster_name(lab)
    except ValueError as error:
        raise OperatorError(f"lab: {error}.") from error


def export_of(lab: str) -> Path:
    return STATE / LABS / lab_name(lab) / EXPORT


def paths_of(lab: str) -> Paths:
    return Paths(lab_name(lab))


POOLS = Path("/var/lib/libvirt/openshift-images")
"""Directory of the installer's pools, fixed in the installer."""
LOGS = Path("/var/log/libvirt/qemu")
