"""A process tree with its own mounts and process numbers, which ends with its owner, however the owner ends.

Three processes hold it:
- the watcher (sandbox_watcher.py) waits for the owner's end by a pidfd, so it notices SIGKILL too;
- unshare is killed by the kernel when the watcher ends, however that ends;
- init, first in the new pid namespace, is killed by the kernel when unshare ends, and everything in it with init.
Mounts exist in the private mount namespace only, so they go with the last process.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import processes
from support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WATCHER = Path(__file__).with_name("sandbox_watcher.py")
# Children must be waited for by the process that started them; a sandbox found by name has another parent.
_started: dict[int, subprocess.Popen[bytes]] = {}
# What was used in sandboxes that have ended: nothing in them is left for their parents to wait for.
cpu_seconds = [0.0]


class SandboxError(Exception):
    """A sandbox did not start, or is gone."""


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox. It can be found again by kind and name, from any process."""

    kind: str
    name: str
    facts: dict[str, Any]
    watcher: int
    init: int

    def path(self, inside: str) -> Path:
        """A path in the sandbox's mounts, as seen from here."""
        return Path(f"/proc/{self.init}/root{inside}")

    def log(self) -> str:
        """What the sandbox's own processes have printed."""
        return _read_log(f"/proc/{self.watcher}/fd/1")

    def alive(self) -> bool:
        return processes.is_namespace_init(self.init)

    def wait_for_its_end(self) -> None:
        """Where what runs in it comes to an end by itself."""
        code = _started[self.watcher].wait(PATIENCE)
        if code != 0:
            raise SandboxError(f"{self.kind} {self.name} ended with {code}.")

    def stop(self) -> None:
        """End everything in it and wait until it is gone."""
        started = _started.pop(self.watcher, None)
        if started and started.returncode is not None:
            return  # it has been waited for, and its number may be another's by now
        with suppress(ProcessLookupError):
            watcher = os.pidfd_open(self.watcher)
            cpu_seconds[0] += sum(map(processes.cpu_seconds, processes.inside(self.watcher)))
            try:
                signal.pidfd_send_signal(watcher, signal.SIGTERM)
                select.select([watcher], [], [], 30)
            finally:
                os.close(watcher)
        if started:
            started.wait()


def start(  # noqa: PLR0913 - few callers, and names say what is what
    kind: str,
    name: str,
    facts: dict[str, Any],
    init: Sequence[str],
    *,
    owner: int | None = None,
    keep_fds: Sequence[int] = (),
) -> Sandbox:
    """Run `init`, which gets the facts as its last argument, and wait until it writes to the descriptor $READY_FD.

    Without an owner it lives until stop() is called.
    """
    ready, ready_writer = os.pipe()
    with tempfile.TemporaryFile() as log:  # without a name: nothing to leave behind
        words = [kind, name, json.dumps(facts)]
        watcher = _watch(words, [*init, words[2]], owner, log.fileno(), ready_fd=ready_writer, keep_fds=keep_fds)
    os.close(ready_writer)
    _started[watcher.pid] = watcher
    return _once_ready(Sandbox(kind, name, facts, watcher.pid, 0), ready)


def call(kind: str, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Run a command that ends by itself. Its output is for the caller to read."""
    return _watch([kind, name, "{}"], command, os.getpid(), subprocess.PIPE)


def _watch(  # noqa: PLR0913 - likewise
    words: Sequence[str],
    command: Sequence[str],
    owner: int | None,
    output: int,
    *,
    ready_fd: int = -1,
    keep_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    owner_fd = -1 if owner is None else os.pidfd_open(owner)
    try:
        return subprocess.Popen(
            [sys.executable, str(WATCHER), *words, str(owner_fd), str(ready_fd), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[fd for fd in (owner_fd, ready_fd, *keep_fds) if fd >= 0],
            start_new_session=True,  # an interrupt from the keyboard is for the owner to handle
            cwd="/",
            env={**os.environ, "READY_FD": str(ready_fd)},
        )
    finally:
        if owner_fd >= 0:
            os.close(owner_fd)


def _once_ready(starting: Sandbox, ready: int) -> Sandbox:
    with os.fdopen(ready, "rb") as pipe:
        if pipe.read(1):
            return _with_init(starting)
    log = starting.log()
    starting.stop()
    raise SandboxError(f"{starting.kind} {starting.name} did not start:\n{log}")


def entering(target: int, namespaces: Sequence[str], command: Sequence[str]) -> list[str]:
    """The command line that runs a command in the namespaces of a process, and ends it when it is itself ended.

    A shell waits for it, because nsenter would stop when the command is stopped, as every process is in a shutdown, and
    then for good: an unreaped process for which the shutdown waits.
    """
    wait = ["sh", "-c", '"$@"; exit "$?"', "-"]
    return [
        "nsenter",
        "--no-fork",
        f"--target={target}",
        *namespaces,
        *wait,
        "setpriv",
        "--pdeathsig",
        "KILL",
        *command,
    ]


def running(kind: str) -> Iterator[Sandbox]:
    """All sandboxes of a kind on this machine, whoever started them."""
    for pid in processes.all_pids():
        words = processes.command_line(pid)
        if len(words) > 5 and Path(words[1]).name == WATCHER.name and words[2] == kind:
            with suppress(SandboxError):
                yield _with_init(Sandbox(kind, words[3], json.loads(words[4]), pid, 0))


def _with_init(sandbox: Sandbox) -> Sandbox:
    for pid in processes.descendants(sandbox.watcher):
        if processes.is_namespace_init(pid):
            return Sandbox(sandbox.kind, sandbox.name, sandbox.facts, sandbox.watcher, pid)
    raise SandboxError(f"{sandbox.kind} {sandbox.name} has ended:\n{sandbox.log()}")


def _read_log(path: str) -> str:
    with suppress(OSError), Path(path).open("rb") as file:
        return file.read().decode(errors="replace")
    return ""
