# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's API by the client that is on the host: oc of the installer's tools, or any oc or kubectl.

Objects go in by standard input, so no secret is in an argument.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError, error_of, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import IO

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

REQUEST_SECONDS = 10
ANSWER_SECONDS = 60
"""Of a whole command, which may make several requests."""
END_OF_OPTIONS = "--"
LAST_LINES = 3
FIELD_MANAGER = "nometal.ipi"
MANAGER = f"--field-manager={FIELD_MANAGER}"
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NOT_EVICTED = re.compile(r'error when evicting pods?/"(?P<pod>[^"]+)"(?: -n "(?P<namespace>[^"]+)")?[^:]*: (?P<why>.*)')
NOT_DRAINED = re.compile(r"drain did not complete|timed out|timeout reached|unable to drain node")
OF_SILENT_NODES = ["--skip-wait-for-delete-timeout=1", "--grace-period=1"]
"""As the machine controller drains them. PodDisruptionBudgets count."""
MACHINE_API = "openshift-machine-api"


@dataclass(frozen=True)
class Client:
    program: Path
    kubeconfig: Path
    home: Path
    """Where the program keeps what it has read of the API, a directory of the lab's."""

    def get(
        self, kind: str, name: str = "", namespace: str = "", selector: str = "", *, all_namespaces: bool = False
    ) -> list[Mapping[str, Any]]:
        """What is not there is no error. Kind: the full name; several are separated by commas."""
        words = ["get", kind, *([name] if name else []), "--output=json", "--ignore-not-found"]
        words += [f"--selector={selector}"] if selector else []
        words += ["--all-namespaces"] if all_namespaces else []
        said = self._of(namespace, words)
        return self._items_of(said) if said.strip() else []

    def listed(self, path: str) -> list[Mapping[str, Any]]:
        """All that the API has there, with what `get` leaves out: who manages which field."""
        return self._items_of(self.run("get", "--raw", path))

    def _items_of(self, said: str) -> list[Mapping[str, Any]]:
        try:
            answer = json.loads(said)
            return list(answer["items"]) if answer["kind"].endswith("List") else [answer]
        except (ValueError, TypeError, KeyError) as error:
            raise ApiError("other", f"The cluster's API: {self.program.name} does not answer with JSON.") from error

    def apply(self, objects: Sequence[Mapping[str, Any]], *, force: bool = False) -> None:
        """Fields that another has set are a conflict, unless forced."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        options = ["--server-side", MANAGER, "--validate=false"]
        options += ["--force-conflicts"] if force else []
        self.run("apply", "--filename=-", *options, stdin=json.dumps(listed))

    def patch(self, kind: str, name: str, namespace: str, change: Any, *, merge: bool = True) -> None:
        """A merge patch, or else a JSON patch. It is an argument: whatever is secret is applied instead."""
        if kind.startswith("secret") and "data" in str(change).replace("metadata", "").lower():
            raise ValueError("what a Secret holds is applied, not patched")
        form = "merge" if merge else "json"
        self._of(namespace, ["patch", kind, name, f"--type={form}", f"--patch={json.dumps(change)}", MANAGER])

    def annotate(self, kind: str, name: str, namespace: str, annotations: Mapping[str, str | None]) -> None:
        """Whose value is None is removed."""
        self.patch(kind, name, namespace, {"metadata": {"annotations": dict(annotations)}})

    def scale(self, kind: str, name: str, namespace: str, replicas: int) -> None:
        self._of(namespace, ["scale", kind, name, f"--replicas={replicas}"])

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Does not wait until it is gone."""
        self._of(namespace, ["delete", kind, name, "--wait=false", "--ignore-not-found"])

    def cordon(self, node: str) -> None:
        self._administer("cordon", node)

    def uncordon(self, node: str) -> None:
        self._administer("uncordon", node)

    def drain(self, node: str, seconds: int, *, is_silent: bool = False) -> list[str]:
        """What was still there in the end, and why; nothing when the node is drained.

        Of a node that is silent, pods are not waited for that are Terminating: its kubelet would have to end them.
        """
        options = ["--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={seconds}s"]
        options += OF_SILENT_NODES if is_silent else []
        done = self._done([*self._administration, "drain", node, *options], seconds + ANSWER_SECONDS)
        if not done.returncode:
            return []
        blocked = [found for line in done.stderr.splitlines() if (found := NOT_EVICTED.search(line))]
        if not blocked and not NOT_DRAINED.search(done.stderr):
            raise error_of(done.stderr)
        pods: dict[str, str] = {}
        for found in blocked:  # each pod several times: the last reason is that the time is over
            pods.setdefault(f"{found['namespace'] or 'default'}/{found['pod']}", shown(found["why"]).rstrip("."))
        return [f"{pod}: {why}" for pod, why in pods.items()] or [str(error_of(done.stderr))]

    def approve(self, requests: Sequence[str]) -> None:
        if requests:
            self._administer("certificate", "approve", *requests)

    def run(self, *words: str, stdin: str | None = None, seconds: float = ANSWER_SECONDS) -> str:
        done = self._done(words, seconds, stdin)
        if done.returncode:
            raise error_of(done.stderr or done.stdout)
        return done.stdout

    def execute(self, pod: str, namespace: str, container: str, *words: str, may_fail: bool = False) -> str:
        """A program in a container of a pod; what it has said although it failed, if it may and has said anything."""
        place = [pod, f"--namespace={namespace}", f"--container={container}"]
        done = self._done(["exec", *place, END_OF_OPTIONS, *words], ANSWER_SECONDS)
        if done.returncode and not (may_fail and done.stdout.strip()):
            raise error_of(done.stderr or done.stdout)
        return done.stdout

    def copy_output(self, *words: str, to: IO[bytes], seconds: float) -> None:
        """What a command prints, into a file."""
        done = self._done(words, seconds, to=to)
        if done.returncode:  # the first lines may be about progress, and the very last one only that there was an error
            said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise error_of("; ".join(said[-LAST_LINES:]))

    def _of(self, namespace: str, words: Sequence[str]) -> str:
        return self.run(*words, *([f"--namespace={namespace}"] if namespace else []))

    def _administer(self, *words: str) -> None:
        self.run(*self._administration, *words)

    @property
    def _administration(self) -> Sequence[str]:
        return ["adm"] if self.program.name == "oc" else []

    def _done(
        self, words: Sequence[str], seconds: float, stdin: str | None = None, to: IO[bytes] | None = None
    ) -> subprocess.CompletedProcess[str]:
        # What runs elsewhere may take as long as it does, and the command ends with words for it.
        is_of_others = to is not None or END_OF_OPTIONS in words
        options = [f"--kubeconfig={self.kubeconfig}", f"--request-timeout={0 if is_of_others else REQUEST_SECONDS}s"]
        try:
            # Nothing else of the environment: it may name a proxy, but the lab's network is on this host.
            return subprocess.run(
                [str(self.program), *([*options, *words] if is_of_others else [*words, *options])],
                check=False,
                stdout=to or subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={"PATH": SEARCHED, "HOME": str(self.home)},
                cwd=self.home,
                timeout=seconds,
                umask=0o077,
                **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
            )
        except subprocess.TimeoutExpired as error:
            said = f"The cluster's API: no answer to `{self.program.name} {words[0]}` in {seconds:.0f} seconds"
            raise ApiError("unreachable", said) from error
        except OSError as error:
            raise ApiError("other", f"{self.program} does not run on this host: {error.strerror or error}.") from error


def client_of(paths: Paths, tools: str | None = None) -> Client | None:
    """Tools: the directory of the installer's. None without a client on the host, or without a cluster."""
    return client_with(paths.kubeconfig, paths.directory, tools)


def client_with(kubeconfig: Path, home: Path, tools: str | None = None) -> Client | None:
    found = shutil.which("oc", path=tools) if tools else None
    found = found or shutil.which("oc", path=SEARCHED) or shutil.which("kubectl", path=SEARCHED)
    return Client(type(home)(found), kubeconfig, home) if found and kubeconfig.exists() else None
