# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The software of the BMC services, which all labs of a host share.

Each release is a directory of its own, and `bin/python` starts the one that counts. A new one is made beside it, and
that file replaced: until then, and if it never comes to that, labs go on with what was there. A service that runs keeps
its release until it is restarted.
"""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import release
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.release import Recipe, Release
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.own_directory import OwnDirectory
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._core.program import Program, refuse_bad_names
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LAUNCHER = "bin/python"
LAUNCHER_TEXT = """\
#!/bin/sh
# Made by nometal.ipi: the release of the BMC software that counts.
exec {python} "$@"
"""
MARK = ".nometal-bmc-software"
OURS = ("bin", *(f"{release.NAME}/{name}" for name in release.KNOWN))
FOR_ALL = 0o555
SELINUX = Path("/sys/fs/selinux/enforce")


@dataclass(frozen=True)
class Software:
    """Which release is installed; none if it is not whole. Unfinished: what a killed run has left."""

    digest: str | None
    unfinished: bool = False


def plan(current: Software | None, wanted: Software | None) -> Sequence[Step]:
    if wanted is None:
        return [Step("remove", "software")] if current else []
    if current is None or current.digest != wanted.digest:
        return [Step("install", "software")]
    return [Step("tidy", "software")] if current.unfinished else []


class SoftwarePort:
    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._path = recipe.path
        self._launcher = recipe.path / LAUNCHER
        self._directory = OwnDirectory(recipe.path, MARK, "bmc_software", "/opt/nometal/bmc", OURS)

    @contextmanager
    def alone(self) -> Iterator[SoftwarePort]:
        with self._directory.alone():
            yield self

    def refuse_conflicts(self) -> None:
        self._directory.refuse_another(
            f"is not BMC software, which has a file {MARK} in it: name a directory of its own; or remove it, if an "
            "earlier nometal.ipi has made it."
        )
        refuse_bad_names(self._recipe.sources)

    def refuse_bad_recipe(self) -> None:
        """What matters only when there is something to install."""
        if not self.found or self.found.digest != self._recipe.digest:
            self._recipe.require_python()

    def read(self) -> Software | None:
        return self.found

    @cached_property
    def found(self) -> Software | None:
        """When the module began."""
        if not self._directory.has_ours:
            return None
        in_force = self._in_force()
        unfinished = any(not each.is_finished for each in release.releases(self._path))
        return Software(in_force.digest if in_force else None, unfinished)

    def apply(self, step: Step) -> None:
        {"install": self._install, "tidy": self._tidy, "remove": self._directory.remove}[step.verb]()

    def stays(self) -> list[str]:
        """What others have there."""
        return self._directory.foreign()

    def _in_force(self) -> Release | None:
        """None as well if users other than root could not start it."""
        with suppress(OSError, ValueError, IndexError):
            text = self._launcher.read_text(encoding="utf-8")
            chosen = Release(Path(shlex.split(text.splitlines()[-1])[1]).parents[1])
            places = (self._path, self._launcher.parent, self._launcher, chosen.directory)
            if text == _launcher_text(chosen) and all(place.stat().st_mode & FOR_ALL == FOR_ALL for place in places):
                return chosen
        return None

    def _install(self) -> None:
        os.umask(0o022)  # the service is no root
        try:
            self._make_directory()
            self._tidy()
            new = release.begin(self._path, self._recipe)
            try:
                new.fill(self._recipe)
            except BaseException:
                removal.remove_known(new.directory, release.KNOWN)
                raise
            Program(self._launcher, _launcher_text(new)).install()
            self._tidy()
        except OSError as error:
            raise OperatorError(f"The software cannot be installed in {self._path}: {error}.") from error

    def _make_directory(self) -> None:
        self._directory.make()
        files.own_directory(self._launcher.parent)
        if SELINUX.exists():
            # The policy lets services run what is in /opt/*/bin; new files there get the label of the directory.
            run("restorecon", "-R", str(self._launcher.parent))

    def _tidy(self) -> None:
        """Remove what runs no longer and is not started any more."""
        in_force, in_use = self._in_force(), release.in_use(self._path)
        for each in release.releases(self._path):
            if each != in_force and each.directory not in in_use:
                removal.remove_known(each.directory, release.KNOWN)


def _launcher_text(chosen: Release) -> str:
    return LAUNCHER_TEXT.format(python=shlex.quote(chosen.python))


class HostSoftware(Resource["Software | None", SoftwarePort]):
    def desired(self) -> Software | None:
        params = self.params
        recipe = Recipe(
            path=Path(params["path"]),
            python=params["python"],
            requirements=params["requirements"] or "",
            sources=params["sources"] or {},
            pip_arguments=params["pip_arguments"],
        )
        self.port = SoftwarePort(recipe)
        return Software(recipe.digest) if self.is_wanted else None

    @contextmanager
    def open(self) -> Iterator[SoftwarePort]:
        self.port.refuse_conflicts()  # before there is a lock in a directory that may belong to others
        with self.port.alone():
            if self.is_wanted:
                self.port.refuse_bad_recipe()
            yield self.port

    def plan(self, current: Software | None, desired: Software | None) -> Sequence[Step]:
        return plan(current, desired)

    def result(self) -> dict[str, Any]:
        return {} if self.is_wanted else {"kept": self.port.stays()}

    def warnings(self) -> list[str]:
        return [] if self.is_wanted else removal.warnings(self.port.stays())
