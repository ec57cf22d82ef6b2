# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' VMs: what runs, what is in their drives, and what their disks hold."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Start
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml, vm_host

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None
if TYPE_CHECKING:
    from collections.abc import Iterable

SIGNATURE_AT, SIGNATURE = 32768 + 40, b"NOMETAL"
"""The name of the image's ISO 9660 file system: on a disk that a rehearsal has written, it comes first."""
HEAD_BYTES = 65536
BLANK, OURS, SYSTEM, LOST = "blank", "rehearsal", "system", "lost"


@dataclass(frozen=True)
class NodeVm:
    """What there is to know of a node before it is touched."""

    name: str
    vm_name: str
    running: bool
    medium: str
    """The file in its drive."""
    nvram: str
    macs: list[str]
    disks: dict[str, str] = field(default_factory=dict)
    """By path, what is on it."""

    @property
    def lost(self) -> list[str]:
        """Disks whose files have been removed."""
        return [path for path, content in self.disks.items() if content == LOST]

    @property
    def has_system(self) -> bool:
        return SYSTEM in self.disks.values()

    @property
    def in_use(self) -> str:
        """Why it is not to be touched; empty when it may be."""
        if self.has_system:
            return "carries an installed system"
        if self.running:
            return "is switched on"
        return "has a medium in its drive" if self.medium else ""


def start_of(connection: Any, vm_name: str) -> Start | None:
    """None: it is off."""
    try:
        domain = connection.lookupByName(vm_name)
        root = domain_xml.parsed(domain.XMLDesc()) if domain.isActive() else None
    except libvirt.libvirtError:
        return None
    return None if root is None else _start(root)


def _start(root: Any) -> Start:
    numbered = {int(boot.get("order")): boot.getparent() for boot in root.iterfind("devices/*/boot")}
    down = root.iterfind("devices/interface/link[@state='down']/../mac")
    return Start(
        order=[numbered[number].get("device", "interface") for number in sorted(numbered)],
        medium=domain_xml.medium_of(root),
        unplugged=[mac.get("address") for mac in down],
        read_only=[target.get("dev") for target in root.iterfind("devices/disk[@device='disk']/readonly/../target")],
    )


def look(connection: Any, nodes: Iterable[dict[str, Any]]) -> list[NodeVm]:
    """Of those that are there."""
    there = {domain.name(): domain for domain in connection.listAllDomains()}
    return [_node_vm(node["name"], there[node["vm_name"]]) for node in nodes if node["vm_name"] in there]


def _node_vm(name: str, domain: Any) -> NodeVm:
    root = domain_xml.parsed(domain.XMLDesc() if domain.isActive() else vm_host.saved_xml(domain))
    nvram = domain_xml.parsed(vm_host.saved_xml(domain)).findtext("os/nvram", default="")
    files = [source.get("file", "") for source in root.iterfind("devices/disk[@device='disk']/source")]
    return NodeVm(
        name=name,
        vm_name=domain.name(),
        running=bool(domain.isActive()),
        medium=domain_xml.medium_of(root),
        nvram=nvram,
        macs=domain_xml.macs_of(root),
        disks={path: content(path) for path in files if path},
    )


def content(path: str) -> str:
    """What a disk holds, also while its VM runs."""
    if not Path(path).exists():
        return LOST
    found = json.loads(run("qemu-img", "map", "--force-share", "--output=json", path))
    if not any(part["data"] and not part["zero"] for part in found):
        return BLANK
    with tempfile.NamedTemporaryFile() as head:
        kind = _format(path)
        run(
            "qemu-img",
            "dd",
            "-U",
            "-f",
            kind,
            "-O",
            "raw",
            f"bs={HEAD_BYTES}",
            "count=1",
            f"if={path}",
            f"of={head.name}",
        )
        data = Path(head.name).read_bytes()
    return OURS if data[SIGNATURE_AT : SIGNATURE_AT + len(SIGNATURE)] == SIGNATURE else SYSTEM


def _format(path: str) -> str:
    return str(_info(path)["format"])


def _info(path: str) -> dict[str, Any]:
    return json.loads(run("qemu-img", "info", "--force-share", "--output=json", path))
