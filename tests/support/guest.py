"""A guest that boots in about two seconds without KVM: a kernel, busybox, DHCP clients and a channel for commands.

with guest.start(host, name="one", bridge="baremetal", mac="52:54:00:00:00:01") as one:
    one.lease4.address
    one.run("ping -c 1 203.0.113.1")
"""

from __future__ import annotations

import base64
import re
import shutil
import socket
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union

from support.guest_image import image
from support.private_libvirtd import PrivateLibvirtd
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from support.lab_host import LabHost

    Host = Union[LabHost, PrivateLibvirtd]

DIRECTORY = "/run/libvirt/guests"  # of the host; not on its disk
_copying = threading.Lock()

VIRSH = ("virsh", "--connect", "qemu:///system")
CMDLINE = "console=ttyS0 quiet panic=-1 net.ifnames=0 no_timer_check"
CHANNEL = """<channel type='unix'>
  <source mode='bind' path='{directory}/{name}.sock'/><target type='virtio' name='commands'/>
</channel>"""
# The kernel's check of the timer fails, and the guest hangs, where qemu does not get a processor for a moment.
DOMAIN = """
<domain type='qemu'>
  <name>{name}</name><memory unit='MiB'>128</memory><vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>{directory}/kernel</kernel><initrd>{directory}/initramfs</initrd>
    <cmdline>console=ttyS0 quiet panic=-1 net.ifnames=0 no_timer_check</cmdline>
  </os>
  <features><acpi/></features><on_reboot>destroy</on_reboot>
  <devices>
    <interface type='{kind}'>
      <mac address='{mac}'/><source {kind}='{network}'/><model type='virtio'/><rom enabled='no'/>
    </interface>
    <channel type='unix'>
      <source mode='bind' path='{directory}/{name}.sock'/><target type='virtio' name='commands'/>
    </channel>
    <serial type='file'><source path='{directory}/{name}.log'/></serial>
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
</domain>
"""


class GuestFailed(Exception):  # noqa: N818 - reads as a sentence in `pytest.raises(GuestFailed)`
    """A guest did not boot, got no lease, or a command in it ended with an error."""


@dataclass(frozen=True)
class Lease:
    """What a DHCP server has given; `values` is all of it, by the names of the client (udhcpc, dhclient)."""

    address: str
    seconds: float
    """From link up, or from renew(), to the lease."""
    values: Mapping[str, str]

    @property
    def name_servers(self) -> list[str]:
        return (self.values.get("dns") or self.values.get("new_dhcp6_name_servers", "")).split()

    @property
    def ntp_servers(self) -> list[str]:
        return self.values.get("ntpsrv", "").split()

    @property
    def routes(self) -> dict[str, str]:
        """Classless static routes: the gateway of each destination."""
        words = self.values.get("staticroutes", "").split()
        return dict(zip(words[::2], words[1::2]))


class Guest:
    """A running guest. It boots while the test goes on; the first question to it waits for that."""

    def __init__(self, host: Host, name: str, console: Path | None = None) -> None:
        self.host = host
        self.name = name
        self._console = console or _inside(host) / f"{name}.log"
        self._one_at_a_time = threading.Lock()
        self._channel = socket.socket(socket.AF_UNIX)
        self._channel.connect(str(_inside(host) / f"{name}.sock"))
        self._answers = self._channel.makefile("rb")
        self._booted = False

    def run(self, command: str, *, check: bool = True, timeout: int = PATIENCE) -> subprocess.CompletedProcess[str]:
        """Run shell text; `stdout` holds its messages as well. What it leaves in the background goes on."""
        with self._one_at_a_time:
            self._boot()
            code, output = self._ask(command, timeout)
        if check and code != 0:
            raise GuestFailed(f"Guest {self.name}: {command}\nended with {code}\n{output}")
        return subprocess.CompletedProcess(command, code, output, "")

    @property
    def lease4(self) -> Lease:
        """The IPv4 lease, waited for if there is none yet."""
        return self.lease(4)

    @property
    def lease6(self) -> Lease:
        return self.lease(6)

    def lease(self, version: int, seconds: int = PATIENCE) -> Lease:
        wait = f"until [ -e /run/lease{version} ]; do usleep 50000; done; cat /run/lease{version}"
        got = self.run(wait, check=False, timeout=seconds)
        if got.returncode != 0:
            told = self.run(f"head -n 40 /run/dhcp{version}.log; ip address", check=False).stdout
            raise GuestFailed(f"Guest {self.name} got no IPv{version} lease in {seconds} s:\n{told}")
        values = dict(line.split("=", 1) for line in got.stdout.splitlines() if "=" in line)
        address = values["ip" if version == 4 else "new_ip6_address"]
        return Lease(address, float(values["now"]) - float(values["asked"]), values)

    def has_lease(self, version: int) -> bool:
        return self.run(f"test -e /run/lease{version}", check=False).returncode == 0

    def renew(self) -> Lease:
        """What a running machine does when half of its IPv4 lease is over: ask the server for the same again."""
        self.run("rm /run/lease4; cut -d' ' -f1 /proc/uptime >/run/asked; kill -USR1 $(cat /run/dhcp4.pid)")
        return self.lease4

    def rejoin(self, *, asks_every: int = 1) -> None:
        """Link down and up; ask for addresses as after a boot, by IPv4 (again after so many seconds) and by IPv6."""
        self.run(f"join {asks_every}")

    def times_asked(self) -> int:
        """How often it has asked for its IPv4 lease since it joined."""
        return int(self.run("grep -c 'broadcasting discover' /run/dhcp4.log", check=False).stdout)

    def addresses(self) -> list[str]:
        """All of its addresses that others can use, of both families."""
        return re.findall(r"inet6? (\S+)/\d+ .*scope global", self.run("ip address show dev eth0").stdout)

    def routes(self) -> str:
        return self.run("ip route; ip -6 route").stdout

    def has_route(self, route: str, seconds: int = 60) -> bool:
        """Has it, or gets it: a router advertisement may come after the lease."""
        looks = (
            f"for tenth in $(seq {seconds}0); do ip -6 route | grep -q '{route}' && exit; usleep 100000; done; exit 1"
        )
        return self.run(looks, check=False).returncode == 0

    def resolve(self, name: str, kind: str = "a", server: str = "") -> list[str]:
        """What DNS answers, sorted; of the types a, aaaa, ptr, srv and txt. Empty: there is no such name."""
        [answers] = self.resolve_all([(name, kind)], server)
        return answers

    def resolve_all(self, questions: Sequence[tuple[str, str]], server: str = "") -> list[list[str]]:
        """Names with their types, in one go: each command costs a guest more than what it does."""
        types = {"ptr": ""}  # an address is looked up backwards
        looks = [f"nslookup {types.get(kind, f'-type={kind}')} {name} {server}" for name, kind in questions]
        output = self.run(f"; echo {_NEXT}; ".join(looks), check=False).stdout
        answered = zip(questions, output.split(f"{_NEXT}\n"))
        return [sorted(_ANSWER[kind].findall(text.partition("\n\n")[2])) for (_name, kind), text in answered]

    def reaches(self, address: str, seconds: int = 60) -> bool:
        """Does it answer a ping, if not the first then a later one?"""
        pings = f"for second in $(seq {seconds}); do ping -c 1 -W 1 {address} && exit; done; exit 1"
        return self.run(pings, check=False).returncode == 0

    def connects(self, address: str, port: int, seconds: int = 60) -> bool:
        """Does something accept a TCP connection?"""
        return self.run(f"nc -w {seconds} {address} {port} </dev/null", check=False).returncode == 0

    def echo(self, port: int) -> None:
        """Send back, from now on, whatever comes to this TCP port: an end for another guest's Stream."""
        listens = f"netstat -ltn | grep -q ':{port} '"
        self.run(f"{listens} || nc -ll -p {port} -e cat >/dev/null 2>&1 & until {listens}; do usleep 50000; done")

    def stream(self, address: str, port: int) -> Stream:
        """Open a TCP connection to something that echoes."""
        return Stream(self, address, port)

    def console(self) -> str:
        return self._console.read_text(errors="replace")

    def stop(self) -> None:
        """Power off; its domain is gone with it. It may be off already, with its host."""
        self._channel.close()
        with suppress(OSError):
            self.host.run(["virsh", "--connect", "qemu:///system", "destroy", self.name], check=False)
            self.host.run(["rm", "-f", f"/var/log/libvirt/qemu/{self.name}.log"])  # which libvirt leaves

    def _boot(self) -> None:
        if not self._booted:
            self._ask("true", PATIENCE)
            self._booted = True

    def _ask(self, command: str, timeout: int) -> tuple[int, str]:
        text = base64.b64encode(command.encode()).decode()
        self._channel.settimeout(timeout + 10)  # the guest itself keeps the time
        try:
            self._channel.sendall(f"{timeout} {text}\n".encode())
            answer = self._answers.readline()
        except OSError as error:
            raise self._lost(command) from error
        if not answer:
            raise self._lost(command)
        code, _space, output = answer.decode().partition(" ")
        return int(code), base64.b64decode(output).decode(errors="replace")

    def _lost(self, command: str) -> GuestFailed:
        return GuestFailed(f"Guest {self.name} does not answer ({command}). Its console:\n{self.console()[-3000:]}")

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


_NEXT = "-- next"
# In what busybox's nslookup prints after the empty line behind the server's address.
_ANSWER = {
    "a": re.compile(r"^Address: (\d+\.\d+\.\d+\.\d+)$", re.MULTILINE),
    "aaaa": re.compile(r"^Address: (\S+:\S*)$", re.MULTILINE),
    "ptr": re.compile(r"name = (\S+)$", re.MULTILINE),
    "srv": re.compile(r"service = (.+)$", re.MULTILINE),
    "txt": re.compile(r'text = "(.*)"$', re.MULTILINE),
}


class Stream:
    """A TCP connection of a guest to something that echoes: a number goes there and back five times a second."""

    def __init__(self, guest: Guest, address: str, port: int) -> None:
        self.guest = guest
        self.file = f"/run/stream-{address}-{port}"
        numbers = f"i=0; while [ -e {self.file} ]; do echo $((i+=1)); usleep 200000; done"
        noted = "while read -r number; do read -r now _ </proc/uptime; echo $number $now; done"
        self.guest.run(f": >{self.file}; ({numbers}) 2>&1 | nc {address} {port} 2>&1 | {noted} >{self.file} &")

    def lines(self) -> list[tuple[int, float]]:
        """Each number that has come back, and when (seconds of the guest's clock)."""
        text = self.guest.run(f"cat {self.file}").stdout
        return [(int(number), float(when)) for number, when in re.findall(r"^(\d+) (\S+)$", text, re.MULTILINE)]

    def assert_goes_on(self) -> None:
        """More numbers come back, and none was lost. After a gap TCP may take as long as the gap again."""
        before = len(self.lines())
        wait_until("more numbers come back", lambda: len(self.lines()) > before + 1, seen=self.lines)
        numbers = [number for number, _when in self.lines()]
        assert numbers == list(range(1, len(numbers) + 1))

    def longest_gap(self) -> float:
        """Seconds between two numbers that came back, or since the last; 0.2 and a little if nothing was in the way."""
        now = float(self.guest.run("cat /proc/uptime").stdout.split()[0])
        times = [*(when for _number, when in self.lines()), now]
        return max(after - before for before, after in zip(times, times[1:]))

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.guest.run(f"rm {self.file}")


def start(host: Host, *, name: str, mac: str, bridge: str = "", network: str = "") -> Guest:
    """Switch a guest on, on a bridge or in a libvirt network. Its domain is transient: it ends with the guest."""
    _copy_image(host)
    kind = "network" if network else "bridge"
    xml = DOMAIN.format(name=name, mac=mac, kind=kind, network=network or bridge, directory=DIRECTORY)
    host.run(["virsh", "--connect", "qemu:///system", "create", "/dev/stdin"], input=xml)
    return Guest(host, name)


def equip(host: Host, vm: str) -> None:
    """Have a VM that is defined boot as a guest from its next start on; what others have declared of it stays."""
    _copy_image(host)
    text = host.run([*VIRSH, "dumpxml", "--inactive", "--security-info", vm]).stdout
    boots = (
        f"<kernel>{DIRECTORY}/kernel</kernel><initrd>{DIRECTORY}/initramfs</initrd><cmdline>{CMDLINE}</cmdline></os>"
    )
    xml = text.replace("</os>", boots).replace(
        "</devices>", f"{CHANNEL.format(directory=DIRECTORY, name=vm)}</devices>"
    )
    host.run([*VIRSH, "define", "/dev/stdin"], input=xml)


def of_vm(host: Host, vm: str) -> Guest:
    """In a VM that was equipped and is on."""
    return Guest(host, vm, _inside(host, f"/var/log/libvirt/qemu/{vm}-console.log"))


def _inside(host: Host, path: str = DIRECTORY) -> Path:
    """The host's directory as seen from here."""
    process = host.sandbox.init if isinstance(host, PrivateLibvirtd) else host.leader
    return Path(f"/proc/{process}/root{path}")


def _copy_image(host: Host) -> None:
    target = _inside(host)
    with _copying:
        target.mkdir(exist_ok=True)
        for file in image().iterdir():
            if not (target / file.name).exists():
                shutil.copy(file, target / file.name)
