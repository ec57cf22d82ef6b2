# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A download on the disk: a file that is gone unless all of it came and it was found fit."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from nometal_bmc.answers import unavailable
from nometal_bmc.media import images
from nometal_bmc.media.download import UNFIT, Reply
from nometal_bmc.media.source import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Part", "usable"]

LOG = logging.getLogger(__name__)
MARGIN = 256 * 1024 * 1024
"""Left free for the VMs' disks, which live in the same file system: they would all stop when it is full."""
FULL = (errno.ENOSPC, errno.EDQUOT)
INSUFFICIENT_STORAGE = 507


class Part:
    """A file that is being received, which the broker has opened."""

    def __init__(self, directory: Path, descriptor: int) -> None:
        self._directory = directory
        self._file = descriptor

    def receive(self, reply: Reply, limit: int) -> str:
        """Write the body down and return its digest; refused as soon as it is seen to be unfit."""
        self._refuse_too_big(reply.length or 0, limit, reply.place)
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
        os.fsync(self._file)
        return digest.hexdigest()

    def _reserve(self, size: int) -> None:
        _room(self._directory, size)
        if size:
            os.posix_fallocate(self._file, 0, size)

    def _write(self, chunk: bytes, *, ahead: bool) -> None:
        if ahead:
            _room(self._directory, len(chunk))
        left = memoryview(chunk)
        while left:
            left = left[os.write(self._file, left) :]

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
def usable(directory: Path) -> Iterator[None]:
    """Refuse, in words for whoever can fix it, when files cannot be written there."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            _refuse_full(directory, str(error.strerror))
        wrong = f"cannot be written ({error.strerror})" if directory.is_dir() else "is missing"
        text = f"The host's directory for images {directory} {wrong}; the stage bmc (playbooks/bmc.yml) makes it anew."
        LOG.error("%s", text)  # noqa: TRY400 - the text says it all
        raise unavailable(text) from error


def _refuse_full(directory: Path, why: str) -> NoReturn:
    LOG.error("%s has too little room for an image: %s", directory, why)
    refuse(f"the host has too little room for it ({why})", "InsufficientStorage", INSUFFICIENT_STORAGE)
