# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's images: files in a directory that only the broker may write to, each named by the digest of its content."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nometal_bmc.answers import Refused, not_found, unavailable

if TYPE_CHECKING:
    from nometal_bmc.config.reading import CurrentBrokerConfig
    from nometal_bmc.vms.domains import Domains

__all__ = ["Begun", "Images"]

LOG = logging.getLogger(__name__)
PREFIX = ".part-"
NAME = r"[0-9a-f]{64}\.iso"
MODE = 0o644  # QEMU runs as another user
MOST_BEGUN = 64


class Begun:
    """The image that one client is writing, if any. It is gone with the client unless it was kept."""

    def __init__(self) -> None:
        self.path: Path | None = None

    def drop(self) -> None:
        path, self.path = self.path, None
        if path:
            path.unlink(missing_ok=True)


class Images:
    """All of them."""

    def __init__(self, current: CurrentBrokerConfig, domains: Domains) -> None:
        self._current = current
        self._domains = domains
        self._lock = threading.Lock()
        self._changed = True
        for part in self._directory.glob(f"{PREFIX}*") if current.config.media else ():
            with suppress(OSError):
                part.unlink()

    @property
    def _directory(self) -> Path:
        directory = self._current.config.media
        if directory is None:
            raise not_found("A directory for images")
        return directory

    def begin(self, begun: Begun) -> int:
        """A new file to write to; it has no name that would be of use to anybody yet."""
        begun.drop()
        directory = self._directory
        if sum(1 for _part in directory.glob(f"{PREFIX}*")) >= MOST_BEGUN:
            raise unavailable(f"{MOST_BEGUN} images are being fetched already. Try again in a few seconds.")
        try:
            descriptor, name = tempfile.mkstemp(prefix=PREFIX, dir=directory)
            os.fchmod(descriptor, MODE)
        except OSError as error:
            wrong = f"cannot be written ({error.strerror})" if directory.is_dir() else "is missing"
            text = (
                f"The host's directory for images {directory} {wrong}; the stage bmc (playbooks/bmc.yml) makes it anew."
            )
            LOG.error("%s", text)  # noqa: TRY400 - the text says it all
            raise unavailable(text) from error
        begun.path, self._changed = Path(name), True
        return descriptor

    def keep(self, begun: Begun, digest: str) -> None:
        """It is whole: what is there already under this name stays."""
        if begun.path is None:
            raise Refused(409, "OperationFailed", "No image has been begun.")
        path = self._path(digest)
        with self._lock:
            if path.exists():
                begun.drop()
            else:
                begun.path.rename(path)
                begun.path = None

    def insert(self, uuid: str, digest: str, url: str) -> None:
        path = self._path(digest)
        if not path.is_file():
            raise Refused(409, "OperationFailed", "The image is gone meanwhile.", prop="Image")
        with self._domains.lock(uuid):
            self._domains.note(uuid, image_url=url, image_file=str(path))
            self._domains.set_cd(uuid, path)

    def eject(self, uuid: str) -> None:
        with self._domains.lock(uuid):
            self._domains.set_cd(uuid, None)
            self._domains.note(uuid, image_url=None, image_file=None)

    def sweep(self, keep: list[str]) -> None:
        """Remove every image that no VM holds and no request is about to insert."""
        slow = self._domains.slow_endings()
        if slow:
            raise unavailable(f"What VMs hold is not known before VM {' and '.join(slow)} is off.")
        kept = {f"{digest}.iso" for digest in keep}
        with self._lock:
            found = {path for path in self._directory.glob("*.iso") if re.fullmatch(NAME, path.name)}
            unused = {path for path in found if path.name not in kept}
            held = self._domains.files() if unused else set()
            for path in unused:
                if str(path) not in held:
                    self._changed = True
                    path.unlink(missing_ok=True)
                    LOG.info("removed %s: no VM holds it", path.name)
            changed, self._changed = self._changed, False
        if changed:
            self._domains.refresh_pool(self._directory)

    def _path(self, digest: str) -> Path:
        return self._directory / f"{digest}.iso"
