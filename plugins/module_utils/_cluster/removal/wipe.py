# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installation leaves on nodes, and nodes as they were before it: off, with blank disks and empty drives."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._agent.redfish import BmcFailed, NotNow, Redfish
from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import boot_override
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Firmware
from ansible_collections.nometal.ipi.plugins.module_utils._observe import (
    disk_users,
    domain_xml,
    node_vms,
    vm_files,
    vm_host,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import leftovers as vm_leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.wipe import empty_drive, make_blank, switch_off

try:
    import libvirt
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

AT_ONCE = 8
"""A large node's disk has many thousands of pieces to look at."""


@dataclass(frozen=True)
class Traces:
    """What tells a node that was installed from one that is new."""

    vm_name: str
    running: bool = False
    written: tuple[str, ...] = ()
    """Disks that are not blank."""
    medium: str = ""
    override: str = ""
    nvram: tuple[str, ...] = ()
    """Files; there is none before the first start."""
    has_spoken: bool = False
    """Whether there is something in its console's log."""

    @property
    def is_used(self) -> bool:
        return bool(self.running or self.written or self.medium or self.override or self.nvram)


def plan(traces: Iterable[Traces]) -> list[Step]:
    """All are switched off before anything else: their cluster switches each other on."""
    found = list(traces)
    steps = [Step("switch off", node.vm_name) for node in found if node.running]
    for node in found:
        # First: once the other traces are gone, nothing tells that it is the cluster's.
        steps += [Step("rotate console of", node.vm_name)] if node.has_spoken and node.is_used else []
        steps += [Step("blank", path) for path in node.written]
        steps += [Step("eject medium of", node.vm_name)] if node.medium else []
        steps += [Step("clear boot override of", node.vm_name)] if node.override else []
        steps += [Step("remove", path) for path in node.nvram]
    return steps


class Nodes:
    """The lab's nodes on this host. Nothing is done to VMs of the same names that are not the lab's."""

    def __init__(self, connection: Any, lab: str, nodes: Sequence[Mapping[str, Any]], bmc_home: Path) -> None:
        self._connection = connection
        self._lab = lab
        self._nodes = {node["vm_name"]: node for node in nodes}
        self._bmc_home = bmc_home
        self._bmcs_answer = True

    def look(self) -> tuple[Traces, ...]:
        own = self._own()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            written = list(pool.map(lambda root: _written(_disks(root, self._connection)), own.values()))
        running = {domain.name() for domain in self._connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)}
        return tuple(
            Traces(
                vm_name=name,
                running=name in running,
                written=disks,
                medium=domain_xml.medium_of(root),
                override=boot_override.of(root),
                nvram=_nvram(root),
                has_spoken=vm_leftovers.has_spoken(name),
            )
            for (name, root), disks in zip(own.items(), written)
        )

    def users(self) -> list[str]:
        """Who else depends on what the nodes' disks hold, and would lose it."""
        own = self._own()
        files = [path for root in own.values() for path in _disks(root, self._connection)]
        return disk_users.told(self._connection, files, list(own))

    def switch_off(self, vm_name: str) -> None:
        switch_off(self._connection, vm_name)

    def blank(self, path: str) -> None:
        """As large as it was. One that was damaged is made as it was declared."""
        found = (_disks(root, self._connection) for root in self._own().values())
        kind = next(disks[path] for disks in found if path in disks)
        if not _is_damaged(path, kind):
            make_blank(path)
            return
        disks = [disk for node in self._nodes.values() for disk in node.get("disks", ())]
        size = next((disk["size_bytes"] for disk in disks if disk.get("name") == Path(path).name), None)
        if size is None:
            raise OperatorError(
                f"{path} is damaged, and no node of lab {self._lab} declares it: remove it from its VM."
            )
        run("qemu-img", "create", "-q", "-f", kind, path, str(size))

    def eject(self, vm_name: str) -> None:
        """By its BMC, which also removes its copy, unless that is out of order."""
        self._by_bmc(vm_name, Redfish.eject)
        if domain_xml.medium_of(_saved(self._connection.lookupByName(vm_name))):
            empty_drive(self._connection, vm_name)

    def clear_override(self, vm_name: str) -> None:
        self._by_bmc(vm_name, Redfish.forget_overrides)
        root = _saved(self._connection.lookupByName(vm_name))
        if boot_override.of(root):
            boot_override.forget(root)
            self._connection.defineXML(etree.tostring(root, encoding="unicode"))

    def rotate_console(self, vm_name: str) -> None:
        vm_leftovers.rotate_console(vm_name)

    def _own(self) -> dict[str, Any]:
        roots = {name: _saved(domain) for name, domain in self._domains().items()}
        return {name: root for name, root in roots.items() if domain_xml.mark_of(root).owner == self._lab}

    def _domains(self) -> dict[str, Any]:
        there = {domain.name(): domain for domain in self._connection.listAllDomains()}
        return {name: there[name] for name in self._nodes if name in there}

    def _by_bmc(self, vm_name: str, wish: Callable[[Redfish], str]) -> None:
        bmc = self._bmc(vm_name) if self._bmcs_answer else None
        if bmc is None:
            return
        try:
            wish(bmc)
        except NotNow:
            self._bmcs_answer = False  # one service is the BMC of all of them: nobody waits for it again
        except BmcFailed:
            return

    def _bmc(self, vm_name: str) -> Redfish | None:
        node, own = self._nodes[vm_name], self._bmc_home / self._lab
        scheme, _colon, place = str((node.get("bmc") or {}).get("address", "")).partition(":")
        protocol, _plus, transport = scheme.partition("+")
        if not protocol.startswith("redfish"):
            return None
        with suppress(OperatorError, OSError, KeyError):
            login = credentials.read(credentials.file_of(self._bmc_home, self._lab))[vm_name]
            told = {
                "url": f"{transport or 'https'}:{place}",
                "ca": "" if transport == "http" else (own / "tls/ca.pem").read_text(encoding="ascii"),
                "username": login.username,
                "password": login.password,
                "boot": "Cd",
                "mode": "bios" if node.get("firmware") == Firmware.BIOS else "uefi",
            }
            return Redfish(told, "")
        return None


def _saved(domain: Any) -> Any:
    return domain_xml.parsed(vm_host.saved_xml(domain))


def _disks(root: Any, connection: Any) -> dict[str, str]:
    """Formats, by path, of disks that were made for it. Disks that were added by hand are left alone."""
    mark = domain_xml.mark_of(root)
    directory = vm_host.directory_of_pool(connection, mark.pool)
    found = ((disk.find("source"), disk.find("driver")) for disk in root.iterfind("devices/disk[@device='disk']"))
    kinds = {source.get("file"): driver.get("type") for source, driver in found if source is not None}
    paths = [Path(path) for path in kinds if path and Path(path).name in mark.disks and Path(path).exists()]
    return {str(path): kinds[str(path)] for path in paths if not directory or path.parent == Path(directory)}


def _written(disks: Mapping[str, str]) -> tuple[str, ...]:
    found = disks.items()
    return tuple(path for path, kind in found if _is_damaged(path, kind) or node_vms.content(path) != node_vms.BLANK)


def _is_damaged(path: str, kind: str) -> bool:
    """A run was killed while writing it anew."""
    info = json.loads(run("qemu-img", "info", "--force-share", "--output=json", path))
    return bool(info["format"] != kind or not info["virtual-size"])


def _nvram(root: Any) -> tuple[str, ...]:
    return tuple(str(path) for path in vm_files.nvram_of(root) if path.exists())
