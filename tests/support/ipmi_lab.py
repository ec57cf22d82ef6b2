"""A provisioning network with VMs and their IPMI BMCs beside a private libvirtd, commanded by ipmitool.

with ipmi_lab.start(libvirtd, nodes=2) as lab:
    lab.switch(0, "on")
    lab.console(0).waits_for("DISK")
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import processes
from support.bmc_broker import Broker
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from support.private_libvirtd import PrivateLibvirtd

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bmc"
ADDRESS = "172.22.0.254"
FIRST_PORT = 6230
USER, PASSWORD = "admin", "correct horse 20 byt"  # as long as IPMI allows
NETWORK = f"""
ip link add provisioning type bridge forward_delay 0
ip address add 172.22.0.1/24 dev provisioning
ip address add {ADDRESS}/32 dev provisioning
ip address add fd00:22::1/64 dev provisioning nodad
ip link set provisioning up
mkdir -p /run/libvirt/bmc /run/libvirt/tftp
"""
DOMAIN = """
<domain type='qemu'>
  <name>{name}</name><uuid>{uuid}</uuid><memory unit='MiB'>256</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <features><acpi/></features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/><source file='/var/lib/libvirt/images/disk'/><target dev='vda' bus='virtio'/>
      <readonly/><boot order='1'/>
    </disk>
    <disk type='file' device='cdrom'><target dev='sdz' bus='sata'/><readonly/><boot order='3'/></disk>
    <interface type='bridge'>
      <mac address='52:54:00:00:00:{number:02x}'/><source bridge='provisioning'/><model type='virtio'/><boot order='2'/>
    </interface>
    <serial type='pty'><log file='/var/log/libvirt/qemu/{name}-console.log' append='on'/></serial>
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
</domain>
"""
# From 0000:7c00: point ds:si behind this code, write bytes to the first serial port until a zero, halt.
PRINTER = bytes.fromhex("31c08ed8be157cbaf803ac84c07403eeebf8f4ebfd")


def prints(text: str) -> bytes:
    """What a BIOS boots, from a disk or from the network, and prints this to the serial console."""
    return (PRINTER + text.encode() + b"\r\n\0").ljust(510, b"\0") + b"\x55\xaa"


def uuid_of(number: int) -> str:
    return f"22222222-2222-4222-8222-{number:012}"


@dataclass
class Console:
    """The serial console of a VM, from where it was last looked at."""

    log: Path
    seen: int = 0

    def waits_for(self, text: str) -> None:
        wait_until(f"the console says {text!r}", lambda: text in self.new(), seen=self.new)

    def new(self) -> str:
        return self.log.read_bytes()[self.seen :].decode(errors="replace") if self.log.exists() else ""

    def skip(self) -> None:
        self.seen = self.log.stat().st_size if self.log.exists() else 0


@dataclass
class IpmiLab:
    """VMs node-0, node-1, ... with BMCs at one address and the ports 6230, 6231, ..."""

    libvirtd: PrivateLibvirtd
    consoles: dict[int, Console] = field(default_factory=dict)
    service: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.broker = Broker(self.libvirtd, "/run/libvirt/bmc", self.config_file.with_name("broker.log"))

    @property
    def config_file(self) -> Path:
        return self.libvirtd.path("/run/libvirt/bmc/config.json")

    @property
    def log_file(self) -> Path:
        """What the service and all BMCs have printed."""
        return self.config_file.with_name("log")

    @property
    def tftp(self) -> Path:
        return self.libvirtd.path("/run/libvirt/tftp")

    def define(self, nodes: Iterable[int]) -> None:
        commands = []
        for node in nodes:
            file = self.libvirtd.path(f"/run/libvirt/bmc/node-{node}.xml")
            file.write_text(DOMAIN.format(name=f"node-{node}", uuid=uuid_of(node), number=node + 1))
            commands.append(f"define /run/libvirt/bmc/{file.name}")
        self.libvirtd.run(["virsh", "; ".join(commands)])

    def configure(
        self, nodes: Sequence[int], passwords: Mapping[int, str] | None = None, others: Sequence[str] = ()
    ) -> None:
        systems = [{"uuid": uuid_of(number), "name": f"node-{number}"} for number in nodes]
        access = [
            {
                "addresses": [ADDRESS, *others],
                "port": FIRST_PORT + number,
                "username": USER,
                "password": (passwords or {}).get(number, PASSWORD),
            }
            for number in nodes
        ]
        config = {
            "lab": "demo",
            "broker": self.broker.socket,
            "listen": [],
            "tls": None,
            "systems": systems,
            "accounts": [],
            "media": {"directory": "/nowhere", "max_bytes": 1, "timeout": 1, "ca_file": None},
            "state": "/run/libvirt/bmc",
            "ipmi": [system | node for system, node in zip(systems, access)],
        }
        self.broker.configure(systems, None)
        new = self.config_file.with_suffix(".new")
        new.write_text(json.dumps(config))
        new.chmod(0o600)
        new.replace(self.config_file)

    def start_service(self) -> None:
        command = self.libvirtd.command([sys.executable, "-m", "nometal_bmc", "/run/libvirt/bmc/config.json"])
        env = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        with self.log_file.open("ab") as log:
            self.service = subprocess.Popen(command, env=env, stderr=log)

    def stop_service(self, number: signal.Signals = signal.SIGTERM) -> None:
        for pid in self.processes("-m nometal_bmc /run/libvirt/bmc/"):  # others' services may run beside it
            os.kill(pid, number)
        if self.service is not None:
            self.service.wait(PATIENCE)
            self.service = None

    def processes(self, of: str) -> list[int]:
        """Those of the service whose command line has this text; parents first."""
        own = processes.descendants(os.getpid())
        return [pid for pid in own if _is_python(pid) and of in " ".join(processes.command_line(pid))]

    def bmcs(self) -> dict[int, int]:
        """The process of each BMC, by the number of its node."""
        sockets = self.sockets()
        found: dict[int, int] = {}
        for pid in self.processes("nometal_bmc.ipmi.supervisor")[1:]:
            for inode in _sockets(pid) & sockets.keys():
                found[sockets[inode][1] - FIRST_PORT] = pid
        return found

    def sockets(self) -> dict[str, tuple[str, int]]:
        """Address (hexadecimal, as the kernel prints it) and port of each open UDP socket, by inode."""
        lines = self.libvirtd.run(["cat", "/proc/net/udp", "/proc/net/udp6"]).stdout.splitlines()
        rows = [line.split() for line in lines if re.match(r" *\d+:", line)]
        return {row[9]: (row[1].split(":")[0], int(row[1].split(":")[1], 16)) for row in rows}

    def ipmitool(
        self,
        number: int,
        *words: str,
        user: str = USER,
        password: str = PASSWORD,
        options: Sequence[str] = (),
        at: str = ADDRESS,
    ) -> subprocess.CompletedProcess[str]:
        where = ["-H", at, "-p", str(FIRST_PORT + number), "-U", user, "-P", password]
        return self.libvirtd.run(["ipmitool", "-I", "lanplus", *where, *options, *words], check=False)

    def tells(self, number: int, *words: str, **access: Any) -> str:
        """What ipmitool prints; it must have no complaint."""
        done = self.ipmitool(number, *words, **access)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def switch(self, number: int, way: str, **access: Any) -> None:
        """`power on` and the like, to the end: a BMC answers before it switches the VM."""
        ended = rf"node-{number}: .*: ended after"
        before = len(re.findall(ended, self.log_file.read_text()))
        self.tells(number, "power", way, **access)
        wait_until(f"power {way} has ended", lambda: len(re.findall(ended, self.log_file.read_text())) > before)

    def answers(self, number: int) -> bool:
        return self.ipmitool(number, "mc", "guid", options=["-N", "1", "-R", "1"]).returncode == 0

    def console(self, number: int) -> Console:
        """Only what comes from now on."""
        log = self.libvirtd.path(f"/var/log/libvirt/qemu/node-{number}-console.log")
        console = self.consoles.setdefault(number, Console(log))
        console.skip()
        return console

    def domain_id(self, number: int) -> str:
        """Another one after each start; '-' when it is off."""
        return self.libvirtd.run(["virsh", "domid", f"node-{number}"]).stdout.strip()


@contextmanager
def start(libvirtd: PrivateLibvirtd, *, nodes: int) -> Iterator[IpmiLab]:
    """Return when all BMCs answer."""
    lab = IpmiLab(libvirtd)
    libvirtd.run(["sh", "-ec", NETWORK])
    libvirtd.path("/var/lib/libvirt/images/disk").write_bytes(prints("BOOTED FROM DISK").ljust(1 << 20, b"\0"))
    lab.define(range(nodes))
    lab.configure(range(nodes))
    lab.broker.start()
    lab.start_service()
    try:
        wait_until(
            "the BMCs answer",
            lambda: all(lab.answers(number) for number in {0, nodes - 1}),
            seen=lab.log_file.read_text,
        )
        yield lab
    finally:
        lab.stop_service()
        lab.broker.stop()
        sys.stdout.write(lab.log_file.read_text())


def _is_python(pid: int) -> bool:
    return Path(next(iter(processes.command_line(pid)), "")).name.startswith("python")


def _sockets(pid: int) -> set[str]:
    """The inodes of its sockets."""
    links = subprocess.run(
        ["readlink", *Path(f"/proc/{pid}/fd").glob("*")], check=False, text=True, capture_output=True
    )
    return set(re.findall(r"socket:\[(\d+)\]", links.stdout))
