"""The broker of a lab's BMC service beside a private libvirtd: the process that may use libvirt.

broker = bmc_broker.Broker(libvirtd, directory, user=None)
broker.configure(systems=..., media=...)
broker.start()
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import processes
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from support.private_libvirtd import PrivateLibvirtd

PACKAGE = Path(__file__).parents[2] / "bmc"
AS_ITS_UNIT = {"MALLOC_ARENA_MAX": "2"}
"""What is measured without systemd takes no more memory than with it."""
# `python -m nometal_bmc.broker`, for which the load of other tests is none of its host: VMs would wait for each other.
PROGRAM = """
import runpy
from nometal_bmc.vms import starts
starts.MOST_LOAD = float("inf")
runpy.run_module("nometal_bmc.broker", run_name="__main__", alter_sys=True)
"""


@dataclass
class Broker:
    """`inside` is the directory of its files as it is seen beside libvirtd; `prefix` is what makes it another user."""

    libvirtd: PrivateLibvirtd
    inside: str
    log: Path
    user: str | None = None
    prefix: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    boot: int = 1
    """The number of the host's start; another one is another start."""

    @property
    def socket(self) -> str:
        return f"{self.inside}/broker.sock"

    def configure(self, systems: list[dict[str, str]], media: str | None, **changes: Any) -> None:
        """Replace its configuration; it looks at it every half second."""
        config = {
            "lab": "test",
            "libvirt_uri": "qemu:///system",
            "socket": self.socket,
            "user": self.user,
            "systems": systems,
            "media": media,
            **changes,
        }
        file = self.libvirtd.path(self.inside) / "broker.json"
        new = file.with_suffix(".new")
        new.write_text(json.dumps(config))
        new.replace(file)

    def start(self) -> None:
        """Return when it can be asked."""
        command = [*self.prefix, sys.executable, "-c", PROGRAM, f"{self.inside}/broker.json"]
        environment = {**os.environ, **AS_ITS_UNIT, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        environment["HOST_BOOT_ID"] = str(self.boot)
        begun = len(self.log.read_text()) if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.libvirtd.command(command), stdout=log, stderr=log, env=environment, stdin=subprocess.DEVNULL
            )
        wait_until("the broker serves", lambda: self._serves(begun), seen=self.log.read_text)

    def _serves(self, begun: int) -> bool:
        assert self.process
        assert self.process.poll() is None, f"The broker has ended:\n{self.log.read_text()}"
        return f"Serving at {self.socket}" in self.log.read_text()[begun:]

    @property
    def pid(self) -> int:
        """Of the broker itself, below what leads into the sandbox."""
        assert self.process
        return processes.python_below(self.process.pid)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            os.kill(self.pid, number)
            self.process.wait(PATIENCE)
            self.process = None
