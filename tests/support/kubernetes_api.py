"""A small Kubernetes API on loopback, for tests of what talks to a cluster.

with kubernetes_api.start(tmp_path) as api:
    api.store.create("nodes", {"metadata": {"name": "worker-0"}})
    api.kubectl("get", "nodes")  # the administrator's; api.kubeconfig is the file
    api.server.audit.changes()
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support import kubectl
from support.stand_in import pki
from support.stand_in.kubernetes.server import VERSION, Server
from support.stand_in.kubernetes.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ADDRESS = "127.0.0.1"
ADMINISTRATORS = ("system:masters",)


@dataclass
class KubernetesApi:
    store: Store
    server: Server
    directory: Path
    kubeconfig: Path
    """The administrator's."""
    program: Path
    """A kubectl."""
    authority: pki.Pair

    def kubectl(
        self, *words: str, stdin: str | None = None, check: bool = True, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*words, kubeconfig=kubeconfig), input=stdin, check=False, text=True, **self.run
        )
        assert not check or done.returncode == 0, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done

    def command(self, *words: str, kubeconfig: Path | None = None) -> list[str]:
        return [str(self.program), f"--kubeconfig={kubeconfig or self.kubeconfig}", *words]

    @property
    def run(self) -> dict[str, Any]:
        """With a home of its own, where kubectl keeps what it has discovered."""
        return {"env": {"HOME": str(self.directory), "PATH": os.environ["PATH"]}, "capture_output": True}

    def json(self, *words: str) -> Any:
        return json.loads(self.kubectl(*words, "-o", "json").stdout)

    def kubeconfig_of(self, user: str, groups: Sequence[str]) -> Path:
        path = self.directory / f"kubeconfig-{user.replace(':', '-')}"
        own = pki.issue(self.authority, user, groups=groups)
        path.write_text(pki.kubeconfig(self.authority, own, ADDRESS, ADDRESS, self.server.port))
        path.chmod(0o600)
        return path


@contextmanager
def start(
    directory: Path, *, suite: str = kubectl.NEWEST, version: str = VERSION, store: Store | None = None
) -> Iterator[KubernetesApi]:
    """`suite`: the Debian release that kubectl is of."""
    directory.mkdir(exist_ok=True)
    authority = pki.authority("kube-apiserver-lb-signer")
    store = store or Store()
    own = pki.issue(authority, "kube-apiserver", [ADDRESS, "localhost"])
    with Server(store, ADDRESS, own, authority.certificate, version=version) as server:
        program = kubectl.program(suite)
        api = KubernetesApi(store, server, directory, directory, program, authority)
        api.kubeconfig = api.kubeconfig_of("system:admin", ADMINISTRATORS)
        yield api
