"""Why a service that systemd-run is to start does not: only the journal knows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from support.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

TREE = "/srv/collections"
RESOLVER = """
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import host_server
host_server.DNSMASQ = ("/bin/sh", "-c", "echo the port is taken >&2; exit 2")
try:
    host_server._start()
except host_server.HostServerError as error:
    print(error)
"""
INSTALLER = """
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths
run.PYTHON = "/usr/bin/false"
paths = Paths("reason")
paths.directory.mkdir(parents=True)
try:
    run.start(paths, run.Plan("/bin/true", (), "/srv", {}, "4.20.3", ""))
except OperatorError as error:
    print(error)
"""
SERVICE = """
from pathlib import Path
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core import processes
unit = Path("/run/systemd/system/reason.service")
unit.write_text("[Service]\\nType=oneshot\\nExecStart=/bin/sh -c 'echo the disk is gone; exit 1'\\n")
try:
    processes.run("systemctl", "start", "reason.service")
except OperatorError as error:
    print(error)
unit.unlink()
"""


@pytest.fixture
def host(shared_lab_host: LabHost, tmp_path: Path) -> Iterator[LabHost]:
    shutil.copytree(ROOT / "plugins", tmp_path / "ansible_collections/nometal/ipi/plugins")
    shared_lab_host.copy_tree(tmp_path, TREE)
    yield shared_lab_host
    shared_lab_host.run(f"rm -r {TREE}; rm -rf /var/lib/nometal; systemctl reset-failed; systemctl daemon-reload")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (RESOLVER, "the port is taken"),
        (INSTALLER, "nometal-install-reason.service: Failed with result 'exit-code'"),
        (SERVICE, "the disk is gone"),
    ],
    ids=["the host's own name server", "the installer", "a service"],
)
def test_the_message_says_why(host: LabHost, program: str, reason: str) -> None:
    said = host.run(["env", f"PYTHONPATH={TREE}", "python3", "-c", program]).stdout
    assert reason in said
    assert "Traceback" not in said
