"""Hosts on which a stand-in cluster is installed already: it is installed once, and the host's disk is kept.

with installed_lab.start(tmp_path, nodes=nodes) as lab:  # an InstallLab
    lab.follow()

The cluster has come back when it returns, as after the host was switched off and on.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import checkout, install_lab, kubectl, lab_host, lab_trees, made_lab, stand_in_mirror
from support.cache import cache_dir, made_once
from support.failures import ending
from support.install_lab import InstallLab
from support.kept_code import digest, digest_of
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from support.lab_host import LabHost

KUBECONFIG = "/var/lib/nometal/install/lab/cluster/auth/kubeconfig"
AUDIT = "/var/log/stand-in-audit.jsonl"
STAND_IN = "tests/support/stand_in"
SOURCES = [__file__, *(str(each.__file__) for each in (checkout, install_lab, kubectl, stand_in_mirror))]
"""What the cluster is installed by, beside the stand-ins and what a made lab is made by."""
FRESH_SECONDS = 6 * 3600
"""A kubelet's first certificate is valid for a day."""
LEASES = ("get", "leases.coordination.k8s.io", "--namespace=kube-node-lease", "--output=json")


@contextmanager
def start(below: Path, **spec: Any) -> Iterator[InstallLab]:
    below.mkdir(exist_ok=True)
    with start_host(**spec) as host:
        yield InstallLab(host, below, **spec)


def start_host(**spec: Any) -> LabHost:
    disks = [_disk(spec), made_lab.disk(**install_lab.small(spec))]
    return made_lab.once_up(lab_host.start(upon=disks), wait_until_up)


def wait_until_up(host: LabHost) -> None:
    """After each boot of the host: all nodes are on and heard."""
    made_lab.wait_until_up(host)
    booted = float(host.run("date +%s").stdout) - float(host.read("/proc/uptime").split()[0])
    started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(booted))

    def is_up() -> bool:
        items = _items(host, *LEASES)
        nodes = _items(host, "get", "nodes", "--output=json")
        return 0 < len(nodes) == len([item for item in items if str(item["spec"]["renewTime"]) > started])

    wait_until("the cluster is up", is_up, seen=lambda: host.run("journalctl --no-pager --lines=60").stdout)


def ask(host: LabHost, *words: str) -> str:
    """By the administrator's kubectl."""
    return host.run(["kubectl", "--kubeconfig", KUBECONFIG, *words]).stdout


def _items(host: LabHost, *words: str) -> list[Mapping[str, Any]]:
    done = host.run(["kubectl", "--kubeconfig", KUBECONFIG, *words], check=False)
    return list(json.loads(done.stdout)["items"]) if done.returncode == 0 else []


def _disk(spec: Mapping[str, Any]) -> Path:
    name = f"installed.{digest(json.dumps(spec, sort_keys=True))[:8]}"
    path = cache_dir() / "labs" / f"{name}-{_key(spec)}"
    return made_once(path, f"lab-{name}", lambda: _make(path, spec))


def _key(spec: Mapping[str, Any]) -> str:
    sources = [Path(file).read_text() for file in SOURCES]
    made_of = [made_lab.disk(**install_lab.small(spec)).name, digest_of(STAND_IN), *sources]
    return digest("\0".join([*made_of, str(int(time.time() // FRESH_SECONDS))]))[:12]


def _make(path: Path, spec: Mapping[str, Any]) -> None:
    unfinished = path.with_name(f"{path.name.rpartition('-')[0]}.making")
    shutil.rmtree(unfinished, ignore_errors=True)
    below = made_lab.disk(**install_lab.small(spec))
    with lab_host.start(upon=[below], keep=unfinished) as host, tempfile.TemporaryDirectory() as scratch:
        made_lab.wait_until_up(host)
        kubectl.install(host)
        install_lab.put_mirror(host, Path(scratch))
        lab = InstallLab(host, Path(scratch), **spec)
        lab.scenario(audit=AUDIT)
        # The second run has the BMCs know of the cluster, which lab_spec had not when they were made.
        for made in (lab.install(), lab.follow()):
            if made.returncode != 0:
                raise RuntimeError(f"The cluster for the tests could not be installed:\n{ending(made.stdout)}")
        host.switch_off()
    unfinished.rename(path)
    lab_trees.remove_outdated(path)


def answers(host: LabHost) -> bool:
    """Whether the API does."""
    return host.run(["kubectl", "--kubeconfig", KUBECONFIG, "get", "--raw", "/readyz"], check=False).returncode == 0
