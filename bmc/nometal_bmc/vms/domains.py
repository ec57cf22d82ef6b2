# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's VMs in libvirt. Nothing else of this package talks to libvirt about them; threads come in at once."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Protocol, TypeVar

import libvirt
from lxml import etree

from nometal_bmc.answers import not_found
from nometal_bmc.vms.connection import Connection
from nometal_bmc.vms.definition import parse, part, remove, text_of, values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nometal_bmc.config.settings import Config

LOG = logging.getLogger(__name__)
T = TypeVar("T")

DRIVE = "devices/disk[@device='cdrom']"

INACTIVE = libvirt.VIR_DOMAIN_XML_INACTIVE
EDITABLE = INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE  # without SECURE, a redefined VM has lost its passwords


class Current(Protocol):
    """Where the configuration is; it may be another one each time."""

    @property
    def config(self) -> Config: ...


class Vanished(Exception):  # noqa: N818 - reads as a sentence where it is caught
    """The VM is not there."""


class Domains:
    """The VMs that the configuration names; others do not exist."""

    def __init__(self, current: Current) -> None:
        self._current = current
        # libvirt serves five calls of a connection at once, and starting a VM is a long one: reads have their own.
        self._reading = Connection(lambda: current.config.libvirt_uri)
        self._writing = Connection(lambda: current.config.libvirt_uri)
        self._locks: dict[str, threading.RLock] = {}
        self._locks_lock = threading.Lock()
        self._names: tuple[Config | None, dict[str, str]] = (None, {})

    @property
    def names(self) -> dict[str, str]:
        """The configured VMs: name by UUID."""
        config = self._current.config
        of, names = self._names
        if of is not config:
            names = {system.uuid: system.name for system in config.systems}
            self._names = (config, names)
        return names

    def connection(self) -> libvirt.virConnect:
        """Where changes are made; it is alive."""
        return self._writing.get()

    def domain(self, uuid: str) -> libvirt.virDomain:
        """The VM, over a connection that is alive."""
        return self._existing(uuid, lambda: self._writing.look_up(uuid))

    def ask(self, uuid: str, question: Callable[[libvirt.virDomain], T]) -> T:
        """Ask libvirt something that changes nothing: it may be asked twice."""
        return self._existing(uuid, lambda: self._reading.ask(uuid, question))

    def read(self, uuid: str) -> etree._Element:
        """The persistent definition."""
        return parse(self.ask(uuid, lambda domain: domain.XMLDesc(INACTIVE)))

    def read_live(self, uuid: str) -> etree._Element | None:
        """What is running now, or None if the VM is off."""
        return _running(self.read_present(uuid))

    def read_present(self, uuid: str) -> etree._Element:
        """What the machine is made of: of one that runs, without what waits for its next start."""
        return parse(self.ask(uuid, lambda domain: domain.XMLDesc(0)))

    def read_both(self, uuid: str) -> tuple[etree._Element, etree._Element | None]:
        """The persistent definition, and what is running now."""
        xml, present = self.ask(uuid, lambda domain: (domain.XMLDesc(INACTIVE), domain.XMLDesc(0)))
        return parse(xml), _running(parse(present))

    def active(self, uuid: str) -> bool:
        return bool(self.ask(uuid, lambda domain: domain.isActive()))

    def existing(self) -> list[str]:
        """Those of the configured VMs that are there, in the configuration's order."""
        found = {domain.UUIDString() for domain in self._reading.run(libvirt.virConnect.listAllDomains)}
        return [uuid for uuid in self.names if uuid in found]

    def files(self) -> set[str]:
        """What any VM of this libvirt, the lab's or not, has as a disk or disc, now or after its next start."""
        found: set[str] = set()
        for domain in self._reading.run(libvirt.virConnect.listAllDomains):
            with suppress(Vanished), _vanishing():
                for flags in (INACTIVE, 0):
                    found.update(values(parse(domain.XMLDesc(flags)), "devices/disk/source/@file"))
        return found

    def lock(self, uuid: str) -> threading.RLock:
        """What everyone holds who changes this VM."""
        with self._locks_lock:
            return self._locks.setdefault(uuid, threading.RLock())

    @contextmanager
    def edit(self, uuid: str) -> Iterator[etree._Element]:
        """Change the persistent definition, passwords included; an exception leaves it as it was."""
        with self.lock(uuid):
            domain = self.domain(uuid)
            root = parse(domain.XMLDesc(EDITABLE))
            before = text_of(root)
            yield root
            if text_of(root) != before:
                domain.connect().defineXML(text_of(root))

    def cd(self, uuid: str) -> str | None:
        """The file in the CD-ROM drive, or None if the drive is empty."""
        return next(iter(values(_drive(self.read(uuid)), "source/@file")), None)

    def set_cd(self, uuid: str, path: str | None) -> None:
        """Put a file into the CD-ROM drive, or empty it; a running guest sees it at once."""
        with self.edit(uuid) as root:
            _fill(_drive(root), path)
            live = self.read_live(uuid)
            if live is not None:
                self._set_live_cd(uuid, _drive(live), path)

    def empty_lost_cd(self, uuid: str, live: etree._Element) -> None:
        """Empty the drive for good when libvirt had to start the VM without its disc, since the file was gone.

        A server with an image that cannot be reached starts as well, and shows a drive with nothing in it.
        """
        with self.lock(uuid):
            lost = values(self.read(uuid), f"{DRIVE}/source[@startupPolicy='optional']/@file")
            ours = lost and Path(lost[0]).parent == self._current.config.media.directory
            if ours and not live.findall(f"{DRIVE}/source") and not Path(lost[0]).exists():
                LOG.warning("The disc %s of %s is gone: it has started with an empty drive", *lost, self.names[uuid])
                self.set_cd(uuid, None)

    def refresh_pool(self, directory: Path) -> None:
        """Have libvirt look at what is there now, if it has a pool of this directory."""
        try:
            self.connection().storagePoolLookupByTargetPath(str(directory)).refresh()
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_STORAGE_POOL:
                LOG.warning("The pool of %s was not refreshed: %s", directory, error)

    def _set_live_cd(self, uuid: str, drive: etree._Element, path: str | None) -> None:
        _fill(drive, path)
        # Forced: a guest may have locked the tray, which does not stop the BMC of a server either.
        flags = libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_DEVICE_MODIFY_FORCE
        self.domain(uuid).updateDeviceFlags(text_of(drive), flags)

    def _existing(self, uuid: str, question: Callable[[], T]) -> T:
        if uuid not in self.names:
            raise not_found(f"System {uuid}")
        try:
            with _vanishing():
                return question()
        except Vanished as error:
            raise not_found(f"System {uuid}") from error


@contextmanager
def _vanishing() -> Iterator[None]:
    """Raise Vanished if a VM is not there, or no longer; whatever else libvirt fails with is a fault."""
    try:
        yield
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            raise Vanished from error
        raise


def _running(root: etree._Element) -> etree._Element | None:
    return root if root.get("id") else None


def _drive(root: etree._Element) -> etree._Element:
    drive = root.find(DRIVE)
    if drive is None:
        raise not_found(f"A CD-ROM drive in {root.findtext('name')}")
    return drive


def _fill(drive: etree._Element, path: str | None) -> None:
    remove(drive, "source")
    target = part(drive, "target")
    target.attrib.pop("tray", "")
    drive.set("type", "file")
    if path:
        # Optional: a file that is gone keeps nobody from starting the VM.
        target.addprevious(etree.Element("source", file=path, startupPolicy="optional"))
