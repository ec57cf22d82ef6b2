"""The stand-in's controllers beside a private libvirtd, without an installation: a process there, asked from the test.

with stand_in_controllers.start(libvirtd, (4, 21)) as cluster:
    cluster.store("create", "baremetalhosts.metal3.io", {...})
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

INFRA_ID = "one-x7k2p"
PROGRAM = "support.stand_in_controllers_program"


class Cluster:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def store(self, method: str, *arguments: Any) -> Any:
        """A method of the Store, by its name."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([method, arguments]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def status(self, kind: str, name: str) -> dict[str, Any]:
        found = [item for item in self.store("list", kind) if item["metadata"]["name"] == name]
        return dict(found[0].get("status") or {}) if found else {}


@contextmanager
def start(libvirtd: PrivateLibvirtd, release: tuple[int, int]) -> Iterator[Cluster]:
    tests = Path(__file__).parents[1]
    command = ["env", f"PYTHONPATH={tests}", sys.executable, "-m", PROGRAM, INFRA_ID, *map(str, release)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        libvirtd.command(command), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        yield Cluster(process)
        assert process.stdin
        process.stdin.close()  # it ends with what it is asked
