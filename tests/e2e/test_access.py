"""The ways into a lab, by the commands of docs/access.md. That to a cluster is in test_install.py."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest
from support import documentation, made_lab, socks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

BMCS = "/var/lib/nometal/bmc/rehearsal"


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with made_lab.start() as started:
        yield started


def documented(beginning: str) -> list[str]:
    """The command that begins so, for the lab of the test."""
    page = documentation.pages()["docs/access.md"]
    [command] = re.findall(rf"^    ({re.escape(beginning)}.*)", page, re.MULTILINE)
    return [word.replace("/ha/", "/rehearsal/") for word in shlex.split(command, comments=True)]


def with_password(host: LabHost, command: list[str]) -> list[str]:
    """Which curl would ask for."""
    password = json.loads(host.read(f"{BMCS}/credentials.json"))["operator"]["password"]
    at = command.index("--user") + 1
    return [*command[:at], f"{command[at]}:{password}", *command[at + 1 :]]


def test_the_bmcs_answer_on_a_laptop_through_the_proxy(host: LabHost, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(host.read(f"{BMCS}/tls/ca.pem"), encoding="utf-8")
    command = with_password(host, documented("curl --proxy"))
    assert documented("ssh -N -D")[:4] == ["ssh", "-N", "-D", "1080"]
    assert len(json.loads(socks.run(host, tmp_path, command))["Members"]) == 4


def test_the_files_that_are_named_are_there(host: LabHost) -> None:
    host.run("virsh start rehearsal-worker-0")
    [_less, _follow, console] = documented("less +F")
    assert host.run(["test", "-e", console.replace("ha-worker-0", "rehearsal-worker-0")])
    host.run(["test", "-e", documented("curl --cacert")[2]])
    host.run("virsh destroy rehearsal-worker-0")
