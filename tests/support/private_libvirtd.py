"""A libvirtd of its own, on this machine's files, in a second: for tests of modules, which need no whole host.

with private_libvirtd.start() as libvirtd:
    libvirtd.run(["virsh", "net-list"])
    connection = libvirt.open(libvirtd.uri)
"""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support import processes, sandbox
from support.failures import CommandFailed
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from support.sandbox import Sandbox

KIND = "nometal-ipi-libvirtd"
INIT = Path(__file__).with_name("private_libvirtd_init.py")


@dataclass(frozen=True)
class PrivateLibvirtd:
    """A running private libvirtd."""

    sandbox: Sandbox

    @property
    def uri(self) -> str:
        """For clients outside of the sandbox, such as libvirt-python in the test itself."""
        return f"qemu:///system?socket={self.path('/run/libvirt/libvirt-sock')}"

    def path(self, inside: str) -> Path:
        """A path inside as seen from the test: /var/lib/libvirt and the like are the sandbox's own."""
        return self.sandbox.path(inside)

    @property
    def network(self) -> str:
        return f"/proc/{self.sandbox.init}/ns/net"

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command beside libvirtd: in its network, with this machine's other files."""
        namespaces = ["--mount", "--net", "--pid", f"--wd={Path.cwd()}"]
        return sandbox.entering(self.sandbox.init, namespaces, command)

    def run(
        self,
        command: Sequence[str],
        *,
        check: bool = True,
        timeout: float = 120,
        input: str | None = None,  # noqa: A002 - as in subprocess.run
    ) -> subprocess.CompletedProcess[str]:
        """Run a command beside libvirtd. When it hits the time limit, it is killed."""
        done = subprocess.run(
            self.command(command), check=False, timeout=timeout, text=True, capture_output=True, input=input
        )
        if check and done.returncode != 0:
            raise CommandFailed(shlex.join(command), done.returncode, done.stdout + done.stderr)
        return done

    def kill(self) -> None:
        """As if it had crashed: SIGKILL. Guests go on running; `boot` starts it again."""
        for pid in self._daemons():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until("it has ended", lambda: not self._daemons())

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """It answers nobody meanwhile, and goes on afterwards."""
        daemons = self._daemons()
        for pid in daemons:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in daemons:
                os.kill(pid, signal.SIGCONT)

    def boot(self) -> None:
        """Start it and wait until it answers."""
        self.run(["libvirtd", "--daemon", "--pid-file", "/run/libvirt/libvirtd.pid"])
        self.wait_ready()

    def restart(self) -> None:
        self.kill()
        self.boot()

    def wait_ready(self) -> None:
        ask = ["virsh", "--quiet", "--connect", "qemu:///system", "uri"]
        wait_until("libvirtd answers", lambda: self.run(ask, check=False).returncode == 0, seen=self.sandbox.log)

    def destroy(self) -> None:
        self.sandbox.stop()

    def _daemons(self) -> list[int]:
        own = processes.descendants(self.sandbox.init)
        return [pid for pid in own if processes.status(pid).get("Name") == "libvirtd"]

    def __enter__(self) -> PrivateLibvirtd:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()


def start(*, kvm: str = "absent") -> PrivateLibvirtd:
    """Start one and wait until it answers. It ends with this process at the latest.

    kvm: "absent", or "machine" for this machine's /dev/kvm with the group and mode that udev would give it.
    """
    init = ["unshare", "--net", sys.executable, str(INIT)]
    box = sandbox.start(KIND, f"libvirtd-{secrets.token_hex(4)}", {"kvm": kvm}, init, owner=os.getpid())
    libvirtd = PrivateLibvirtd(box)
    try:
        libvirtd.wait_ready()
    except BaseException:
        libvirtd.destroy()
        raise
    return libvirtd
