# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's VMs in libvirt. Nothing else of this package talks to libvirt about them; threads come in at once."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Protocol, TypeVar

import libvirt
from lxml import etree

from nometal_bmc.answers import Refused, not_found, unavailable
from nometal_bmc.machine import notes
from nometal_bmc.machine.definition import DRIVE, drive_of, parse, part, remove, running, text_of, values
from nometal_bmc.vms.connection import Connection
from nometal_bmc.vms.happenings import Happenings
from nometal_bmc.vms.power_states import PowerStates
from nometal_bmc.vms.restarts import Restarts
from nometal_bmc.vms.starts import Starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nometal_bmc.config.settings import BrokerConfig

LOG = logging.getLogger(__name__)
T = TypeVar("T")

PRESENT = 0
INACTIVE = libvirt.VIR_DOMAIN_XML_INACTIVE
EDITABLE = INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE  # without SECURE, a redefined VM has lost its passwords


PATIENCE_SECONDS = 8.0
"""How long a call waits for another one about the same VM: QEMU may have stopped, and that one then never ends."""
PAUSES = (
    libvirt.VIR_DOMAIN_PAUSED_UNKNOWN,
    libvirt.VIR_DOMAIN_PAUSED_USER,
    libvirt.VIR_DOMAIN_PAUSED_IOERROR,
    libvirt.VIR_DOMAIN_PAUSED_WATCHDOG,
)
ENDING_SECONDS = 1.0
"""How long it takes at most to switch a VM off whose QEMU listens."""


class Current(Protocol):
    """Where the configuration is; it may be another one each time."""

    @property
    def config(self) -> BrokerConfig: ...


class Vanished(Exception):  # noqa: N818 - reads as a sentence where it is caught
    """The VM is not there."""


class Domains:
    """The VMs that the configuration names; others do not exist."""

    def __init__(self, current: Current, clock: Callable[[], float] = time.monotonic) -> None:
        self._current = current
        self._clock = clock
        # libvirt serves five calls of a connection at once, so each thread has its own.
        self._own = threading.local()
        self._locks: dict[str, threading.RLock] = {}
        self._locks_lock = threading.Lock()
        self.starts = Starts()
        self.power_states = PowerStates(current)
        self.restarts = Restarts()
        self._starting: set[str] = set()
        self._ending: dict[object, tuple[str, float]] = {}
        self._remembered: dict[tuple[str, int], str] = {}
        self.happenings = Happenings()

    @property
    def names(self) -> dict[str, str]:
        """The configured VMs: name by UUID."""
        return self._current.config.names

    @property
    def media(self) -> Path | None:
        """The directory of the lab's images."""
        return self._current.config.media

    @property
    def _connection(self) -> Connection:
        if not hasattr(self._own, "connection"):
            self._own.connection = Connection(lambda: self._current.config.libvirt_uri)
        connection: Connection = self._own.connection
        return connection

    def connection(self) -> libvirt.virConnect:
        """This thread's; it is alive."""
        return self._connection.get()

    def domain(self, uuid: str) -> libvirt.virDomain:
        """The VM, over a connection that is alive."""
        return self._existing(uuid, lambda: self._connection.look_up(uuid))

    def ask(self, uuid: str, question: Callable[[libvirt.virDomain], T]) -> T:
        """Ask libvirt something that changes nothing: it may be asked twice."""
        return self._existing(uuid, lambda: self._connection.ask(uuid, question))

    def read(self, uuid: str) -> etree._Element:
        """The persistent definition."""
        return parse(self.ask(uuid, lambda domain: domain.XMLDesc(INACTIVE)))

    def read_live(self, uuid: str) -> etree._Element | None:
        """What is running now, or None if the VM is off."""
        return running(self.read_present(uuid))

    def read_present(self, uuid: str) -> etree._Element:
        """What the machine is made of: of one that runs, without what waits for its next start."""
        return parse(self.ask(uuid, lambda domain: domain.XMLDesc(PRESENT)))

    def texts(self, uuid: str, *flags: int) -> list[str]:
        """Definitions, as libvirt writes them; while it waits for a QEMU to begin or end, as it wrote them last."""
        if uuid in self.names and self._is_busy(uuid):
            remembered = [self._remembered.get((uuid, flag)) for flag in flags]
            if None in remembered:
                raise self.silent(uuid)
            return [text for text in remembered if text is not None]
        found = self.ask(uuid, lambda domain: [domain.XMLDesc(flag) for flag in flags])
        self._remembered.update({(uuid, flag): text for flag, text in zip(flags, found)})
        return found

    def shown(self, uuid: str) -> tuple[str, str | None, bool]:
        """The persistent definition, what is present unless that is the same, and whether it is paused."""
        if self._is_busy(uuid):
            [definition, remembered] = self.texts(uuid, INACTIVE, PRESENT)
            return definition, remembered, False
        definition, present, paused = self.ask(uuid, _shown)
        self._remembered.update({(uuid, INACTIVE): definition, (uuid, PRESENT): present or definition})
        return definition, present, paused

    @property
    def restart_timeout(self) -> int:
        return self._current.config.restart_timeout

    def active(self, uuid: str) -> bool:
        if uuid in self._starting:
            return False
        if uuid in self.names and self._ends_slowly(uuid):
            return True
        return bool(self.ask(uuid, lambda domain: domain.isActive()))

    def existing(self) -> list[str]:
        """Those of the configured VMs that are there, in the configuration's order."""
        # One by one: libvirt's list of all VMs waits for each of them.
        return [uuid for uuid in self.names if self._is_there(uuid)]

    def _is_there(self, uuid: str) -> bool:
        if self._is_busy(uuid):
            return True
        try:
            self._connection.look_up(uuid)
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
            return False
        return True

    @contextmanager
    def starting(self, uuid: str) -> Iterator[etree._Element]:
        """While the VM of this definition is switched on: libvirt says nothing about it until its QEMU runs."""
        definition, _present = self.texts(uuid, INACTIVE, PRESENT)
        self._starting.add(uuid)
        try:
            yield parse(definition)
        finally:
            self._starting.discard(uuid)

    @contextmanager
    def ending(self, uuid: str) -> Iterator[None]:
        """While a VM is switched off: libvirt does nothing else with it until its QEMU is gone, which may take 10 s."""
        call = object()
        self._ending[call] = (uuid, self._clock())
        try:
            yield
        finally:
            del self._ending[call]

    def _is_busy(self, uuid: str) -> bool:
        return uuid in self._starting or self._ends_slowly(uuid)

    def _ends_slowly(self, uuid: str) -> bool:
        return uuid in self.slow_endings()

    def slow_endings(self) -> set[str]:
        """The VMs about which libvirt answers nothing now."""
        now = self._clock()
        return {uuid for uuid, begun in list(self._ending.values()) if now - begun > ENDING_SECONDS}

    def files(self) -> set[str]:
        """What any VM of this libvirt, the lab's or not, has as a disk or disc, now or after its next start."""
        found: set[str] = set()
        for domain in self._connection.run(libvirt.virConnect.listAllDomains):
            with suppress(Vanished), _vanishing():
                for flags in (INACTIVE, PRESENT):
                    found.update(values(parse(domain.XMLDesc(flags)), "devices/disk/source/@file"))
        return found

    @contextmanager
    def lock(self, uuid: str) -> Iterator[None]:
        """What everyone holds who changes this VM."""
        with self._locks_lock:
            lock = self._locks.setdefault(uuid, threading.RLock())
        if not lock.acquire(timeout=PATIENCE_SECONDS):
            raise self.silent(uuid)
        try:
            yield
        finally:
            lock.release()

    def silent(self, uuid: str) -> Refused:
        name = self.names.get(uuid, uuid)
        return unavailable(f"VM {name} does not answer: a call about it does not end. ForceOff switches it off.")

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

    def set_cd(self, uuid: str, path: Path | None) -> None:
        """Put a file into the CD-ROM drive, or empty it; a running guest sees it at once."""
        with self.edit(uuid) as root:
            _fill(drive_of(root), path)
            live = self.read_live(uuid)
            if live is not None:
                self._set_live_cd(uuid, drive_of(live), path)

    def note(self, uuid: str, **noted: str | None) -> None:
        """Keep these in the VM itself."""
        with self.edit(uuid) as root:
            if any(notes.read(root).get(name) != value for name, value in noted.items()):
                notes.write(root, **noted)

    def capacities(self, uuid: str) -> dict[str, int | None]:
        """The sizes of its disks in bytes, by their names; None if one is not known."""
        targets = values(self.read_present(uuid), "devices/disk[@device='disk']/target/@dev")
        return {name: self.ask(uuid, partial(_capacity, name=name)) for name in targets}

    def empty_lost_cd(self, uuid: str, live: etree._Element) -> None:
        """Empty the drive for good when libvirt had to start the VM without its disc, since the file was gone.

        A server with an image that cannot be reached starts as well, and shows a drive with nothing in it.
        """
        with self.lock(uuid):
            lost = values(self.read(uuid), f"{DRIVE}/source[@startupPolicy='optional']/@file")
            ours = lost and Path(lost[0]).parent == self.media
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

    def _set_live_cd(self, uuid: str, drive: etree._Element, path: Path | None) -> None:
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


def is_paused(domain: libvirt.virDomain) -> bool:
    """By an operator, or by a disk or watchdog; and not for the moment in which it starts, is saved or goes off."""
    return _says_paused(*domain.state())


def _says_paused(state: int, reason: int) -> bool:
    return state == libvirt.VIR_DOMAIN_PAUSED and reason in PAUSES


def _shown(domain: libvirt.virDomain) -> tuple[str, str | None, bool]:
    state, reason = domain.state()
    is_off = state == libvirt.VIR_DOMAIN_SHUTOFF
    present = None if is_off else domain.XMLDesc(PRESENT)
    return domain.XMLDesc(INACTIVE), present, _says_paused(state, reason)


def _capacity(domain: libvirt.virDomain, name: str) -> int | None:
    """None if that is not known: its file is gone, or the disk since it was listed."""
    try:
        return int(domain.blockInfo(name)[0])
    except libvirt.libvirtError as error:
        if error.get_error_domain() == libvirt.VIR_FROM_RPC or error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
            raise
        return None


def _fill(drive: etree._Element, path: Path | None) -> None:
    remove(drive, "source")
    target = part(drive, "target")
    target.attrib.pop("tray", "")
    drive.set("type", "file")
    if path:
        # Optional: a file that is gone keeps nobody from starting the VM.
        target.addprevious(etree.Element("source", file=str(path), startupPolicy="optional"))
