# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt has left of a lab on a host from which it was uninstalled: its files, and what still runs.

Nothing but Python's own library is needed. A thing is the lab's by the mark in its definition, which goes last.
"""

from __future__ import annotations

import os
import signal
import stat
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    OperatorError,
    refusals_of,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import RUNNING_NETWORKS, HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import is_lab_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity, owner_of_pool
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import POOL_KINDS
from ansible_collections.nometal.ipi.plugins.module_utils._observe import disk_users, volume_marks
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import ports_of, read_links
from ansible_collections.nometal.ipi.plugins.module_utils._observe.media_files import is_medium
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.directory import PoolDirectory
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth import kernel
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import leftovers as vm_leftovers

PROGRAMS = ("/usr/sbin/libvirtd", "/usr/sbin/virtqemud", "/usr/sbin/virtnetworkd", "/usr/sbin/virtstoraged")
DEFINITIONS = {
    "VM": Path("/etc/libvirt/qemu"),
    "network": Path("/etc/libvirt/qemu/networks"),
    "pool": Path("/etc/libvirt/storage"),
}
DNSMASQ = Path("/var/lib/libvirt/dnsmasq")
PROCESSES = Path("/proc")
DAMAGED = "damaged"
"""In place of a definition that cannot be read."""


@dataclass(frozen=True)
class Left:
    kind: str
    path: Path
    """Its definition."""
    root: ET.Element

    @property
    def name(self) -> str:
        return (self.root.findtext("name") or "").strip()

    @property
    def owner(self) -> str:
        if self.kind == "pool":
            return owner_of_pool(self.name, self.uuid)
        return xml.owner_of(self.root) or ""

    @property
    def uuid(self) -> str:
        return (self.root.findtext("uuid") or "").strip()

    @property
    def directory(self) -> PoolDirectory:
        """Of a pool."""
        return PoolDirectory(self.root.findtext("target/path") or "/nowhere", self.name, self.uuid)

    @property
    def is_directory(self) -> bool:
        return self.kind == "pool" and self.root.get("type") in POOL_KINDS

    @property
    def is_damaged(self) -> bool:
        return self.root.tag == DAMAGED

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class UninstalledLibvirt:
    """Of one lab."""

    def __init__(self, lab: str) -> None:
        self._lab = lab
        found = [left for kind, directory in DEFINITIONS.items() for left in _definitions(kind, directory)]
        self._own = [left for left in found if left.owner == lab]
        self._others = [left for left in found if left.owner != lab]
        self._pools = {left.name: str(left.directory.path) for left in found if left.is_directory}
        self.kept: list[str] = []

    def refuse_installed(self) -> None:
        there = [program for program in PROGRAMS if os.path.lexists(program)]
        if there:
            raise OperatorError(f"{', '.join(there)} is installed: what libvirt has is removed by libvirt itself.")

    def read(self) -> None:
        """What there is of it, the steps to remove it name."""

    def steps(self) -> list[Step]:
        """What stays is listed with its reason. Disks are known by definitions of VMs and pools: these outlive them."""
        running = [left for left in self._own if left.kind == "VM" and _runs(left.name)]
        self.kept = [f"{left} runs on: end its process qemu-system first" for left in running]
        disks, strange = self._disks()
        in_use = self._users_of(disks)
        disks = [path for path in disks if path not in in_use]
        self.kept += [f"{path}, which is not marked as the lab's" for path in strange]
        self.kept += [f"{path}, {reason}" for path, reason in in_use.items()]
        staying = {"VM": bool(in_use), "pool": bool(strange or in_use), "network": False}
        gone = [left for left in self._own if not staying[left.kind] and left not in running]
        return [
            *(Step("remove disk", str(disk)) for disk in disks),
            *(Step("remove", str(left)) for left in sorted(gone, key=lambda left: list(DEFINITIONS).index(left.kind))),
        ]

    def apply(self, step: Step) -> None:
        try:
            self._apply(step)
        except OSError as error:
            raise OperatorError(f"`{step}` failed: {error}.") from error

    def _apply(self, step: Step) -> None:
        if step.verb == "remove disk":
            Path(step.target).unlink(missing_ok=True)
            return
        left = next(left for left in self._own if str(left) == step.target)
        {"VM": self._remove_vm, "network": self._remove_network, "pool": self._remove_pool}[left.kind](left)
        for path in (left.path.parent / "autostart" / left.path.name, left.path):
            path.unlink(missing_ok=True)

    def _disks(self) -> tuple[list[Path], list[Path]]:
        """In its pools: those that are marked as the lab's, and what is not."""
        disks: list[Path] = []
        strange: list[Path] = []
        mounts = removal.mount_points()
        for pool in (left for left in self._own if left.kind == "pool"):
            for path in sorted(pool.directory.contents()):
                is_ours = not removal.is_mounted(path, mounts) and self._is_ours(pool, path)
                (disks if is_ours else strange).append(path)
        return disks, strange

    def _users_of(self, disks: list[Path]) -> dict[Path, str]:
        """Disks that others use or may use, with the reason. Of VMs of others it is not asked what they have."""
        wanted = disk_users.wanted_of(map(str, disks))
        uses, doubts = disk_users.in_pools(self._pools, wanted, lambda _path: False)
        used = {Path(use.file): f"which is {use.how}" for use in (*uses, *disk_users.open_by(wanted))}
        maybe = [f"for {doubt}" for doubt in doubts] + [
            "which another VM may use"
            if left.kind == "VM"
            else f"for {left.path}, which may tell of a user, is damaged"
            for left in self._others
            if left.kind == "VM" or (left.kind == "pool" and left.is_damaged)
        ]
        return {path: used.get(path) or maybe[0] for path in disks if maybe or path in used}

    def _is_ours(self, pool: Left, path: Path) -> bool:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        if pool.uuid == Identity(self._lab).uuid_of("media-pool"):
            return is_medium(path)
        return path in self._marked_by_vms or volume_marks.maker_of(path) == self._lab

    @cached_property
    def _marked_by_vms(self) -> set[Path]:
        """By the mark of its VM, which names the disks that were made for it."""
        directories = {left.name: left.directory.path for left in self._own if left.kind == "pool"}
        marks = [mark for left in self._own for mark in left.root.iterfind(f"metadata/{xml.OURS}vm")]
        return {
            directories[mark.get("pool", "")] / Path(disk.get("name", "")).name
            for mark in marks
            for disk in mark.iterfind(f"{xml.OURS}disk")
            if mark.get("pool") in directories
        }

    def _remove_vm(self, left: Left) -> None:
        vm_leftovers.forget_nvram(left.name)
        vm_leftovers.forget_logs(left.name)

    def _remove_network(self, left: Left) -> None:
        bridge = left.root.find("bridge")
        name = bridge.get("name", "") if bridge is not None else ""
        HookEntry(f"{left.name}.ports").remove()
        for process in _processes(f"--conf-file={DNSMASQ}/{left.name}.conf"):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        for path in (*(DNSMASQ / f"{left.name}.{end}" for end in ("conf", "addnhosts", "hostsfile")), *_leases(name)):
            path.unlink(missing_ok=True)
        for end in ("xml", "pid"):
            (RUNNING_NETWORKS / f"{left.name}.{end}").unlink(missing_ok=True)
        mac = left.root.find("mac")
        _delete_bridge(name, mac.get("address", "") if mac is not None else "")

    def _remove_pool(self, left: Left) -> None:
        self.kept += left.directory.remove(lambda path: self._is_ours(left, path))


def _definitions(kind: str, directory: Path) -> Iterator[Left]:
    return (Left(kind, path, _root_of(path)) for path in sorted(directory.glob("*.xml")))


def _root_of(path: Path) -> ET.Element:
    with suppress(ET.ParseError, OSError):
        return ET.parse(path).getroot()  # noqa: S314 - libvirt's own files, only root writes them
    return ET.Element(DAMAGED)


def _leases(bridge: str) -> list[Path]:
    return [DNSMASQ / f"{bridge}.{end}" for end in ("status", "macs")] if bridge else []


def _delete_bridge(name: str, mac: str) -> None:
    """As libvirt made it, by its address, and with nothing on it any more."""
    links = read_links()
    bridge = links.get(name)
    if bridge and bridge.kind == "bridge" and bridge.mac == mac.lower() and not ports_of(name, links):
        with suppress(OSError, OperatorError):  # somebody else has removed it
            kernel.delete(name)


def _runs(vm: str) -> bool:
    return any(True for _process in _processes(f"guest={vm},"))


def _processes(word: str) -> Iterator[int]:
    """One of whose arguments begins like that."""
    for path in PROCESSES.glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if any(each.startswith(word.encode()) for each in words):
                yield int(path.parent.name)


class LabLeftovers(Resource[None, UninstalledLibvirt]):
    def desired(self) -> None:
        lab = self.params["lab"]
        if not is_lab_name(lab):
            raise OperatorError(f"lab: {lab!r} is not the name of a lab: lower case letters, digits and inner hyphens.")

    def open(self) -> AbstractContextManager[UninstalledLibvirt]:
        return nullcontext(UninstalledLibvirt(self.params["lab"]))

    def conflicts(self) -> list[str]:
        return refusals_of(self.port.refuse_installed)

    def plan(self, _current: None, _desired: None) -> list[Step]:
        self._steps = self.port.steps()
        return self._steps

    def result(self) -> dict[str, Any]:
        lines = [f"{step}\n".replace("remove ", "", 1) for step in self._steps]
        return {"kept": self.port.kept, "diff": {"before": "".join(lines), "after": ""}}
