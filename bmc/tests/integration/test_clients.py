"""Clients that others have written: Ansible's modules of community.general, redfishtool, and DMTF's utilities."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libvirt
import pytest
from support import ansible_package, bmc_lab, image_server
from support.redfish_service import ADDRESS, PORT, Node, Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.image_server import ImageServer
    from support.private_libvirtd import PrivateLibvirtd

NODE = Node("clients-one")
OTHER = Node("clients-two")  # so that clients have to say which they mean
NIC = "52:54:00:00:0c:01"
PLAYBOOK = Path(__file__).with_name("community_general.playbook")


@pytest.fixture(scope="module")
def service(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with closing(libvirt.open(libvirtd.uri)) as connection:
        for number, node in enumerate((NODE, OTHER), 1):
            connection.defineXML(definition(libvirtd, node, 0x0C00 + number))
    service = Service(libvirtd, tmp_path_factory.mktemp("clients"), [NODE, OTHER])
    service.config["media"]["networks"] = ["127.0.0.0/8"]
    with service as running:
        yield running


@pytest.fixture(scope="module")
def web(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageServer]:
    directory = tmp_path_factory.mktemp("web")
    image_server.write_iso(directory / "boot.iso")
    with image_server.start(libvirtd, directory) as server:
        yield server


def definition(libvirtd: PrivateLibvirtd, node: Node, number: int) -> str:
    """A VM with UEFI as bmh_vm makes it."""
    disk = f"/var/lib/libvirt/images/{node.name}.qcow2"
    libvirtd.run(["qemu-img", "create", "-q", "-f", "qcow2", disk, "1G"])
    attribute, features, smm = bmc_lab.FIRMWARE["uefi"]
    xml = bmc_lab.DOMAIN.format(
        name=node.name,
        uuid=node.uuid,
        firmware="uefi",
        attribute=attribute,
        features=features,
        smm=smm,
        memory=192,
        number=0,
        disk=disk,
        console=f"/var/log/libvirt/qemu/{node.name}-console.log",
        more="",
    )
    return xml.replace("52:54:00:00:00:00", f"52:54:00:00:{number >> 8:02x}:{number & 255:02x}")


def run(service: Service, *words: str, **environment: str) -> str:
    done = subprocess.run(
        service.libvirtd.command(list(words)),
        env={**os.environ, "REQUESTS_CA_BUNDLE": str(service.authority.ca), **environment},
        cwd=service.directory,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{' '.join(words)}:\n{done.stdout}{done.stderr}"
    return done.stdout


def program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def state(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = service.get(f"Systems/{NODE.uuid}").json
    return found


def override(service: Service) -> tuple[str, str]:
    boot = state(service)["Boot"]
    return boot["BootSourceOverrideTarget"], boot["BootSourceOverrideEnabled"]


def image(service: Service) -> str | None:
    found: str | None = service.get(f"Systems/{NODE.uuid}/VirtualMedia/Cd").json["Image"]
    return found


def test_community_general(service: Service, web: ImageServer, tmp_path: Path) -> None:
    user, password = service.operator
    told = {
        "baseuri": f"{ADDRESS}:{PORT}",
        "username": user,
        "password": password,
        "ca_path": str(service.authority.ca),
        "uuid": NODE.uuid,
        "image": web.url("/boot.iso"),
        "boot_order": [f"Pxe-{NIC.replace(':', '')}", "Hdd-sda", "Cd-sdz"],
        "results": str(tmp_path / "results.json"),
    }
    variables = tmp_path / "variables.json"
    variables.write_text(json.dumps(told))
    command = [program("ansible-playbook"), "--inventory", "localhost,", "--extra-vars", f"@{variables}", str(PLAYBOOK)]
    run(
        service,
        *command,
        ANSIBLE_COLLECTIONS_PATH=str(ansible_package.collections("community-general")),
        ANSIBLE_NOCOLOR="1",
    )
    results = json.loads((tmp_path / "results.json").read_text())
    assert of_the_vm(results["running"], "system")["PowerState"] == "On"
    assert of_the_vm(results["seen"], "system")["PowerState"] == "Off"
    assert of_the_vm(results["seen"], "boot_override")["BootSourceOverrideTarget"] == "Cd"
    assert [nic["MACAddress"] for nic in of_the_vm(results["seen"], "nic")] == [NIC]
    assert [option["BootOptionReference"] for option in of_the_vm(results["ordered"], "boot_order")] == told[
        "boot_order"
    ]
    assert [drive["Image"] for drive in of_the_vm(results["seen"], "virtual_media")] == [web.url("/boot.iso")]
    assert [drive["Image"] for drive in of_the_vm(results["ejected"], "virtual_media")] == [None]
    assert service.get(f"Systems/{NODE.uuid}/SecureBoot").json["SecureBootEnable"] is True


def of_the_vm(result: Any, category: str) -> Any:
    """What redfish_info has found about the one VM."""
    entries = [(next(iter(uri.values())), found) for uri, found in result["redfish_facts"][category]["entries"]]
    return dict(entries)[f"/redfish/v1/Systems/{NODE.uuid}"]


def test_redfishtool(service: Service) -> None:
    def tool(*words: str) -> str:
        user, password = service.operator
        login = ["-r", f"{ADDRESS}:{PORT}", "-u", user, "-p", password, "-S", "Always"]
        return run(service, program("redfishtool"), *login, *words)

    system = ["-I", NODE.uuid]
    assert json.loads(tool("Systems", *system))["UUID"] == NODE.uuid
    assert NIC in tool("Systems", *system, "EthernetInterfaces")
    for kind, reached in (("On", "On"), ("ForceOff", "Off")):
        tool("Systems", *system, "reset", kind)
        assert state(service)["PowerState"] == reached
    tool("Systems", *system, "setBootOverride", "Continuous", "Pxe")
    assert override(service) == ("Pxe", "Continuous")
    tool("Systems", *system, "setBootOverride", "Disabled")
    assert override(service)[1] == "Disabled"
    assert json.loads(tool("Managers", *system))["ManagerType"] == "BMC"
    assert json.loads(tool("AccountService"))["ServiceEnabled"] is True


def test_the_utilities_of_dmtf(service: Service, web: ImageServer) -> None:
    def utility(name: str, *words: str) -> str:
        user, password = service.operator
        login = ["--rhost", service.url, "--user", user, "--password", password]
        return run(service, program(f"rf_{name}.py"), *login, *words)

    system = ["--system", NODE.uuid]
    for kind, reached in (("On", "On"), ("ForceOff", "Off")):
        utility("power_reset", *system, "--type", kind)
        assert state(service)["PowerState"] == reached
    utility("boot_override", *system, "--target", "Cd")
    assert override(service) == ("Cd", "Once")
    utility("boot_override", *system, "--target", "None")
    assert override(service)[1] == "Disabled"
    utility("virtual_media", *system, "insert", "--image", web.url("/boot.iso"))
    assert image(service) == web.url("/boot.iso")
    assert re.search(r"Cd\b.*boot\.iso", utility("virtual_media", *system, "info"), re.DOTALL)
    utility("virtual_media", *system, "eject", "--id", "Cd")
    assert image(service) is None
    assert "nometal.ipi" in utility("sys_inventory", "--details")
