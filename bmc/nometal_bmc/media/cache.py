# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's images: each content once, however many VMs hold it and wherever it came from."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nometal_bmc.answers import Refused
from nometal_bmc.media.download import Deadline, Validators, opened
from nometal_bmc.media.part import Part, usable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nometal_bmc.broker.client import Machines, NewImage
    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Network
    from nometal_bmc.media.source import Source

__all__ = ["MediaCache"]

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Known:
    """What a URL gave last time."""

    validators: Validators
    path: Path


class MediaCache:
    """The directory of images, to which only the broker writes; an image stays there while any VM holds it."""

    def __init__(self, current: CurrentConfig, machines: Machines) -> None:
        self._current = current
        self._machines = machines
        self._lock = threading.Lock()
        self._flights: dict[Source, Future[None]] = {}
        self._known: dict[Source, Known] = {}
        self._pins: Counter[Path] = Counter()

    @contextmanager
    def image(self, source: Source) -> Iterator[Path]:
        """The image of a source, kept for as long as the caller needs to put it into a VM."""
        path = self._pinned(source)
        try:
            yield path
        finally:
            with self._lock:
                self._pins -= Counter([path])

    def sweep(self) -> None:
        """Remove every image that no VM holds and nobody is about to insert."""
        with self._lock:
            self._machines.sweep_images([path.stem for path in self._pins])
            self._known = {source: known for source, known in self._known.items() if known.path.exists()}

    @property
    def _directory(self) -> Path:
        return Path(self._current.config.media.directory)

    def _pinned(self, source: Source) -> Path:
        """One thread fetches; others that want the same wait for it, then hold what it got."""
        while True:
            with self._lock:
                flight = self._flights.get(source)
                if flight is None:
                    mine = self._flights[source] = Future()
            if flight is None:
                return self._lead(source, mine)
            flight.result()
            if path := self._pin_known(source):
                return path

    def _lead(self, source: Source, flight: Future[None]) -> Path:
        try:
            path = self._unchanged(source) or self._download(source)
        except BaseException as error:
            self._land(source)
            flight.set_exception(error)
            raise
        self._land(source)
        flight.set_result(None)
        return path

    def _land(self, source: Source) -> None:
        with self._lock:
            del self._flights[source]

    def _pin_known(self, source: Source) -> Path | None:
        with self._lock:
            known = self._known.get(source)
            if known is None or not known.path.exists():
                return None
            self._pins[known.path] += 1
            return known.path

    def _unchanged(self, source: Source) -> Path | None:
        """The image that we have of this source, if its server shows that it would send the same again."""
        known = self._known.get(source)
        if known is None or not known.validators.settled:
            return None
        try:
            with opened(source, "HEAD", self._deadline(), self._networks) as reply:
                same = reply.validators == known.validators
        except Refused:  # not every server answers HEAD; the download finds out what is wrong
            return None
        return self._pin_known(source) if same else None

    def _download(self, source: Source) -> Path:
        directory, limit = self._directory, self._current.config.media.max_bytes
        with (
            usable(directory),
            self._machines.new_image() as image,
            opened(source, "GET", self._deadline(), self._networks) as reply,
        ):
            digest = Part(directory, image.descriptor).receive(reply, limit)
            return self._keep(source, reply.validators, image, directory / f"{digest}.iso")

    def _keep(self, source: Source, validators: Validators, image: NewImage, path: Path) -> Path:
        with self._lock:
            image.keep(path.stem)
            self._known[source] = Known(validators, path)
            self._pins[path] += 1
        LOG.info("fetched %s as %s", source.place, path.name)
        return path

    @property
    def _networks(self) -> tuple[Network, ...]:
        return self._current.config.media.networks

    def _deadline(self) -> Deadline:
        return Deadline(self._current.config.media.timeout)
