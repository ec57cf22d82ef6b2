# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where tools come from: a mirror or what looks like one, with a directory for each release and each channel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Union
from urllib.parse import unquote, urlsplit

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import checksums
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.download import Web
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.download_errors import NotThereError
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.download import Told
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.release import Release

RELEASE_TEXT, CHECKSUMS = "release.txt", "sha256sum.txt"


@dataclass(frozen=True)
class WebDirectory:
    web: Web
    url: str

    def __str__(self) -> str:
        return self.url

    def text(self, name: str) -> str:
        return self.web.text(f"{self.url}/{name}")

    def file(self, name: str, part: Path, told: Told) -> Path:
        self.web.file(f"{self.url}/{name}", part, told)
        return part


@dataclass(frozen=True)
class LocalDirectory:
    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def text(self, name: str) -> str:
        file = self._there(name)
        try:
            return file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise OperatorError(f"{file} cannot be read: {error.strerror}.") from error

    def file(self, name: str, _part: Path, _told: Told) -> Path:
        return self._there(name)

    def _there(self, name: str) -> Path:
        file = self.path / name
        if not file.is_file():
            raise NotThereError(f"{file} is not there.")
        return file


Directory = Union[WebDirectory, LocalDirectory]


def find(sources: Sequence[str], version: str) -> tuple[Directory, Release]:
    """The first source that has the release or channel."""
    missing = []
    for directory in _directories(sources, version):
        try:
            text = directory.text(RELEASE_TEXT)
        except NotThereError as error:
            missing.append(str(error))
            continue
        release = tools_release.parse(text)
        if release is None:
            raise OperatorError(
                f"{directory}/{RELEASE_TEXT} names no release: another server answers, or it has no client mirror."
            )
        if not tools_release.is_channel(version) and release.version != version:
            raise OperatorError(f"{directory}/{RELEASE_TEXT} is of {release.version}, and {version} was asked for.")
        return directory, release
    raise OperatorError(" ".join([_advice(version), *missing]))


def checksum(directory: Directory, name: str) -> str | None:
    return checksums.parse(_checksums(directory)).get(name)


def _checksums(directory: Directory) -> str:
    try:
        return directory.text(CHECKSUMS)
    except NotThereError as error:
        raise OperatorError(f"Without {CHECKSUMS} nothing is taken from {directory}: {error}") from error


def _directories(sources: Sequence[str], version: str) -> Iterator[Directory]:
    for source in sources:
        parts = urlsplit(source)
        if parts.scheme in ("http", "https") and parts.hostname:
            web = Web(source)
            yield WebDirectory(web, f"{web.address}/{version}")
        elif parts.scheme == "file" and parts.path.startswith("/"):
            yield LocalDirectory(Path(unquote(parts.path)) / version)
        elif source.startswith("/"):
            yield LocalDirectory(Path(source) / version)
        else:
            told = source.rpartition("@")[2]
            raise OperatorError(
                f"source must be a URL (https, http or file) or the absolute path of a directory (got {told})."
            )


def _advice(version: str) -> str:
    if not tools_release.is_channel(version):
        return f"There is no release {version}: is the version right, and does the source have it?"
    return (
        f"There is no channel {version}: it may be misspelt, not be open yet, or the source may not have it. "
        "latest- and candidate- begin first, stable- later, and eus- there is for even minor versions only."
    )
