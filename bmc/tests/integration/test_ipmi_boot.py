"""A provisioning network with DHCP and TFTP, and what a node boots there as `ipmitool chassis bootdev` tells it."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from lxml import etree
from support import ipmi_lab, private_libvirtd
from support.guest_image import image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.ipmi_lab import IpmiLab

SCRIPT = """#!ipxe
kernel kernel console=ttyS0 panic=-1 no_timer_check started-by-pxe
initrd initramfs
boot
"""
SERVER = [
    *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--port=0", "--pid-file="),
    *("--interface=provisioning", "--bind-interfaces", "--dhcp-leasefile=/run/libvirt/leases", "--no-ping"),
    *("--dhcp-range=172.22.0.10,172.22.0.99", "--dhcp-boot=boot", "--enable-tftp", "--tftp-root=/run/libvirt/tftp"),
    # iPXE waits 12 s for IPv6 routers and 2 s for other boot servers unless it is told:
    *("--enable-ra", "--dhcp-range=fd00:22::,ra-only", "--dhcp-option=encap:175,176,1b"),
]


@contextmanager
def boot_server(lab: IpmiLab) -> Iterator[None]:
    for file in image().iterdir():
        shutil.copy(file, lab.tftp / file.name)
    server = subprocess.Popen(lab.libvirtd.command(SERVER))
    try:
        yield
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="module")
def lab() -> Iterator[IpmiLab]:
    with private_libvirtd.start() as libvirtd, ipmi_lab.start(libvirtd, nodes=1) as started, boot_server(started):
        yield started


def boot_flags(lab: IpmiLab) -> list[str]:
    told = lab.tells(0, "chassis", "bootparam", "get", "5")
    return [line.strip(" -") for line in told.splitlines() if line.startswith("   - ")][:4]


def definition(lab: IpmiLab) -> etree._Element:
    return etree.fromstring(lab.libvirtd.run(["virsh", "dumpxml", "--inactive", "--security-info", "node-0"]).stdout)


def order(lab: IpmiLab) -> list[str]:
    """The devices in their order of booting."""
    places = definition(lab).findall("devices/*/boot")
    devices = [place.getparent() for place in sorted(places, key=lambda place: int(place.get("order", "")))]
    return [device.get("device", device.tag) for device in devices if device is not None]


def firmware_of(lab: IpmiLab) -> list[bytes]:
    return [etree.tostring(element) for element in definition(lab).findall("os")]


def test_pxe_boots_a_kernel_once_and_then_the_disk(lab: IpmiLab) -> None:
    (lab.tftp / "boot").write_text(SCRIPT)
    console = lab.console(0)
    lab.tells(0, "chassis", "bootdev", "pxe")
    assert boot_flags(lab)[:2] == ["Boot Flag Valid", "Options apply to only next boot"]
    assert "Boot Device Selector : Force PXE" in boot_flags(lab)
    lab.switch(0, "on")
    console.waits_for("started-by-pxe")
    console.waits_for("Run /init as init process")
    assert boot_flags(lab)[0] == "Boot Flag Invalid"
    assert order(lab) == ["disk", "interface", "cdrom"]
    console.skip()
    lab.switch(0, "cycle")
    console.waits_for("BOOTED FROM DISK")


def test_an_override_that_is_persistent_stays_until_it_is_replaced(lab: IpmiLab) -> None:
    (lab.tftp / "boot").write_bytes(ipmi_lab.prints("BOOTED FROM NETWORK"))
    console = lab.console(0)
    lab.tells(0, "chassis", "bootdev", "pxe", "options=persistent")
    lab.switch(0, "cycle")
    console.waits_for("BOOTED FROM NETWORK")
    assert boot_flags(lab)[:2] == ["Boot Flag Valid", "Options apply to all future boots"]
    assert order(lab)[0] == "interface"
    lab.tells(0, "chassis", "bootdev", "disk")
    console.skip()
    lab.switch(0, "cycle")
    console.waits_for("BOOTED FROM DISK")
    assert boot_flags(lab)[0] == "Boot Flag Invalid"


def test_every_device_can_be_asked_for_and_taken_back(lab: IpmiLab) -> None:
    before = order(lab)
    for device, first in {"cdrom": "cdrom", "pxe": "interface", "disk": "disk"}.items():
        for options in ("persistent", "valid"):
            lab.tells(0, "chassis", "bootdev", device, f"options={options}")
            assert order(lab)[0] == first
    lab.tells(0, "chassis", "bootdev", "none")
    assert order(lab) == before
    assert boot_flags(lab)[0] == "Boot Flag Invalid"


@pytest.mark.parametrize("firmware", ["bios", "efi"])
def test_the_flag_for_efi_leaves_the_firmware_alone(lab: IpmiLab, firmware: str) -> None:
    lab.switch(0, "off")
    if firmware == "efi":
        xml = etree.tostring(definition(lab), encoding="unicode").replace("<os>", "<os firmware='efi'>")
        lab.libvirtd.run(["virsh", "define", "/dev/stdin"], input=xml)
    before = firmware_of(lab)
    for options in ("persistent,efiboot", "persistent", "efiboot"):
        lab.tells(0, "chassis", "bootdev", "pxe", f"options={options}")
        assert firmware_of(lab) == before
        assert ("BIOS EFI boot" in boot_flags(lab)) == (firmware == "efi")
    lab.tells(0, "chassis", "bootdev", "none")
