# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CD-ROM drive of each VM: what is in it, what goes into it and out of it.

What is in the drive is read from the VM. Only what a VM cannot know, the URL that its disc came from and whether its
server's certificate is checked, is noted in the VM's own metadata; a note on another disc than the present one is void.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from nometal_bmc.answers import Refused, unavailable
from nometal_bmc.cancellation import Cancellation
from nometal_bmc.machine import notes
from nometal_bmc.machine.definition import drive_of, values
from nometal_bmc.media.cache import MediaCache
from nometal_bmc.media.source import Trust, source_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from nometal_bmc.broker.client import Machines
    from nometal_bmc.config.reading import CurrentConfig

__all__ = ["Disc", "Media"]

LOG = logging.getLogger(__name__)
DEVICE = "Cd"
INSERTS_AT_ONCE = 48
"""So that some of the server's threads are always left for everything else that clients want done."""


@dataclass(frozen=True)
class Disc:
    """What is in a drive: a file, and the URL that it came from if it was inserted here."""

    file: str
    url: str | None

    @property
    def name(self) -> str:
        path = unquote(urlsplit(self.url).path) if self.url else self.file
        return PurePosixPath(path).name or "image.iso"


@dataclass(frozen=True)
class Note:
    """What the VM remembers for us."""

    url: str | None = None
    file: str | None = None
    verify: bool | None = None

    @classmethod
    def of(cls, domain: etree._Element) -> Note:
        known = notes.read(domain)
        verify = known.get("image_verify")
        return cls(known.get("image_url"), known.get("image_file"), None if verify is None else verify == "true")


class Media:
    """The drives of the lab's VMs."""

    devices = (DEVICE,)

    def __init__(self, current: CurrentConfig, domains: Machines) -> None:
        self._current = current
        self._domains = domains
        self._cache = MediaCache(current, domains)
        self._lock = threading.Lock()
        self._inserts: dict[str, Cancellation] = {}
        self._sweep()

    def disc(self, uuid: str) -> Disc | None:
        root = self._domains.read(uuid)
        file = next(iter(values(drive_of(root), "source/@file")), None)
        if file is None:
            return None
        note = Note.of(root)
        return Disc(file, note.url if note.file == file else None)

    def verifies(self, uuid: str) -> bool:
        """Whether image servers' certificates are checked: as a client wished, else when there is a CA to check by."""
        wish = Note.of(self._domains.read(uuid)).verify
        return self._current.config.media.ca_file is not None if wish is None else wish

    def set_verifies(self, uuid: str, verify: bool) -> None:
        self._domains.set_verify(uuid, verify)

    def insert(
        self,
        uuid: str,
        url: object,
        login: tuple[str, str] | None = None,
        *,
        verify: bool | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """Fetch the image and put it into the drive, in place of what is there. Until then the VM stays as it is."""
        mine = cancellation or Cancellation()
        checks = self.verifies(uuid) if verify is None else verify
        source = source_from(url, login, Trust(checks, self._current.config.media.ca_file))
        with self._one_of_few(uuid, mine):
            try:
                with self._cache.image(source, uuid, mine) as path, self._domains.lock(uuid):
                    mine.check()
                    self._domains.insert(uuid, path.stem, source.url)
            finally:
                self._sweep()
        LOG.info("inserted %s into %s", source.place, uuid)

    def eject(self, uuid: str) -> None:
        """Empty the drive; an empty one stays empty."""
        with self._lock:
            running = self._inserts.pop(uuid, None)
        _overtake(running)
        with self._domains.lock(uuid):
            self._domains.eject(uuid)
        self._sweep()

    @contextmanager
    def _one_of_few(self, uuid: str, mine: Cancellation) -> Iterator[None]:
        """The only insert of its VM, and one of not too many."""
        with self._lock:
            former = self._inserts.get(uuid)
            if former is None and len(self._inserts) >= INSERTS_AT_ONCE:
                raise unavailable(f"{INSERTS_AT_ONCE} images are being inserted already. Try again in a few seconds.")
            self._inserts[uuid] = mine
        _overtake(former)
        try:
            yield
        finally:
            with self._lock:
                if self._inserts.get(uuid) is mine:
                    del self._inserts[uuid]

    def _sweep(self) -> None:
        try:
            self._cache.sweep()
        except (Refused, OSError) as error:
            LOG.warning("images that no VM holds stay until the next insert or eject: %s", error)


def _overtake(insert: Cancellation | None) -> None:
    """End one that is still running. Its client may have given up, and it must not win in the end."""
    if insert is not None:
        insert.cancel(Refused(409, "OperationFailed", "Another insert or eject came after this one.", prop="Image"))
