# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's images: each content once, however many VMs hold it and wherever it came from."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from nometal_bmc import images
from nometal_bmc.answers import Refused
from nometal_bmc.download import UNFIT, Deadline, Reply, Validators, opened
from nometal_bmc.media_source import Source, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nometal_bmc.config import CurrentConfig

__all__ = ["MediaCache"]

LOG = logging.getLogger(__name__)
PART = ".part-"
NAME = r"[0-9a-f]{64}\.iso"
MARGIN = 256 * 1024 * 1024
"""Left free for the VMs' disks, which live in the same file system: they would all stop when it is full."""
MODE = 0o644  # QEMU runs as another user
FULL = (errno.ENOSPC, errno.EDQUOT)
INSUFFICIENT_STORAGE = 507


@dataclass(frozen=True)
class Known:
    """What a URL gave last time."""

    validators: Validators
    path: Path


class MediaCache:
    """The directory of images. `held` tells which files any VM holds; nothing else keeps one here."""

    def __init__(self, current: CurrentConfig, held: Callable[[], set[str]]) -> None:
        self._current = current
        self._held = held
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

    def remove_leftovers(self) -> None:
        """Remove the beginnings of downloads whose process is dead: a living one locks its file."""
        for part in self._directory.glob(f"{PART}*"):
            with suppress(OSError), part.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()

    def sweep(self) -> None:
        """Remove every image that no VM holds and nobody is about to insert."""
        with self._lock:
            images_here = {path for path in self._directory.glob("*.iso") if re.fullmatch(NAME, path.name)}
            unpinned = images_here - set(self._pins)
            held = self._held() if unpinned else set()
            for path in unpinned:
                if str(path) not in held:
                    path.unlink(missing_ok=True)
                    LOG.info("removed %s: no VM holds it", path.name)
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
            with opened(source, "HEAD", self._deadline()) as reply:
                same = reply.validators == known.validators
        except Refused:  # not every server answers HEAD; the download finds out what is wrong
            return None
        return self._pin_known(source) if same else None

    def _download(self, source: Source) -> Path:
        limit = self._current.config.media.max_bytes
        with opened(source, "GET", self._deadline()) as reply, _Part(self._directory) as part:
            digest = part.receive(reply, limit)
            return self._keep(source, reply.validators, part, self._directory / f"{digest}.iso")

    def _keep(self, source: Source, validators: Validators, part: _Part, path: Path) -> Path:
        with self._lock:
            if not path.exists():
                part.path.rename(path)
            self._known[source] = Known(validators, path)
            self._pins[path] += 1
        LOG.info("fetched %s as %s", source.place, path.name)
        return path

    def _deadline(self) -> Deadline:
        return Deadline(self._current.config.media.timeout)


class _Part:
    """A file that is being received: locked while somebody receives it, gone unless it was renamed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> _Part:
        descriptor, name = tempfile.mkstemp(prefix=PART, dir=self._directory)
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self.path = Path(name)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)
        self._file.close()

    def receive(self, reply: Reply, limit: int) -> str:
        """Write the body down and return its digest; refused as soon as it is seen to be unfit."""
        self._refuse_too_big(reply.length or 0, limit, reply.place)
        with _refusing_when_full(self._directory):
            self._reserve(reply.length or 0)
            digest, head, size = hashlib.sha256(), b"", 0
            for chunk in reply.chunks():
                size += len(chunk)
                self._refuse_too_big(size, limit, reply.place)
                if len(head) < images.HEAD:
                    head = self._judged_head(head + chunk, reply)
                digest.update(chunk)
                self._write(chunk, ahead=reply.length is None)
            self._recognise(head, size, reply.place)
            os.fchmod(self._file.fileno(), MODE)
            os.fsync(self._file.fileno())
        return digest.hexdigest()

    def _reserve(self, size: int) -> None:
        _room(self._directory, size)
        if size:
            os.posix_fallocate(self._file.fileno(), 0, size)

    def _write(self, chunk: bytes, *, ahead: bool) -> None:
        if ahead:
            _room(self._directory, len(chunk))
        left = memoryview(chunk)
        while left:
            left = left[self._file.write(left) :]

    def _judged_head(self, head: bytes, reply: Reply) -> bytes:
        """A gigabyte of something else needs not be received to be refused."""
        if len(head) >= images.HEAD:
            head = head[: images.HEAD]
            self._recognise(head, reply.length or sys.maxsize, reply.place)
        return head

    @staticmethod
    def _recognise(head: bytes, size: int, place: str) -> None:
        try:
            images.recognise(head, size)
        except images.NotAnImage as unfit:
            refuse(f"{place} sent no image: {unfit}", UNFIT)

    @staticmethod
    def _refuse_too_big(size: int, limit: int, place: str) -> None:
        if size > limit:
            refuse(f"{place} has more than the {limit} bytes that an image may have", UNFIT)


def _room(directory: Path, size: int) -> None:
    if shutil.disk_usage(directory).free - size < MARGIN:
        _refuse_full(directory, f"{size} bytes more would leave less than {MARGIN}")


@contextmanager
def _refusing_when_full(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        _refuse_full(directory, str(error.strerror))


def _refuse_full(directory: Path, why: str) -> NoReturn:
    LOG.error("%s has too little room for an image: %s", directory, why)
    refuse(f"the host has too little room for it ({why})", "InsufficientStorage", INSUFFICIENT_STORAGE)
