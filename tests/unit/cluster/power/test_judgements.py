"""What is in the way of a stop, what will have expired, what is planned, and which backups are taken for whole."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import objects
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power import judgements
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.backup import KEPT, EtcdBackup
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import (
    MARK,
    Cluster,
    Member,
    Operator,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.stop import plan
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NOW = 1_800_000_000.0
DAY = 86400.0
MASTER, WORKER = Node("master-0", "demo-master-0", Role.CONTROL_PLANE), Node("worker-0", "demo-worker-0")
OLD = NOW - 100 * DAY
MEMBERS = [Member(MASTER, "master-0", created=OLD), Member(WORKER, "worker-0", created=OLD)]
HOSTS = [objects.BareMetalHost("master-0"), objects.BareMetalHost("worker-0", annotations={objects.PAUSED: ""})]
ARCHIVE = ("./snapshot_2026.db", "./static_kuberesources_2026.tar.gz")
# What `oc debug` prints is what the program on the node prints.
OC = """#!/usr/bin/python3
import json, pathlib, sys
here = pathlib.Path(__file__).parent
(here / "words").write_text(json.dumps(sys.argv[1:]))
sys.stderr.write("found latest kube-apiserver\\n" * 20)
sys.stdout.buffer.write((here / "archive").read_bytes())
code = int((here / "code").read_text())
if code:
    sys.stderr.write("snapshot failed: no space left on device\\n\\nerror: non-zero exit code from debug container\\n")
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("operator", "codes"),
    [
        (Operator("etcd"), []),
        (Operator("etcd", ("Progressing",)), []),
        (Operator("etcd", ("Degraded",), "one member is unhealthy"), ["stop.etcd-not-healthy"]),
        (Operator("etcd", ("Available",)), ["stop.etcd-not-healthy"]),
        (Operator("console", ("Available", "Degraded")), []),
    ],
)
def test_etcd_has_to_be_healthy(operator: Operator, codes: list[str]) -> None:
    assert [finding.code for finding in judgements.blockers(MEMBERS, [operator])] == codes


def test_the_control_plane_has_to_be_ready_and_workers_need_not() -> None:
    silent = [Member(MASTER, "master-0", ready=False), Member(WORKER, "worker-0", ready=False)]
    [finding] = judgements.blockers(silent, [])
    assert (finding.code, finding.facts) == ("stop.control-plane-not-ready", {"nodes": ["master-0"]})


@pytest.mark.parametrize(
    ("expiries", "days", "codes"),
    [
        ({}, 4, []),
        ({"csr-signer": NOW + 5 * DAY, "kube-apiserver-to-kubelet-signer": NOW + 300 * DAY}, 4, []),
        (
            {"csr-signer": NOW + 5 * DAY, "kube-apiserver-to-kubelet-signer": NOW + 300 * DAY},
            6,
            ["stop.kubelet-certificates"],
        ),
        ({"kube-apiserver-to-kubelet-signer": NOW + 3 * DAY}, 3.5, ["stop.signer"]),
        ({"kube-apiserver-to-kubelet-signer": NOW - DAY}, 0, ["stop.signer"]),
    ],
)
def test_what_expires_before_the_cluster_is_back(expiries: dict[str, float], days: float, codes: list[str]) -> None:
    found = list(judgements.warnings(MEMBERS, expiries, days, NOW))
    assert [finding.code for finding in found] == codes
    assert {finding.severity for finding in found} <= {"warning"}


def test_the_first_certificates_are_for_a_day() -> None:
    young = [MEMBERS[0], Member(WORKER, "worker-0", created=NOW - 24 * 3600)]
    [finding] = judgements.warnings(young, {}, 1, NOW)
    assert (finding.code, finding.facts["nodes"]) == ("stop.first-certificates", ["worker-0"])
    assert list(judgements.warnings(young, {}, 0, NOW)) == []


def test_what_is_planned() -> None:
    both = [MASTER, WORKER]
    steps = plan(MEMBERS, HOSTS, both, backs_up=True)
    assert [str(step) for step in steps] == [
        "back up etcd",
        "cordon master-0, worker-0",
        "drain worker-0",
        "pause master-0",
    ]
    marked = [Member(MASTER, "master-0", unschedulable=True, marked=True), Member(WORKER, "worker-0", ready=False)]
    assert [str(step) for step in plan(marked, [], both, backs_up=False)] == ["cordon worker-0"]
    off = [Member(MASTER, "master-0", unschedulable=True), Member(WORKER, "worker-0", unschedulable=True)]
    assert plan(off, HOSTS[1:], [MASTER], backs_up=False) == []


CORDON: dict[str, Any] = {"f:spec": {"f:unschedulable": {}}}
ANNOTATION: dict[str, Any] = {"f:metadata": {"f:annotations": {f"f:{MARK}": {}}}}


@pytest.mark.parametrize(
    ("unschedulable", "managed", "marked"),
    [
        (True, [], True),
        (None, [], False),
        (True, [{**CORDON, **ANNOTATION}, {"f:spec": {"f:taints": {}}}], True),
        (True, [ANNOTATION, CORDON], False),
        (True, [{**CORDON, "f:metadata": {"f:labels": {}}}], False),
    ],
)
def test_a_mark_that_others_have_left_is_none(
    unschedulable: bool | None, managed: list[Any], marked: bool, tmp_path: Path
) -> None:
    """`oc adm uncordon` leaves the annotation, also when others cordon the node again."""
    managers = [{"manager": f"m{number}", "fieldsV1": fields} for number, fields in enumerate(managed)]
    metadata = {"name": "worker-0", "annotations": {MARK: ""}, "managedFields": managers}
    node = {"metadata": metadata, "spec": {"unschedulable": unschedulable}}

    class Api(Client):
        def listed(self, _path: str) -> list[Mapping[str, Any]]:
            return [node]

    [member] = Cluster(Api(tmp_path, tmp_path, tmp_path), [WORKER]).members()
    assert member.marked is marked


class Oc:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        program = directory / "oc"
        program.write_text(OC)
        program.chmod(0o755)
        self.backup = EtcdBackup(Client(program, directory / "kubeconfig", directory), directory / "backups")

    def says(self, *names: str, code: int = 0) -> None:
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name))
        (self.directory / "archive").write_bytes(whole.getvalue() if names else b"no archive")
        (self.directory / "code").write_text(str(code))

    def kept(self) -> list[str]:
        return sorted(path.name for path in (self.directory / "backups").iterdir())


def test_a_backup_is_kept_for_root_alone(tmp_path: Path) -> None:
    oc = Oc(tmp_path / "oc")
    oc.says(*ARCHIVE)
    backups = oc.directory / "backups"
    backups.mkdir()
    for number in range(KEPT):
        (backups / f"etcd-2020010{number}T000000Z.tar").touch()
    (backups / ".etcd-20200109T000000Z.tar.new").touch()
    path = oc.backup.take("master-0")
    assert path.startswith(str(backups / "etcd-2"))
    assert (backups.stat().st_mode & 0o777, (backups / path).stat().st_mode & 0o777) == (0o700, 0o600)
    with tarfile.open(path) as archive:
        assert tuple(archive.getnames()) == ARCHIVE
    assert len(oc.kept()) == KEPT  # without the half of a run that was killed
    assert "etcd-20200100T000000Z.tar" not in oc.kept()
    words = json.loads((oc.directory / "words").read_text())
    command = words.index("--")
    assert words[command - 4 : command] == ["debug", "--quiet", "--as-root", "node/master-0"]
    assert words[command + 1 : command + 3] == ["chroot", "/host"]  # no option of ours is behind it
    assert "cluster-backup.sh" in words[-1]


@pytest.mark.parametrize(("names", "code"), [((), 0), (ARCHIVE[:1], 0), (ARCHIVE, 1)])
def test_half_a_backup_is_none(tmp_path: Path, names: tuple[str, ...], code: int) -> None:
    oc = Oc(tmp_path / "oc")
    oc.says(*names, code=code)
    with pytest.raises(OperatorError, match="no space left on device" if code else "is not complete"):
        oc.backup.take("master-0")
    assert oc.kept() == []
