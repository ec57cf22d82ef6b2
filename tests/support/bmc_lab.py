"""A lab's BMC service beside a private libvirtd, and VMs as bmh_vm makes them.

with bmc_lab.start(libvirtd) as lab, lab.network():
    vm = lab.vm(firmware="uefi", disk=redfish_images.disk("one"))
    lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Cd"}})
    lab.sushy().get_system(vm.path).reset_system(sushy.RESET_ON)
    vm.waits_for("booted from CD: one")
"""

from __future__ import annotations

import ctypes
import grp
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import scrypt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libvirt
import requests
import sushy
from support import processes, redfish_images
from support.bmc_broker import Broker
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

PACKAGE = Path(__file__).parents[2] / "bmc"
ADDRESS, PORT = "127.0.0.1", 8000
URL = f"http://{ADDRESS}:{PORT}"
USER, PASSWORD = "operator", "of-the-test"
DIRECTORY = "/var/lib/libvirt/nometal-test"
MEDIA = "/var/lib/libvirt/images/nometal-test-media"
MEDIA_SETTINGS: dict[str, Any] = {
    "directory": MEDIA,
    "max_bytes": 1 << 30,
    "timeout": 60,
    "ca_file": None,
    # Where the tests' image servers are: loopback, and what the stand-in of the installer takes for its VM's addresses.
    "networks": ["127.0.0.0/8", "::1/128", "192.168.77.0/24"],
}
BROKER = f"{DIRECTORY}/broker"
SERVICE_USER, SERVICE_USER_NAME = 65534, "nobody"
BROKER_USER = pwd.getpwnam("daemon").pw_uid  # libvirt wants one that has a name
MOST_VMS = 120
UUIDS = [f"11111111-1111-4111-8111-{number:012}" for number in range(MOST_VMS)]
CLONE_NEWNET = 0x40000000

# What members of the group libvirt may do is polkit's to say on a host; here is no polkit.
LIBVIRTD_CONF = """
unix_sock_group = "libvirt"
unix_sock_rw_perms = "0770"
auth_unix_rw = "none"
"""
FIRMWARE = {
    "uefi": ("firmware='efi'", "<firmware><feature enabled='no' name='secure-boot'/></firmware>", ""),
    "uefi-secure": (
        "firmware='efi'",
        "<firmware><feature enabled='yes' name='enrolled-keys'/><feature enabled='yes' name='secure-boot'/></firmware>",
        "<smm state='on'/>",
    ),
    "bios": ("", "", ""),
}
DOMAIN = """
<domain type='qemu'>
  <name>{name}</name><uuid>{uuid}</uuid>
  <metadata><nometal:vm xmlns:nometal="urn:nometal:ipi" owner="test" firmware="{firmware}"/></metadata>
  <memory unit='MiB'>{memory}</memory><vcpu>1</vcpu>
  <os {attribute}><type arch='x86_64' machine='q35'>hvm</type>{features}</os>
  <features><acpi/>{smm}</features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/><source file='{disk}'/><target dev='sda' bus='scsi'/><boot order='1'/>
    </disk>
    <controller type='scsi' model='virtio-scsi'/>
    <disk type='file' device='cdrom'>
      <driver name='qemu' type='raw'/><target dev='sdz' bus='sata'/><readonly/><boot order='3'/>
    </disk>
    <interface type='ethernet'>
      <mac address='52:54:00:00:00:{number:02x}'/><model type='virtio'/><boot order='2'/><rom enabled='no'/>
    </interface>
    <serial type='pty'><log file='{console}' append='on'/></serial>
    <memballoon model='none'/>
    {more}
  </devices>
</domain>
"""


@dataclass(frozen=True)
class Vm:
    """One VM that the service knows."""

    lab: BmcLab
    name: str
    uuid: str

    @property
    def path(self) -> str:
        return f"/redfish/v1/Systems/{self.uuid}"

    @property
    def media(self) -> str:
        return f"{self.path}/VirtualMedia/Cd"

    @property
    def domain(self) -> libvirt.virDomain:
        return self.lab.connection.lookupByUUIDString(self.uuid)

    def xml(self, flags: int = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE) -> str:
        return str(self.domain.XMLDesc(flags))

    def live_xml(self) -> str:
        return self.xml(0)

    def insert(self, image: Path) -> None:
        """Put a disc into the drive of a VM that is off, without the service."""
        file = f"/var/lib/libvirt/images/{image.name}"
        shutil.copy(image, self.lab.libvirtd.path(file))
        drive = re.search(r"<disk type='file' device='cdrom'>.*?</disk>", self.xml(), re.DOTALL)
        assert drive, "the drive is gone"
        filled = re.sub("<source .*?/>", "", drive[0]).replace("<target", f"<source file='{file}'/><target")
        self.domain.updateDeviceFlags(filled, libvirt.VIR_DOMAIN_AFFECT_CONFIG)

    def console(self) -> str:
        file = self.lab.libvirtd.path(f"/var/log/libvirt/qemu/{self.name}-console.log")
        return file.read_text(errors="replace") if file.exists() else ""

    def waits_for(self, text: str, times: int = 1) -> None:
        """Wait until the serial console has said this so many times since the VM was made."""
        wait_until(
            f"{self.name} has said {text!r} {times} times",
            lambda: self.console().count(text) >= times,
            seen=lambda: self.console()[-2000:],
        )

    def forget_console(self) -> None:
        """What it says from now on counts."""
        file = self.lab.libvirtd.path(f"/var/log/libvirt/qemu/{self.name}-console.log")
        if file.exists():
            os.truncate(file, 0)

    def destroy(self) -> None:
        """Pull the plug, if it is on."""
        if self.domain.isActive():
            self.domain.destroy()


@dataclass
class BmcLab:
    """The service, and whom it serves."""

    libvirtd: PrivateLibvirtd
    url: str = URL
    vms: list[Vm] = field(default_factory=list)
    accounts: list[dict[str, Any]] = field(default_factory=lambda: [account(USER, PASSWORD)])

    def __post_init__(self) -> None:
        self.connect()
        self.directory = self.libvirtd.path(DIRECTORY)
        owners = {DIRECTORY: SERVICE_USER, BROKER: BROKER_USER, MEDIA: BROKER_USER}
        for directory, owner in owners.items():
            self.libvirtd.path(directory).mkdir(exist_ok=True)
            os.chown(self.libvirtd.path(directory), owner, owner)
        prefix = as_user(BROKER_USER, f"--groups={grp.getgrnam('libvirt').gr_gid}")
        self.broker = Broker(self.libvirtd, BROKER, self.directory / "broker.log", SERVICE_USER_NAME, prefix)
        self.http = requests.Session()
        self.http.auth = (USER, PASSWORD)
        self.service: subprocess.Popen[bytes] | None = None

    def connect(self) -> None:
        """The tests' own connection: anew after each restart of libvirtd."""
        self.connection = libvirt.open(self.libvirtd.uri)

    def vm(self, *, firmware: str = "uefi", disk: Path | None = None, memory: int = 192, more: str = "") -> Vm:
        """Define a VM that is off; its disk begins with the image's content, or is empty.

        One with UEFI halts when it is on: if nothing boots, it asks the network for ever, and takes a processor for it.
        """
        number = len(self.vms)
        vm = Vm(self, f"node-{number}", UUIDS[number])
        file = f"/var/lib/libvirt/images/{vm.name}.qcow2"
        if disk is None and firmware == "uefi":
            disk = redfish_images.disk("a system that halts")
        if disk:
            redfish_images.qcow2(disk, self.libvirtd.path(file), "1G")
        else:
            self.libvirtd.run(["qemu-img", "create", "-q", "-f", "qcow2", file, "1G"])
        attribute, features, smm = FIRMWARE[firmware]
        places = {"disk": file, "console": f"/var/log/libvirt/qemu/{vm.name}-console.log", "more": more}
        chosen = {"attribute": attribute, "features": features, "smm": smm, "firmware": firmware, "memory": memory}
        self.connection.defineXML(DOMAIN.format(name=vm.name, uuid=vm.uuid, number=number, **chosen, **places))
        self.vms.append(vm)
        return vm

    def configure(self, **changes: Any) -> None:
        """Replace the service's configuration; it looks at it every half second."""
        config: dict[str, Any] = {
            "lab": "test",
            "broker": self.broker.socket,
            "listen": [{"address": ADDRESS, "port": PORT}],
            "tls": None,
            "systems": [{"uuid": uuid, "name": f"node-{number}"} for number, uuid in enumerate(UUIDS)],
            "accounts": self.accounts,
            "media": MEDIA_SETTINGS,
            "state": DIRECTORY,
        }
        config |= changes
        self.broker.configure(config["systems"], config["media"]["directory"])
        new = self.directory / "config.new"
        new.write_text(json.dumps(config))
        new.replace(self.directory / "config.json")

    def start_service(self) -> None:
        """Start it as its own user, with its broker if that does not run, and wait until it answers."""
        if self.broker.process is None:
            self.broker.start()
        command = [
            *as_user(SERVICE_USER, "--clear-groups"),
            sys.executable,
            "-m",
            "nometal_bmc",
            f"{DIRECTORY}/config.json",
        ]
        with (self.directory / "service.log").open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
            self.service = subprocess.Popen(
                self.libvirtd.command(command), stdout=log, stderr=log, env=environment, stdin=subprocess.DEVNULL
            )
        with self.network():
            wait_until("the service answers", self._answers, seen=self.log)

    def _answers(self) -> bool:
        assert self.service
        assert self.service.poll() is None, f"The service has ended:\n{self.log()}"
        try:
            return requests.get(f"{self.url}/redfish/v1", timeout=PATIENCE).ok
        except requests.RequestException:
            return False

    def stop_service(self, number: int = signal.SIGTERM) -> None:
        """End it; with SIGKILL as if it had crashed."""
        if self.service is not None:
            os.kill(self._pid(), number)
            self.service.wait(timeout=PATIENCE)
            self.service = None

    def descriptors(self) -> int:
        """How many files and sockets the broker has open."""
        return len(list(Path(f"/proc/{self.broker.pid}/fd").iterdir()))

    def _pid(self) -> int:
        assert self.service
        return processes.python_below(self.service.pid)

    def log(self) -> str:
        return (self.directory / "service.log").read_text()

    @contextmanager
    def network(self) -> Iterator[None]:
        """This thread, and those that it starts, are in the service's network meanwhile."""
        with Path("/proc/thread-self/ns/net").open() as own:
            with Path(f"/proc/{self.libvirtd.sandbox.init}/ns/net").open() as other:
                _enter(other.fileno())
            try:
                yield
            finally:
                _enter(own.fileno())

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> requests.Response:
        return self.http.request(method, f"{self.url}{path}", json=body, timeout=PATIENCE, **more)

    def get(self, path: str) -> dict[str, Any]:
        response = self.request("GET", path)
        assert response.status_code == 200, (path, response.status_code, response.text)
        found: dict[str, Any] = response.json()
        return found

    def patch(self, path: str, body: Any) -> requests.Response:
        return self.request("PATCH", path, body)

    def post(self, path: str, body: Any = None) -> requests.Response:
        return self.request("POST", path, body)

    def reset(self, vm: Vm, kind: str) -> requests.Response:
        return self.post(f"{vm.path}/Actions/ComputerSystem.Reset", {"ResetType": kind})

    def sushy(self) -> sushy.Sushy:
        return sushy.Sushy(self.url, auth=sushy.auth.BasicAuth(USER, PASSWORD), verify=False)

    def close(self) -> None:
        self.stop_service()
        self.broker.stop()
        for vm in self.vms:
            vm.destroy()
        self.connection.close()


@contextmanager
def start(libvirtd: PrivateLibvirtd, **changes: Any) -> Iterator[BmcLab]:
    """Start a service with room for VMs; `changes` are of its configuration."""
    libvirtd.path("/etc/libvirt/libvirtd.conf").write_text(LIBVIRTD_CONF)
    libvirtd.restart()
    lab = BmcLab(libvirtd)
    lab.configure(**changes)
    try:
        lab.start_service()
        yield lab
    finally:
        lab.close()


def as_user(number: int, groups: str) -> tuple[str, ...]:
    """What makes a command another user's. The checkout and its virtualenv may lie where only root may look."""
    capabilities = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    return "setpriv", f"--reuid={number}", f"--regid={number}", groups, *capabilities


def account(name: str, password: str, systems: list[str] | None = None) -> dict[str, Any]:
    """An account with a password that costs nothing to check."""
    digest = scrypt(password.encode(), salt=b"salt-of-the-test", n=16, r=1, p=1, dklen=32)
    salted = f"{b64encode(b'salt-of-the-test').decode()}:{b64encode(digest).decode()}"
    return {"name": name, "password": f"scrypt:16:1:1:{salted}", "systems": systems}


def _enter(namespace: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
