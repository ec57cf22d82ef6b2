"""Real Ironic, which runs elsewhere, deploys nodes of a lab with no control plane: docs/other-installers.md."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, image_server, ironic, made_lab, redfish_images
from support.failures import ending
from support.ironic import Node
from support.street import OUTSIDE, ROUTER, Street
from support.waiting import wait_until

from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import KNOWN_OF_EXPORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

SPEC: dict[str, Any] = {
    "nodes": {
        "control_plane": {"count": 0},
        "workers": {"count": 2, "vcpus": 1, "memory": "512MiB", "disks": [{"size": "1GiB"}]},
    },
    "bmc": {"clients": ["198.51.100.0/24"]},
}
BMC, DNS = ("192.168.126.1", 8000), ("192.168.126.1", 53)
DIRECTORY = "/var/lib/nometal/labs/rehearsal/export"
WITHOUT_KEYSTONE = ("OS_AUTH_TYPE=none", "OS_ENDPOINT=http://127.0.0.1:6385")
CONNECT = """
import socket, sys
source, address, port = sys.argv[1:]
socket.create_connection((address, int(port)), timeout=20, source_address=(source, 0)).close()
"""
IGNORED = """
import socket, sys
source, address, port = sys.argv[1:]
try:
    socket.create_connection((address, int(port)), timeout=3, source_address=(source, 0)).close()
except TimeoutError:
    sys.exit(0)
sys.exit("connected")
"""


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
    made = Street()
    yield made
    made.close()


@pytest.fixture(scope="module")
def host(street: Street) -> Iterator[LabHost]:
    with made_lab.start(street=street, **SPEC) as started:
        street.run(["ip", "route", "add", BMC[0], "via", started.address])
        yield started


def test_a_network_outside_reaches_the_bmcs_and_no_more(street: Street, host: LabHost) -> None:
    def ask(program: str, source: str, target: tuple[str, int]) -> None:
        street.run([sys.executable, "-c", program, source, target[0], str(target[1])])

    assert host.address
    ask(CONNECT, ROUTER, BMC)
    ask(IGNORED, ROUTER, DNS)
    ask(IGNORED, OUTSIDE, BMC)


def test_ironic_deploys_what_was_exported(street: Street, host: LabHost, tmp_path: Path) -> None:
    ca = tmp_path / "bmc-ca.pem"
    inventory = checkout.inventory(host, tmp_path, **SPEC)
    for changed in (1, 0):
        done = checkout.run_playbook("export", inventory, "-e", f"export_ca_file={ca}")
        assert re.search(rf"^hypervisor .* changed={changed} .* failed=0 ", done.stdout, re.MULTILINE), ending(
            done.stdout
        )
    assert set(host.run(["ls", DIRECTORY]).stdout.split()) == {*KNOWN_OF_EXPORT} - {
        *("agent-config.yaml", "install-config.yaml", "cluster-instance.yaml", ".*.new")
    }
    nodes, own = tmp_path / "nodes.json", tmp_path / "inventory.yml"
    for file in (ca, nodes, own):
        file.write_text(host.read(f"{DIRECTORY}/{file.name}"))
    [first, _second] = json.loads(nodes.read_text())["nodes"]
    assert first["driver_info"]["redfish_password"] not in done.stdout

    listed = [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(own), "--host", "worker-1"]
    assert json.loads(subprocess.run(listed, check=True, capture_output=True).stdout)["bmc_host"] == BMC[0]

    images = tmp_path / "images"
    images.mkdir()
    shutil.copy(redfish_images.cd("ramdisk"), images / "ramdisk.iso")
    with image_server.start(street, images) as web, ironic.start(street, tmp_path) as service:
        client = str(ironic.environment() / "bin/baremetal")
        street.run(["env", *WITHOUT_KEYSTONE, client, "create", str(nodes)])

        def live(name: str) -> None:
            node = Node(service, name)
            assert node.macs() == [first["ports"][0]["address"]]
            node.go("manage", "manageable")
            node.go("provide", "available")
            node.change(instance_info={"boot_iso": web.url("/ramdisk.iso", ROUTER)})
            node.go("active", "active")
            wait_until("it boots", lambda: "booted from CD: ramdisk" in console(host, name))
            node.go("deleted", "available")

        service.each(live, [first["name"]])
    assert host.run(f"virsh domstate rehearsal-{first['name']}").stdout.strip() == "shut off"


def console(host: LabHost, node: str) -> str:
    return host.run(f"cat /var/log/libvirt/qemu/rehearsal-{node}-console.log", check=False).stdout
