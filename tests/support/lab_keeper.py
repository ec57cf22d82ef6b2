"""The first process of a lab host's sandbox: lays out the disk and boots it again and again until it is switched off.

Its argument is the facts that lab_host.start() has put together. It uses nothing but Python's own library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import kept_code, lab_mirror, street, wheels

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORTEST_LIFE = 0.1  # seconds
DISK = "disk"
NSPAWN = [
    "systemd-nspawn",
    "--quiet",
    "--register=no",
    "--keep-unit",
    "--settings=no",
    "--link-journal=no",
    "--resolv-conf=off",
    "--timezone=off",
    "--console=read-only",
    "--capability=all",
    "--drop-capability=CAP_SYS_MODULE",  # modules are the machine's
    "--bind=/dev/net/tun",
]


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def lay_out(facts: dict[str, Any], place: Path) -> Path:
    """A writable copy of the tree that is all in memory, in this mount namespace only."""
    run("mount", "-t", "tmpfs", "-o", f"mode=755,size={facts['disk']}", "tmpfs", str(place))
    root = place / "root"
    root.mkdir()
    cover(":".join(facts["trees"]), root, place / DISK)
    if facts["mirror"]:  # what the bench has downloaded before needs no second download
        cover(facts["packages"], root / "var/cache/apt/archives", place / "archives")
    return root


def cover(below: str, at: Path, changes: Path) -> None:
    for name in ("upper", "work"):
        (changes / name).mkdir(parents=True)
    layers = f"lowerdir={below},upperdir={changes}/upper,workdir={changes}/work"
    run("mount", "-t", "overlay", "overlay", "-o", layers, str(at))


def hide_from_machine() -> None:
    """systemd-nspawn's notes, and the machine's way to mount control groups: here it is what every systemd knows."""
    notes = Path("/run/systemd/nspawn")
    notes.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", str(notes))
    run("umount", "--recursive", "/sys/fs/cgroup")
    run("mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")


def personalise(root: Path, hostname: str) -> None:
    (root / "etc/hostname").write_text(f"{hostname}\n")
    (root / "etc/hosts").write_text(
        f"127.0.0.1 localhost\n127.0.1.1 {hostname}\n::1 localhost ip6-localhost ip6-loopback\n"
    )
    (root / "etc/machine-id").write_text(uuid.uuid5(uuid.NAMESPACE_DNS, hostname).hex + "\n")


def wire(facts: dict[str, Any], boot: int) -> subprocess.Popen[bytes]:
    """A process in a fresh network namespace that has a way to the street: a reboot loses all else, as on metal."""
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    number = facts["number"]
    port = f"h{number}-{boot}"
    out_there = f"""
        ip link add {port} type veth peer name host0 address 02:00:00:00:01:{number:02x} netns {holder.pid}
        ip link set {port} master {street.SWITCH} up
    """
    in_here = f"""
        ip link set lo up
        ip address add {street.house_address(number)}/24 dev host0
        ip address add {street.house_address_v6(number)}/64 dev host0 nodad
        ip link set host0 up
        ip route add default via {street.ROUTER}
        ip route add default via {street.ROUTER_V6}
    """
    run("nsenter", f"--net=/proc/{os.getpid()}/fd/{facts['street']}", "sh", "-ec", out_there)
    run("nsenter", f"--net=/proc/{holder.pid}/ns/net", "sh", "-ec", in_here)
    return holder


def kvm_device(root: Path, place: Path) -> Path:
    """/dev/kvm as udev would make it: the group kvm may open it. The machine's own may lack that."""
    groups = (line.split(":") for line in (root / "etc/group").read_text().splitlines())
    group = next((int(fields[2]) for fields in groups if fields[0] == "kvm"), 0)
    device = place / "kvm"
    if not device.exists():
        os.mknod(device, 0o20660, Path("/dev/kvm").stat().st_rdev)
        device.chmod(0o660)
    os.chown(device, 0, group)
    return device


def nspawn_command(facts: dict[str, Any], root: Path, place: Path, holder: int) -> list[str]:
    command = [*NSPAWN, f"--directory={root}", f"--machine={facts['hostname']}"]
    command += [f"--network-namespace-path=/proc/{holder}/ns/net", f"--bind-ro={facts['identity']}:/run/lab-ssh"]
    if facts["kvm"] == "machine":
        command.append(f"--bind={kvm_device(root, place)}:/dev/kvm")
    if facts["mirror"]:
        command += [f"--bind-ro={path}" for path in lab_mirror.local_paths()]
    if "compiled" in facts:
        command.append(f"--bind={facts['compiled']}:{kept_code.IN_HOST}")
    if "wheels" in facts:
        command.append(f"--bind-ro={facts['wheels']}:{wheels.IN_HOST}")
    if facts["init"] == "systemd":
        return [*command, "--boot"]
    return [*command, "--as-pid2", "sleep", "infinity"]


def boot(facts: dict[str, Any], root: Path, place: Path, count: int) -> int:
    """From switching on to switching off; returns systemd-nspawn's exit code."""
    holder = wire(facts, count)
    helpers = [holder, *(lab_mirror.forward(holder.pid, place) if facts["mirror"] else [])]
    # "network": /proc/sys/net can be written, as it is the host's own; the rest belongs to the machine.
    environment = {**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
    command = nspawn_command(facts, root, place, holder.pid)
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
    if count == 0:
        os.write(int(os.environ["READY_FD"]), b"1")
    code = reap_until(machine.pid)
    for helper in helpers:
        helper.kill()
        helper.wait()
    return code


def reap_until(pid: int) -> int:
    """Wait for a process, and, as the first process of the namespace has to, for every orphan on the way."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def main(arguments: Sequence[str]) -> None:
    facts = json.loads(arguments[0])
    place = Path(facts["place"])
    hide_from_machine()
    root = lay_out(facts, place)
    personalise(root, facts["hostname"])
    if facts["mirror"]:
        lab_mirror.start(place)
        lab_mirror.configure(root)
    if "compiled" in facts:
        kept_code.install(root)
    if "wheels" in facts:
        (root / "etc/pip.conf").write_text(wheels.PIP_SETTINGS)
    count = stillborn = 0
    started = time.monotonic()
    while boot(facts, root, place, count) != 0:  # a reboot or a power cut
        stillborn = stillborn + 1 if time.monotonic() - started < SHORTEST_LIFE else 0
        if stillborn == 3:
            sys.exit("systemd-nspawn cannot start the host; its reasons stand above.")
        count, started = count + 1, time.monotonic()
    if facts.get("keep"):
        run("cp", "--archive", str(place / DISK / "upper"), facts["keep"])


if __name__ == "__main__":
    main(sys.argv[1:])
