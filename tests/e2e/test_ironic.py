"""Real Ironic commands VMs by their BMCs, as the installer and metal3 do: over https, with the lab's CA."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from support import image_server, ironic, ironic_lab, private_libvirtd, redfish_images, redfish_service
from support.ironic import IronicFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.image_server import ImageServer
    from support.ironic import Ironic, Node
    from support.ironic_lab import IronicLab
    from support.private_libvirtd import PrivateLibvirtd

SIGNED = {"one": False, "two": False, "three": True}
FIRMWARE = {"one": "bios", "two": "uefi", "three": "uefi", "unlucky": "bios", "stranger": "bios", "faulty": "bios"}


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        yield started


@pytest.fixture(scope="module")
def lab(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IronicLab]:
    with ironic_lab.start(libvirtd, tmp_path_factory.mktemp("lab"), FIRMWARE) as started:
        yield started


@pytest.fixture(scope="module")
def web(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageServer]:
    directory = tmp_path_factory.mktemp("web")
    for signed in (False, True):
        shutil.copy(redfish_images.cd("ramdisk", signed=signed), directory / image_of(signed))
    with image_server.start(libvirtd, directory) as started:
        yield started


@pytest.fixture(scope="module")
def service(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ironic]:
    with ironic.start(libvirtd, tmp_path_factory.mktemp("ironic")) as started:
        yield started


def image_of(signed: bool) -> str:
    return "signed.iso" if signed else "unsigned.iso"


def enrolled(service: Ironic, lab: IronicLab, name: str) -> Node:
    return service.enrol(name, lab.driver_info(name), {"boot_mode": FIRMWARE[name]})


def deploy(node: Node, url: str, *, secure: bool = False) -> None:
    """Boot an image by virtual media."""
    capabilities = {"capabilities": {"secure_boot": "true"}} if secure else {}
    node.change(instance_info={"boot_iso": url, **capabilities})
    node.go("active", "active")


def is_secure(lab: IronicLab, name: str) -> bool:
    """Does the VM enforce secure boot, now or, when it is off, with its next start?"""
    return "secure='yes'" in lab.virsh("dumpxml", name)


def test_three_nodes_live_at_once(lab: IronicLab, service: Ironic, web: ImageServer) -> None:
    def boot(name: str) -> Node:
        node = enrolled(service, lab, name)
        node.go("manage", "manageable")
        node.go("inspect", "manageable")
        assert node.inventory()["memory"]["physical_mb"] == ironic_lab.MEMORY_MIB
        assert node.macs() == [lab.vms[name]["boot_mac"]]
        node.go("provide", "available")
        deploy(node, web.url(f"/{image_of(SIGNED[name])}"), secure=SIGNED[name])
        assert node.read()["power_state"] == "power on"
        lab.wait_for_console(name, "booted from CD: ramdisk")
        assert is_secure(lab, name) == SIGNED[name]
        return node

    nodes = service.each(boot, SIGNED)
    assert web.requests("/unsigned.iso").count("GET") == 1  # for both that boot it
    service.each(lambda node: node.go("deleted", "available"), nodes)
    left = [(lab.power(name), lab.drive(name), is_secure(lab, name)) for name in SIGNED]
    assert left == 3 * [("shut off", "-", False)]
    assert lab.media() == []


def test_a_dead_url_is_a_clear_error_and_mended_by_the_right_one(
    lab: IronicLab, service: Ironic, web: ImageServer
) -> None:
    def live(name: str) -> None:
        node = enrolled(service, lab, name)
        node.go("manage", "manageable")
        node.go("provide", "available")
        with pytest.raises(IronicFailed, match=r"deploy failed.*nowhere.iso answered 404"):
            deploy(node, web.url("/nowhere.iso"))
        assert (lab.drive(name), lab.media()) == ("-", [])
        deploy(node, web.url("/unsigned.iso"))
        lab.wait_for_console(name, "booted from CD: ramdisk")
        node.go("deleted", "available")

    service.each(live, ["unlucky"])
    assert (lab.power("unlucky"), lab.drive("unlucky"), lab.media()) == ("shut off", "-", [])


def test_a_wrong_password_is_a_clear_error_and_mended_by_the_right_one(lab: IronicLab, service: Ironic) -> None:
    def live(name: str) -> None:
        right = lab.driver_info(name)["redfish_password"]
        node = enrolled(service, lab, name)
        node.change(driver_info__redfish_password="wrong")  # noqa: S106 - nobody's
        with pytest.raises(IronicFailed, match=r"enroll: .*returned code 401"):
            node.go("manage", "manageable")
        node.change(driver_info__redfish_password=right)
        node.go("manage", "manageable")

    service.each(live, ["stranger"])


def test_a_deployment_survives_a_bad_bmc_and_a_medium_that_fails_once(
    lab: IronicLab, service: Ironic, web: ImageServer
) -> None:
    """As the recipe in docs/bmc.md."""
    faults = (
        {"fault": "latency", "milliseconds": 50, "rate": 50},
        {"fault": "status", "status": 503, "methods": ["GET"], "after": 3, "times": 2},
        {"fault": "credentials-expired", "after": 8, "times": 1},
        {"fault": "connection-reset", "methods": ["GET"], "after": 12, "times": 1},
        {"fault": "media-failed", "times": 1},
    )

    def live(name: str) -> None:
        node = enrolled(service, lab, name)
        node.go("manage", "manageable")
        node.go("provide", "available")
        only = [{**fault, "nodes": [name]} for fault in faults]
        redfish_service.set_faults(lab.bmcs.directory, *only)
        with pytest.raises(IronicFailed, match=r"deploy failed.*its server did not answer"):
            deploy(node, web.url("/unsigned.iso"))
        deploy(node, web.url("/unsigned.iso"))
        lab.wait_for_console(name, "booted from CD: ramdisk")
        redfish_service.set_faults(lab.bmcs.directory)
        node.go("deleted", "available")

    service.each(live, ["faulty"])
    met = lab.bmcs.log.read_text()
    assert [fault["fault"] for fault in faults if f"Fault on purpose for faulty: {fault['fault']}" not in met] == []
