# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a lab's installation has its things on the host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import cluster_name

INSTALLS = Path("/var/lib/nometal/install")
RUNS = Path("/run/nometal/install")
CACHE = Path("/var/cache/nometal/installer")
KNOWN_OF_CLUSTER = (
    *(".openshift_install*", "install-config.yaml", "metadata.json", "*.ign", "rendezvousIP", ".*.new"),
    *("terraform*", ".terraform*", "cluster-api", ".clusterapi_output", "log-bundle-*", "serial-log-bundle-*"),
    *("manifests", "openshift", "tls", "auth/kubeconfig", "auth/kubeadmin-password"),
)
"""What the installer has in its directory. What else is in it, an administrator has put there, and stays."""
STAMP = "T".join("[0-9]" * digits for digits in (8, 6))
KNOWN_OF_BUNDLES = (f"*-{STAMP}Z*.tar.gz", ".*.new")
KNOWN_OF_INSTALL = (
    *(f"cluster/{name}" for name in KNOWN_OF_CLUSTER),
    *(f"bundles/{name}" for name in KNOWN_OF_BUNDLES),
    *("install-config.yaml", "secrets.json", "runner.py", "lock", "plan.json", "run.json", "output.log"),
    *("tmp", "draft", "gather", "power-cycled.json", "claimed.json", ".*.new"),
    *(".cache", ".config", ".kube", ".local"),  # the installer and oc take it for their home
)
"""What there is in a lab's directory. What else is in it is not the collection's, and stays."""
KNOWN_OF_BMC = (
    *("config.json", "credentials.json", "hashes.json", "serving", ".*.new"),
    *("state/", "state/.*", "supervisor", "supervisor.pid", "service.log*"),
    *(f"tls/{name}" for name in ("ca.pem", "ca.key", "server.pem", "server.key", ".*.new")),
)
"""What the BMC service has in its directory of a lab; the rest is not the service's. Its state is its home, in which
programs have hidden files."""
KNOWN_OF_LAB = ("lab.json", "registered", "rehearsal.html", "rehearsal.json", ".*.new")
"""In the directory of one lab, /var/lib/nometal/labs/LAB."""
KNOWN_OF_RUNS = ("events.jsonl", "tools.jsonl", "jobs")
"""And in that of its runs."""


@dataclass(frozen=True)
class Place:
    """Nearly all that lies here is secret, so the directory is root's alone."""

    lab: str

    @property
    def directory(self) -> Path:
        return INSTALLS / self.lab

    @property
    def is_in_use(self) -> bool:
        """Whether anything of the installation is there."""
        return bool(removal.found(self.directory, KNOWN_OF_INSTALL))

    @property
    def assets(self) -> Path:
        """What the installer is given as its directory."""
        return self.directory / "cluster"

    @property
    def config(self) -> Path:
        """A copy, for the installer consumes the one in its directory."""
        return self.directory / "install-config.yaml"

    @property
    def secrets(self) -> Path:
        """What else of the operator's is secret, and is not to be told by a log or a bundle."""
        return self.directory / "secrets.json"

    @property
    def log(self) -> Path:
        return self.assets / ".openshift_install.log"

    @property
    def metadata(self) -> Path:
        return self.assets / "metadata.json"

    @property
    def claimed(self) -> Path:
        """Notes of the removal where the installer's are gone: which bootstrap VMs were known by their bridges."""
        return self.directory / "claimed.json"

    @property
    def kubeconfig(self) -> Path:
        return self.assets / "auth/kubeconfig"

    @property
    def password(self) -> Path:
        return self.assets / "auth/kubeadmin-password"

    @property
    def runner(self) -> Path:
        """The program that runs the installer, whatever becomes of Ansible."""
        return self.directory / "runner.py"

    @property
    def lock(self) -> Path:
        """Held as long as something runs."""
        return self.directory / "lock"

    @property
    def run(self) -> Path:
        """What runs, or ran last, and how it ended."""
        return self.directory / "run.json"

    @property
    def output(self) -> Path:
        """What the installer printed."""
        return self.directory / "output.log"

    @property
    def temporary(self) -> Path:
        """The installer's directory for temporary files: it leaves secrets there."""
        return self.directory / "tmp"

    @property
    def bundles(self) -> Path:
        return self.directory / "bundles"

    @property
    def events(self) -> Path:
        """What there is to tell while it runs, for those who follow."""
        return RUNS / self.lab / "events.jsonl"


def place_of(lab: str) -> Place:
    """The name becomes that of a directory, and the installer's things on the host are known by it."""
    try:
        return Place(cluster_name(lab))
    except ValueError as error:
        raise OperatorError(f"lab {error}.") from error


POOLS = Path("/var/lib/libvirt/openshift-images")
"""Where the installer has its own; it cannot be told otherwise."""
LOGS = Path("/var/log/libvirt/qemu")
