# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a lab on its host: read them, and carry out single steps of a checkpoint."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, lock, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import listed
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import OF_BMC_MACHINES, Paths
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml, infra, vm_files, vm_host
from ansible_collections.nometal.ipi.plugins.module_utils._observe.image_chain import Image, chain_of
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint import images, store
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.state import (
    Checkpoint,
    Disk,
    Found,
    FoundNode,
    Node,
    Unfinished,
    Wanted,
    after_repair,
    giving_up,
    tag_of,
    waiting_for,
)

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

AT_ONCE = 5  # what libvirtd takes on from one client at a time
LISTED = 8
DEFINITION, NVRAM, TPM, BMC, MEDIUM = "definition.xml", "nvram", "tpm", "bmc.json", "medium"


@dataclass(frozen=True)
class Lab:
    name: str
    home: str
    """Where labs have their directories."""
    bmc_home: str
    stop_seconds: int = 300
    """That the nodes have to shut down."""


class CheckpointPort:
    """Nothing is done to a VM that is not the lab's."""

    def __init__(self, connection: Any, lab: Lab, wanted: Wanted) -> None:
        self._connection = connection
        self._lab = lab
        self._wanted = wanted
        self._store = store.Store(lab.home, lab.name)
        self._is_taking = False

    def read(self) -> None:
        """What there is, the steps name."""

    @cached_property
    def found(self) -> Found:
        """As it was before anything was done."""
        return self._look()

    def _look(self) -> Found:
        paths = Paths(self._lab.name)
        return Found(
            nodes=self._nodes(),
            checkpoints=self._store.checkpoints(),
            half=self._store.half(),
            unfinished=self._store.unfinished(),
            cluster=" ".join(sorted(infra.ids_of(paths))),
            installs=lock.is_held(paths.lock),
        )

    def apply(self, step: Step) -> None:
        actions: dict[str, Callable[[Any], None]] = {
            "begin": lambda _what: self._begin(),
            "begin restore": lambda _name: self._store.begin(self._waiting()),
            "pause": self._each(lambda domain: domain.suspend()),
            "resume": self._each(_resume),
            "shut down": self._shut_down,
            "power off": self._each(_power_off),
            "start": self._each(_start),
            "snapshot disk": lambda path: images.take(path, self._tag, self._user_of(path)),
            "revert disk": lambda path: images.revert(path, self._tag),
            "remove snapshot of": lambda path: images.remove(path, step.remark, self._user_of(path)),
            "copy state of": self._copy_state,
            "restore state of": self._restore_state,
            "write": lambda _what: self._write(),
            "withdraw": lambda what: self._store.withdraw(_name_in(what)),
            "remove": lambda what: self._store.remove(_name_in(what)),
            "end": lambda _what: self._end(),
            "end restore": self._end_restore,
        }
        actions[step.verb](step.target)

    def give_up(self) -> None:
        """What fails while a checkpoint is taken is made undone: nodes go on, and no part of it is left."""
        # If that fails, too, the next run finds what is noted.
        with suppress(OperatorError, OSError, libvirt.libvirtError):
            for step in giving_up(self._look()) if self._is_taking else ():
                self.apply(step)

    def _waiting(self) -> Unfinished:
        return waiting_for(after_repair(self.found), self._wanted)

    @property
    def _tag(self) -> str:
        return tag_of(self._wanted.name)

    def _nodes(self) -> dict[str, FoundNode]:
        found = (_Own(self._connection, domain) for domain in self._connection.listAllDomains())
        own = sorted((vm for vm in found if vm.mark.owner == self._lab.name), key=lambda vm: vm.name)
        self._roots = {vm.name: vm.root for vm in own}
        return {vm.name: vm.node() for vm in own}

    def _begin(self) -> None:
        self._store.begin(self._waiting())
        self._is_taking = True
        self._store.make(self._wanted.name)

    def _end_restore(self, name: str) -> None:
        self._store.restore_stop(name)
        self._store.end()

    def _end(self) -> None:
        self._store.end()
        self._is_taking = False

    def _each(self, action: Callable[[Any], object]) -> Callable[[Sequence[str]], None]:
        def act(names: Sequence[str]) -> None:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda name: action(self._domain(name)), names))

        return act

    def _shut_down(self, names: Sequence[str]) -> None:
        """As their power buttons do it."""
        self._each(_press_power_button)(names)
        for look in wait.looks(self._lab.stop_seconds, pause=0.5):
            on = [name for name in names if self._domain(name).isActive()]
            if not on:
                return
            seconds = look.seconds
        raise OperatorError(
            f"{listed(on, LISTED)} did not shut down within {seconds:.0f} s, so no checkpoint was taken, and what was "
            "stopped is started again. What shuts down later stays off until "
            f"`make checkpoint-remove NAME={self._wanted.name}`, which starts it. Switch them off by their BMCs, or "
            "take the checkpoint while they run (`running: true`, -e checkpoint_running=true)."
        )

    def _copy_state(self, name: str) -> None:
        kept, text = self._kept(name), vm_host.saved_xml(self._domain(name))
        root = domain_xml.parsed(text)
        files.write_whole(kept / DEFINITION, text, files.OWNER_ALONE)
        for path in (path for path in vm_files.nvram_of(root) if path.exists()):
            store.copy(path, kept / NVRAM / path.name)
        for source, target in ((vm_files.tpm_of(root), kept / TPM), (self._bmc_state(root), kept / BMC)):
            if source.exists():
                store.copy(source, target)
        medium = Path(domain_xml.medium_of(root) or "/nowhere")
        if medium.is_file():
            store.link(medium, kept / MEDIUM)

    def _restore_state(self, name: str) -> None:
        kept, domain = self._kept(name), self._domain(name)
        if domain.hasManagedSaveImage():
            domain.managedSaveRemove()
        text = (kept / DEFINITION).read_text(encoding="utf-8")
        self._connection.defineXML(text)
        root = domain_xml.parsed(text)
        for path in vm_files.nvram_of(root):
            store.replace_by(kept / NVRAM / path.name, path)
        store.replace_by(kept / TPM, vm_files.tpm_of(root))
        store.replace_by(kept / BMC, self._bmc_state(root))
        medium = Path(domain_xml.medium_of(root) or "/nowhere")
        if (kept / MEDIUM).exists() and medium.parent.is_dir() and not medium.exists():
            store.link(kept / MEDIUM, medium)

    def _write(self) -> None:
        """The last of it, by which it is one."""
        now = self._nodes()
        paused = {node.name for node in now.values() if node.is_paused}
        on = [node.name for node in now.values() if node.is_on and node.name not in paused]
        if on:
            raise OperatorError(
                f"{listed(on, LISTED)} was switched on meanwhile, so the checkpoint is not of one moment."
            )
        was_on = {*self._waiting().start, *paused}
        self._store.keep_stop(self._wanted.name)
        store.sync(self._store.directory_of(self._wanted.name))
        self._store.write(
            Checkpoint(
                name=self._wanted.name,
                taken=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                while_running=bool(paused),
                cluster=self.found.cluster,
                nodes=tuple(_noted(node, was_on=node.name in was_on) for node in now.values()),
            )
        )

    def _kept(self, name: str) -> Path:
        return self._store.directory_of(self._wanted.name) / name

    def _bmc_state(self, root: Any) -> Path:
        directory = Path(self._lab.bmc_home) / self._lab.name / OF_BMC_MACHINES
        return directory / f"{root.findtext('uuid')}.json"

    def _user_of(self, path: str) -> Any:
        """The VM that has a disk open now, if one has."""
        for name, root in self._roots.items():
            files_of = {source.get("file") for source in root.iterfind("devices/disk/source")}
            if path in files_of:
                domain = self._domain(name)
                return domain if domain.isActive() else None
        return None

    def _domain(self, name: str) -> Any:
        return self._connection.lookupByName(name)


class _Own:
    """A VM as libvirt has it."""

    def __init__(self, connection: Any, domain: Any) -> None:
        self._connection = connection
        self._domain = domain
        self.name = domain.name()
        self.root = domain_xml.parsed(vm_host.saved_xml(domain))
        self.mark = domain_xml.mark_of(self.root)

    def node(self) -> FoundNode:
        directory = vm_host.directory_of_pool(self._connection, self.mark.pool)
        own = domain_xml.own_disks(self.root, directory, self.mark.disks)
        attached = {f"{directory}/{name}": domain_xml.disk_of(name, each).format for name, each in own.items()}
        others = [path for path in self._disks() if path not in attached]
        lost = [path for path in attached if not Path(path).exists()]
        return FoundNode(
            name=self.name,
            uuid=self._domain.UUIDString(),
            is_on=bool(self._domain.isActive()),
            is_paused=self._domain.state()[0] == libvirt.VIR_DOMAIN_PAUSED,
            persistent=bool(self._domain.isPersistent()),
            is_saved=bool(self._domain.isPersistent() and self._domain.hasManagedSaveImage()),
            disks=tuple(images.look(path, declared) for path, declared in attached.items() if path not in lost),
            lacking=tuple(Path(path).name for path in [*lost, *self._bases(others, directory)]),
            others=tuple(others),
        )

    def _disks(self) -> list[str]:
        sources = self.root.iterfind("devices/disk[@device='disk']/source")
        named = (next(filter(None, map(source.get, ("file", "dev", "volume", "name"))), "") for source in sources)
        return [path for path in named if path]

    def _bases(self, others: list[str], directory: str) -> list[str]:
        """Its disks that others are based on, as after an external snapshot."""
        own = {f"{directory}/{name}" for name in self.mark.disks}
        return [path for other in others for path in chain_of(Image(other)).files[1:] if path in own]


def _noted(node: FoundNode, *, was_on: bool) -> Node:
    disks = tuple(Disk(disk.name, disk.size_bytes, disk.used_bytes) for disk in node.disks)
    return Node(name=node.name, uuid=node.uuid, was_on=was_on, disks=disks)


def _press_power_button(domain: Any) -> None:
    _while_on(domain, domain.shutdown)


def _power_off(domain: Any) -> None:
    _while_on(domain, domain.destroy)


def _resume(domain: Any) -> None:
    if domain.isActive() and domain.state()[0] == libvirt.VIR_DOMAIN_PAUSED:
        domain.resume()


def _start(domain: Any) -> None:
    if not domain.isActive():
        domain.create()


def _while_on(domain: Any, action: Callable[[], object]) -> None:
    """It may go off by itself meanwhile."""
    try:
        if domain.isActive():
            action()
    except libvirt.libvirtError:
        if domain.isActive():
            raise


def _name_in(what: str) -> str:
    return what.rpartition(" ")[2]
