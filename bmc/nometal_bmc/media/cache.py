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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nometal_bmc.answers import Refused
from nometal_bmc.media.deadline import Deadline
from nometal_bmc.media.download import Reply, Validators, opened
from nometal_bmc.media.part import Part, usable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from nometal_bmc.broker.client import Machines, NewImage
    from nometal_bmc.cancellation import Cancellation
    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.media.source import Source

__all__ = ["MediaCache"]

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Known:
    """What a URL gave last time."""

    validators: Validators
    path: Path


class Flight:
    """A download in a thread of its own, for all who wait for the same; it ends with the last of them."""

    def __init__(self, source: Source, deadline: Deadline) -> None:
        self.source = source
        self.deadline = deadline
        self.waiting: list[Future[Path]] = []
        self.ended: Future[None] = Future()


class MediaCache:
    """The directory of images, to which only the broker writes; an image stays there while any VM holds it."""

    def __init__(self, current: CurrentConfig, machines: Machines) -> None:
        self._current = current
        self._machines = machines
        self._lock = threading.Lock()
        self._flights: dict[Source, Flight] = {}
        self._last: dict[str, Flight] = {}  # of each VM
        self._known: dict[Source, Known] = {}
        self._pins: Counter[Path] = Counter()

    @contextmanager
    def image(self, source: Source, uuid: str, cancellation: Cancellation) -> Iterator[Path]:
        """The image that a VM is to get, kept for as long as the caller needs to put it there."""
        path = self._pinned(source, uuid, cancellation)
        try:
            yield path
        finally:
            with self._lock:
                self._pins -= Counter([path])

    def sweep(self) -> None:
        """Remove every image that no VM holds and no request is about to insert."""
        with self._lock:
            self._machines.sweep_images([path.stem for path in self._pins])
            self._known = {source: known for source, known in self._known.items() if known.path.exists()}

    @property
    def _directory(self) -> Path:
        return Path(self._current.config.media.directory)

    def _pinned(self, source: Source, uuid: str, cancellation: Cancellation) -> Path:
        """One download serves all who want the same, and what it gets is pinned for each of them."""
        former = self._last.get(uuid)
        if former is not None and not former.waiting:
            cancellation.wait_for(former.ended)  # or a VM could have any number of downloads that are about to end
        mine: Future[Path] = Future()
        with self._lock:
            flight = self._flights.get(source)
            if flight is None:
                deadline = Deadline(self._current.config.media.timeout)
                flight = self._flights[source] = Flight(source, deadline)
                threading.Thread(target=self._fly, args=(flight,), name="download", daemon=True).start()
            flight.waiting.append(mine)
            self._last[uuid] = flight
        with cancellation.calling(partial(self._leave, flight, mine)):
            return mine.result()

    def _leave(self, flight: Flight, mine: Future[Path], why: Refused) -> None:
        with self._lock:
            if mine not in flight.waiting:
                return
            flight.waiting.remove(mine)
            mine.set_exception(why)
            is_last = not flight.waiting
            if is_last and self._flights.get(flight.source) is flight:
                del self._flights[flight.source]  # who comes now begins anew
        if is_last:
            flight.deadline.end()

    def _fly(self, flight: Flight) -> None:
        try:
            if not self._unchanged(flight):
                self._download(flight)
        except Exception as error:  # whoever waits raises it
            with self._lock:
                for mine in self._landed(flight):
                    mine.set_exception(error)
        finally:
            flight.ended.set_result(None)

    def _landed(self, flight: Flight) -> list[Future[Path]]:
        """Those who wait, who get their answer under the same lock."""
        if self._flights.get(flight.source) is flight:
            del self._flights[flight.source]
        waiting, flight.waiting = flight.waiting, []
        return waiting

    def _land(self, flight: Flight, path: Path) -> None:
        for mine in self._landed(flight):
            self._pins[path] += 1
            mine.set_result(path)

    def _unchanged(self, flight: Flight) -> bool:
        """Whether we have an image of this source, and its server shows that it would send the same again."""
        known = self._known.get(flight.source)
        if known is None or not known.validators.settled:
            return False
        try:
            with self._opened("HEAD", flight) as reply:
                same = reply.validators == known.validators
        except Refused:  # not every server answers HEAD; the download finds out what is wrong
            return False
        with self._lock:
            same = same and known.path.exists()
            if same:
                self._land(flight, known.path)
        return same

    def _download(self, flight: Flight) -> None:
        directory, limit = self._directory, self._current.config.media.max_bytes
        with usable(directory), self._machines.new_image() as image, self._opened("GET", flight) as reply:
            digest = Part(directory, image.descriptor).receive(reply, limit)
            self._keep(flight, reply.validators, image, directory / f"{digest}.iso")

    def _keep(self, flight: Flight, validators: Validators, image: NewImage, path: Path) -> None:
        with self._lock:
            if not flight.waiting:
                return
            image.keep(path.stem)
            self._known[flight.source] = Known(validators, path)
            self._land(flight, path)
        LOG.info("fetched %s as %s", flight.source.place, path.name)

    def _opened(self, method: str, flight: Flight) -> AbstractContextManager[Reply]:
        return opened(flight.source, method, flight.deadline, self._current.config.media.networks)
