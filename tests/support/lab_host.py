"""A lab host: a fresh Debian with systemd (or without) that costs a second, and of which nothing remains.

with lab_host.start(layer="prepared") as host:
    host.run("virsh list --all")
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Union

from support import kept_code, lab_ssh, lab_trees, processes, rehearsal_image, sandbox, wheels
from support.cache import cache_dir
from support.failures import CommandFailed
from support.sandbox import Sandbox, SandboxError
from support.street import Street, house_address
from support.waiting import wait_until

if TYPE_CHECKING:
    from types import TracebackType

KIND = "nometal-ipi-lab-host"
KEEPER = Path(__file__).with_name("lab_keeper.py")
COMMAND_LINE = Path(__file__).parents[1] / "labhost"
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}

Command = Union[str, Sequence[str]]


@dataclass(frozen=True)
class LabHost:
    """A running lab host."""

    sandbox: Sandbox

    @property
    def name(self) -> str:
        """Unique on this machine; its own hostname may be another."""
        return self.sandbox.name

    @property
    def facts(self) -> dict[str, Any]:
        return self.sandbox.facts

    @property
    def address(self) -> str:
        """Its address on the street."""
        return house_address(self.facts["number"])

    @property
    def root(self) -> Path:
        """Its disk, seen from here. Mind that an absolute link in it would lead to this machine's files."""
        return self.sandbox.path(f"{self.facts['place']}/root")

    @property
    def leader(self) -> int:
        """This machine's number for the host's first process; 0 while it is down. Another one after each boot."""
        own = (pid for pid in processes.descendants(self.sandbox.init) if processes.is_namespace_init(pid))
        return next(own, 0)

    def enter(self, command: Sequence[str]) -> list[str]:
        """The command line which, on this machine, runs a command in the host."""
        environment = [f"{key}={value}" for key, value in _ENVIRONMENT.items()]
        return sandbox.entering(self._up(), ["--all"], ["env", "-i", *environment, *command])

    def run(
        self,
        command: Command,
        *,
        check: bool = True,
        timeout: float = 120,
        input: str | None = None,  # noqa: A002 - as in subprocess.run
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root; a string is for the shell.

        What it leaves in the background must not keep its output open.
        """
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        done = subprocess.run(
            self.enter(words), check=False, timeout=timeout, text=True, capture_output=True, input=input
        )
        if check and done.returncode != 0:
            shown = command if isinstance(command, str) else shlex.join(command)
            raise CommandFailed(f"{self.name}: {shown}", done.returncode, done.stdout + done.stderr)
        return done

    def read(self, path: str) -> str:
        return self.run(["cat", path]).stdout

    def write(self, path: str, text: str, mode: str = "0644") -> None:
        script = 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1"'
        self.run(["sh", "-ec", script, "-", path, mode], input=text)

    def copy_tree(self, source: Path, target: str, exclude: Sequence[str] = ()) -> None:
        """Copy a directory of this machine to `target` in the host, links as links."""
        pack = ["tar", "-C", str(source), *(f"--exclude={name}" for name in exclude), "-cf", "-", "."]
        unpack = self.enter(["sh", "-ec", 'mkdir -p "$1"; exec tar -C "$1" --no-same-owner -xf -', "-", target])
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
            subprocess.run(unpack, stdin=packing.stdout, check=True)
        if packing.returncode != 0:
            raise CommandFailed(shlex.join(pack), packing.returncode, f"{source} could not be read whole.")

    def reboot(self) -> None:
        """As an operator does it: services are stopped. Returns when the host is ready again."""
        if self.facts["init"] == "none":
            self.kill()
            return
        before = self._up()
        self.run("systemctl reboot", check=False)
        self._wait_until("it reboots", lambda: self.leader not in (0, before))
        self.wait_ready()

    def kill(self) -> None:
        """A power cut: everything in it is gone at once. It is then switched on again, with the same disk."""
        before = self._up()
        os.kill(before, 9)
        self._wait_until("it boots after the power cut", lambda: self.leader not in (0, before))
        self.wait_ready()

    def switch_off(self) -> None:
        """As an operator does it, and for good. Returns when its disk is kept, if it is to be."""
        self.run("systemctl poweroff", check=False)
        self.sandbox.wait_for_its_end()

    def destroy(self) -> None:
        self.sandbox.stop()

    def wait_ready(self) -> None:
        """systemd has started what it wanted to start; a failed unit does not count against it."""
        # Without systemd, the first process is there a moment before it becomes what it is to be.
        started = "grep -q nspawn /proc/1/comm || echo running"
        ask = "systemctl is-system-running" if self.facts["init"] == "systemd" else started

        def ready() -> bool:
            with suppress(CommandFailed, SandboxError):
                return self.run(ask, check=False).stdout.strip() in ("running", "degraded")
            return False

        self._wait_until("its first process runs", lambda: bool(self.leader))
        self._wait_until("it is ready", ready)

    def ssh_config(self) -> Path:
        """A file for `ssh -F`, with an entry of the host's name. It lives in the host's sandbox and ends with it."""
        path = self.sandbox.path(f"{self.facts['place']}/ssh_config")
        if not path.exists():
            connect = shlex.join([sys.executable, str(COMMAND_LINE), "connect", self.name])
            path.write_text(lab_ssh.client_config(self.name, connect))
        return path

    def inventory_variables(self) -> dict[str, object]:
        return lab_ssh.inventory_variables(self.ssh_config(), self.name)

    def inventory(self, alias: str = "lab_host") -> Path:
        """An inventory file with this host under the given name. Like the ssh configuration it ends with the host."""
        path = self.sandbox.path(f"{self.facts['place']}/{alias}.yml")
        path.write_text(json.dumps({"all": {"hosts": {alias: self.inventory_variables()}}}, indent=2) + "\n")
        return path

    def log(self) -> str:
        """What its console has shown."""
        return self.sandbox.log()

    def _up(self) -> int:
        leader = self.leader
        if not leader:
            raise SandboxError(f"The lab host {self.name} is not up. Its console:\n{self.log()[-4000:]}")
        return leader

    def _wait_until(self, what: str, condition: Callable[[], bool]) -> None:
        def console() -> str:
            return f"The console of lab host {self.name}:\n{self.log()[-4000:]}"

        def so_while_it_runs() -> bool:
            if condition():
                return True
            if not self.sandbox.alive():
                raise SandboxError(f"It has ended before {what}. {console()}")
            return False

        wait_until(what, so_while_it_runs, seen=console)

    def __enter__(self) -> LabHost:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()


def start(  # noqa: PLR0913 - by keyword, and mostly left out
    *,
    name: str | None = None,
    suite: str = "bookworm",
    layer: str = "prepared",
    init: str = "systemd",
    kvm: str = "absent",
    mirror: bool = False,
    hostname: str = "lab",
    disk: str = "8G",
    street: Street | None = None,
    number: int = 10,
    owner: int | None = -1,
    upon: Sequence[Path] = (),
    keep: Path | None = None,
    compiled: bool | None = None,
) -> LabHost:
    """Start a lab host and wait until it is ready.

    init: "systemd", or "none" for a host without. kvm: "absent", or "machine" for this machine's.
    mirror: apt and pip reach this machine's package registries. disk: the size of the disk, which is memory.
    street, number: hosts on one street see each other, each with its own number (10 to 250).
    owner: the process with which it ends; this one unless told; None: it lives until destroy().
    compiled: it keeps the compiled code of modules (kept_code), which a new user's host does not; all but bare ones do.
    keep: where what it has changed on its disk is to be kept when it is switched off; another host starts `upon` it,
    and upon what was kept below it.
    """
    name = name or f"lab-{secrets.token_hex(4)}"
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", hostname):
        raise ValueError(f"{hostname!r} is no hostname: letters, digits and hyphens.")
    if find(name):
        raise SandboxError(f"A lab host named {name} is already running.")
    facts = _facts(suite, layer) | {"init": init, "kvm": kvm, "mirror": mirror, "hostname": hostname, "disk": disk}
    facts["trees"] = [str(tree) for tree in (*upon, *trees(suite, layer, mirror=mirror))]
    if layer != "bare" and not mirror:
        facts["wheels"] = str(wheels.directory(suite, lambda: start(suite=suite, mirror=True)))
    if compiled or (compiled is None and layer != "bare"):
        facts["compiled"] = str(kept_code.compiled())
    if keep:
        facts["keep"] = str(keep)
    own_street = street or Street()
    in_use = [lab_trees.in_use(Path(tree)) for tree in facts["trees"]]
    try:
        facts |= {"number": number, "street": own_street.fd}
        fds = [own_street.fd, *in_use]
        keeper = [sys.executable, str(KEEPER)]
        box = sandbox.start(KIND, name, facts, keeper, owner=os.getpid() if owner == -1 else owner, keep_fds=fds)
    finally:
        for descriptor in in_use:
            os.close(descriptor)
        if street is None:
            own_street.close()  # the host has it open
    return _once_ready(LabHost(box))


def trees(suite: str = "bookworm", layer: str = "prepared", *, mirror: bool = False) -> list[Path]:
    """What a host's disk is made of, the topmost first, made first if need be."""
    below = [lab_trees.tree(suite, layer)]
    if layer == "bare" or mirror:
        return below
    return [rehearsal_image.tree(suite, lambda: start(suite=suite, mirror=True)), *below]


def _facts(suite: str, layer: str) -> dict[str, Any]:
    place = cache_dir() / "mnt"
    place.mkdir(exist_ok=True)
    return {
        "suite": suite,
        "layer": layer,
        "packages": str(lab_trees.kept_packages(suite)),
        "place": str(place),
        "identity": str(lab_ssh.identity()),
    }


def _once_ready(host: LabHost) -> LabHost:
    try:
        host.wait_ready()
    except BaseException:
        host.destroy()
        raise
    return host


def running() -> Iterator[LabHost]:
    return (LabHost(box) for box in sandbox.running(KIND))


def find(name: str) -> LabHost | None:
    return next((host for host in running() if host.name == name), None)
