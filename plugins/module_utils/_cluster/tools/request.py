# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tools are asked for, and which release that is: known at once, or told by the source."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import kept as tools_kept
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import source as tools_source
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.download_errors import UnreachableError
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.release import Release
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.source import Directory

CHANNELS = ".channels"


@dataclass(frozen=True)
class Request:
    version: str
    distribution: str
    path: Path
    machine: str
    release_image: str | None = None
    source: str | None = None
    fips: bool = False
    pull_secret: str = field(default="", repr=False)

    def refuse_bad(self) -> None:
        tools_release.refuse_bad_version(self.version, self.distribution, own_source=self.source is not None)
        if self.fips:
            tools_release.refuse_host_without_fips(self.version)
        if self.machine not in tools_release.ARCHITECTURES:
            raise OperatorError(
                f"There are no tools for {self.machine}: {' and '.join(tools_release.ARCHITECTURES)} have some."
            )
        if self.release_image and (self.release_image.startswith("-") or len(self.release_image.split()) != 1):
            raise OperatorError(
                f"release_image must be registry/name@sha256:... or registry/name:tag (got {self.release_image!r})."
            )

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,) if self.source else tools_release.usual_sources(self.distribution, self.machine)

    def directory_of(self, version: str) -> Path:
        name = tools_release.directory_of(self.distribution, version, self.release_image, fips=self.fips)
        return self.path / name


@dataclass(frozen=True)
class Answer:
    """`origin` and `release` are None if no source had to be asked."""

    directory: Path
    version: str
    origin: Directory | None = None
    release: Release | None = None
    note: str = ""


def answer(request: Request) -> Answer:
    if not tools_release.is_channel(request.version) and tools_kept.read(request.directory_of(request.version)):
        return Answer(request.directory_of(request.version), request.version)
    try:
        origin, release = tools_source.find(request.sources, request.version)
    except UnreachableError as error:
        return _last_answer(request, error)
    tools_release.refuse_other_machine(release, request.machine, str(origin))
    return Answer(request.directory_of(release.version), release.version, origin, release)


def remember(request: Request, version: str) -> None:
    if tools_release.is_channel(request.version):
        files.write_whole(_memory(request), json.dumps({"version": version}) + "\n", 0o644)


def _last_answer(request: Request, error: UnreachableError) -> Answer:
    """A channel's last known release does as well as any, where there is no network for the moment."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        version = json.loads(_memory(request).read_text(encoding="utf-8"))["version"]
        if tools_kept.read(request.directory_of(version)):
            note = f"{request.version} is taken to be {version} still, as it was when it was last looked up: {error}"
            return Answer(request.directory_of(version), version, note=note)
    raise error


def _memory(request: Request) -> Path:
    return request.path / CHANNELS / f"{request.distribution}-{request.version}.json"
