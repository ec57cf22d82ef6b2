"""A lab for Ironic beside a private libvirtd: VMs of the module bmh_vm, and their BMCs with TLS and logins.

with ironic_lab.start(libvirtd, tmp_path, {"one": "bios", "two": "uefi"}) as lab:
    service.enrol("one", lab.driver_info("one"), {"boot_mode": "bios"})
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support import modules
from support.redfish_service import Node, Service
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd

IMAGES = "/var/lib/libvirt/images"
MEDIA = f"{IMAGES}/nometal-tests-media"
BRIDGE = "baremetal"
CONSOLES = "/var/log/libvirt/qemu"
MEMORY_MIB = 1024  # Ironic takes nothing less for a machine


@dataclass(frozen=True)
class IronicLab:
    """The running BMCs, and what there is to see of their VMs."""

    libvirtd: PrivateLibvirtd
    bmcs: Service
    vms: Mapping[str, Mapping[str, Any]]
    """What bmh_vm has returned, by the VM's name."""

    def driver_info(self, name: str) -> dict[str, Any]:
        """What an operator writes into Ironic: the VM's own login, and the lab's CA to know the BMC by."""
        user, password = Node(name).login
        return {
            "redfish_address": self.bmcs.url,
            "redfish_system_id": f"/redfish/v1/Systems/{self.vms[name]['uuid']}",
            "redfish_username": user,
            "redfish_password": password,
            "redfish_verify_ca": str(self.bmcs.authority.ca),
        }

    def console(self, name: str) -> str:
        """All that the VM has ever printed."""
        path = self.libvirtd.path(self.vms[name]["console"])
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for_console(self, name: str, text: str) -> None:
        wait_until(f"{name} prints {text!r}", lambda: text in self.console(name), seen=lambda: self.console(name))

    def power(self, name: str) -> str:
        return self.virsh("domstate", name).strip()

    def drive(self, name: str) -> str:
        """The file in the VM's drive, or `-` when it is empty."""
        lines = [line.split() for line in self.virsh("domblklist", "--details", name).splitlines()]
        [source] = [words[3] for words in lines if words[1:2] == ["cdrom"]]
        return source

    def media(self) -> list[str]:
        """The files that the BMCs keep of images."""
        return sorted(path.name for path in self.libvirtd.path(MEDIA).iterdir())

    def virsh(self, *words: str) -> str:
        return self.libvirtd.run(["virsh", "--quiet", "--connect", "qemu:///system", *words]).stdout


@contextmanager
def start(libvirtd: PrivateLibvirtd, directory: Path, firmware: Mapping[str, str]) -> Iterator[IronicLab]:
    """Make VMs of these names, each with its firmware, and start the service with their BMCs."""
    nodes = [Node(name) for name in firmware]
    made = _vms(libvirtd, nodes, firmware)
    service = Service(libvirtd, directory, nodes)
    service.config["media"] |= {"directory": MEDIA, "networks": ["127.0.0.0/8"]}
    with service:
        yield IronicLab(libvirtd, service, made)


def _vms(libvirtd: PrivateLibvirtd, nodes: list[Node], firmware: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    for path in (MEDIA, CONSOLES):
        libvirtd.path(path).mkdir(exist_ok=True)
    libvirtd.run(["ip", "link", "add", BRIDGE, "up", "type", "bridge"])
    libvirtd.run(["virsh", "pool-create-as", "tests", "dir", "--target", IMAGES])
    vms = [
        {
            "vm_name": node.name,
            "uuid": node.uuid,
            "vcpus": 1,
            "memory_mib": MEMORY_MIB,
            "firmware": firmware[node.name],
            "disks": [{"size_bytes": 1 << 30}],
            "nics": [{"mac": f"52:54:00:00:00:{number:02x}", "bridge": BRIDGE, "boot_order": 1}],
        }
        for number, node in enumerate(nodes)
    ]
    result = modules.run_beside(libvirtd, "bmh_vm", {"owner": "tests", "pool": "tests", "vms": vms})
    assert not result["failed"], result["msg"]
    return {vm["vm_name"]: vm for vm in result["vms"]}
