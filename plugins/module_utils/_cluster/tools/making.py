# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Making a directory of tools, in a working directory that outlives a killed run."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import checksums
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import disk as tools_disk
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import kept as tools_kept
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import programs as tools_programs
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import source as tools_source
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.kept import BIN, Kept
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.progress import Progress
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.release import Release
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.request import Answer, Request
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.source import Directory

BLOCK = 1024 * 1024
# A link that leads nowhere is a KeyError.
BROKEN = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, KeyError)


def take(tarball: Path, program: str, to: Path, called: str) -> None:
    """Only this file's content: whatever else is in there, and wherever it wants to go, stays there."""
    try:
        with tarfile.open(tarball) as archive:
            content, size = _find(archive, program, called)
            tools_disk.require_room(to.parent, size, program)
            with tools_disk.writing(to, program), files.whole(to, 0o755) as file:
                _copy(content, file, called)
    except BROKEN as error:
        raise _broken(called, error) from error


def _find(archive: tarfile.TarFile, program: str, called: str) -> tuple[IO[bytes], int]:
    for member in archive:
        if PurePosixPath(member.name) == PurePosixPath(program):
            content = archive.extractfile(member)
            if content:
                return content, member.size
    raise OperatorError(
        f"{called} has no program {program} in it, so it is not what its name says. Try another source."
    )


def _copy(content: IO[bytes], file: IO[bytes], called: str) -> None:
    try:
        shutil.copyfileobj(content, file, BLOCK)
    except BROKEN as error:
        raise _broken(called, error) from error


def _broken(called: str, error: Exception) -> OperatorError:
    return OperatorError(
        f"{called} is a damaged tarball: {error}. Its checksum matches, so the source has it damaged: try another."
    )


PART = ".part"


def make(request: Request, answer: Answer, work: Path, progress: Progress) -> Path:
    """The directory, whole, to be moved to its place."""
    if answer.origin is None or answer.release is None:
        raise OperatorError(f"The tools in {answer.directory} have gone while they were looked at: run this again.")
    made = work / "tools"
    removal.discard(made)
    files.make_directory(made / BIN)
    making = Making(request, answer.origin, answer.release, work, progress)
    tools_kept.record(made, making.fill(made / BIN))
    return made


class Making:
    def __init__(self, request: Request, origin: Directory, release: Release, work: Path, progress: Progress) -> None:
        self._request = request
        self._origin = origin
        self._release = release
        self._work = work
        self._progress = progress

    def fill(self, programs: Path) -> Kept:
        oc = programs / "oc"
        self._take("oc", oc, self._checksum_of("oc"))
        tools_programs.try_oc(oc, self._work)
        name = tools_release.installer_of(self._release.version, fips=self._request.fips)
        installer = programs / name
        in_image = self._request.release_image or name == tools_release.FIPS_INSTALLER
        checksum = None if in_image else self._origin_has(name)
        if checksum:
            self._take(name, installer, checksum)
        else:
            self._extract(oc, name, installer)
        if name != tools_release.INSTALLER:
            (programs / tools_release.INSTALLER).symlink_to(name)
        return self._examined(installer)

    def _examined(self, installer: Path) -> Kept:
        told = tools_programs.ask_installer(installer, self._work)
        image = self._request.release_image
        version = self._request.version if image else self._release.version
        tools_release.refuse_other_release(told, version, image, f"{installer.name} from {image or self._origin}")
        named = tools_release.named(told.version, self._release.version)
        return Kept(named, told.image or image or self._release.image)

    def _extract(self, oc: Path, name: str, to: Path) -> None:
        image = self._request.release_image or self._release.image
        if not image:
            text = f"{self._origin}/{tools_source.RELEASE_TEXT}"
            raise OperatorError(
                f"{name} has to come out of the release image, and {text} names none: give release_image."
            )
        self._progress.say(tools_release.INSTALLER, "comes out of the release image")
        unpacked = self._work / "extracted"
        removal.discard(unpacked)
        files.make_directory(unpacked)
        tools_programs.extract(oc, name, image, unpacked, self._request.pull_secret)
        (unpacked / name).rename(to)

    def _checksum_of(self, program: str) -> str:
        checksum = self._origin_has(program)
        if checksum is None:
            tarball = tools_release.tarball_of(program, self._release.version)
            raise OperatorError(
                f"{tarball} is not listed in {self._origin}/{tools_source.CHECKSUMS}, and what is not listed "
                "there is not taken."
            )
        return checksum

    def _origin_has(self, program: str) -> str | None:
        return tools_source.checksum(self._origin, tools_release.tarball_of(program, self._release.version))

    def _take(self, program: str, to: Path, checksum: str) -> None:
        tarball = tools_release.tarball_of(program, self._release.version)
        who = "oc" if program == "oc" else tools_release.INSTALLER
        file = self._whole(tarball, checksum, who)
        self._progress.say(who, "is unpacked")
        take(file, program, to, f"{self._origin}/{tarball}")
        self._progress.say(who, "is there")

    def _whole(self, tarball: str, checksum: str, who: str) -> Path:
        """What is there of it belongs to another file, perhaps: then all is got once more."""
        part = self._work / f"{checksum[:12]}-{tarball}{PART}"
        began_with_part = part.exists()
        if began_with_part and checksums.of_file(part) == checksum:
            return part
        file = self._origin.file(tarball, part, self._progress.of_download(who))
        found = checksums.of_file(file)
        if found == checksum:
            return file
        part.unlink(missing_ok=True)
        if began_with_part and file == part:
            return self._whole(tarball, checksum, who)
        raise OperatorError(
            f"{self._origin}/{tarball} has the checksum {found}, but must have {checksum} by {tools_source.CHECKSUMS}. "
            "It was not taken. The source is damaged, or being changed just now, or something between changes what it "
            "sends: try again later, or another source."
        )
