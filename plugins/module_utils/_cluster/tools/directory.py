# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where tools are kept: each release in a directory that is whole or not there, below one that is ours."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import job_secrets, run
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import kept as tools_kept
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import making as tools_making
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import programs as tools_programs
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import request as tools_request
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.progress import Progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.request import Answer, Request
from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import locked, nothing
from ansible_collections.nometal.ipi.plugins.module_utils._core.own_directory import MARK_TEXT, OwnDirectory
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import INSTALLS, Paths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

MARK = ".nometal-tools"
MODULE, USUAL_PATH = "installer_tools", "/var/cache/nometal/tools"
UNFINISHED = "unfinished-"
KNOWN = (tools_kept.BIN, tools_kept.RECORD)
"""What there is of one release."""
OURS = (*(f"{kind}-*/{name}" for kind in ("ocp", "okd") for name in KNOWN), f"{UNFINISHED}*", tools_request.CHANNELS)
GIVEN_UP = 24 * 3600.0  # seconds since anything came, or since it was wanted
KEPT = 2  # of a minor version


@dataclass(frozen=True)
class Tools:
    """Which tools are there, of those asked for; none if they are not whole. Leftovers: of a run that was killed."""

    name: str | None
    leftovers: bool = False


def plan(current: Tools | None, wanted: Tools | None) -> Sequence[Step]:
    if wanted is None:
        return [Step("remove", "tools")] if current else []
    if current is None or current.name != wanted.name:
        return [Step("get", "tools")]
    return [Step("tidy", "tools")] if current.leftovers else []


def refuse_conflicts(path: Path) -> None:
    _own(path).refuse_another(
        f"holds no tools of nometal.ipi, beside which there would be a file {MARK}: name a directory of its own."
    )


def _own(path: Path) -> OwnDirectory:
    return OwnDirectory(path, MARK, MODULE, USUAL_PATH, OURS)


class ToolsPort:
    def __init__(self, request: Request, answer: Answer, progress: Progress) -> None:
        self._request = request
        self._answer = answer
        self._progress = progress
        self._path = request.path
        self._work = request.path / f"{UNFINISHED}{answer.directory.name}"

    def read(self) -> Tools | None:
        if not self._path.exists():
            return None
        is_whole = tools_kept.read(self._answer.directory) is not None
        return Tools(self._answer.directory.name if is_whole else None, leftovers=is_whole and self._work.exists())

    def apply(self, _step: Step) -> None:
        os.umask(0o022)
        try:
            with self._shared():
                self._finish()
        except OSError as error:
            raise OperatorError(f"The tools cannot be kept in {self._path}: {error}.") from error

    def remember(self) -> None:
        """When these were last wanted, and what a channel was, which only serves a time without network."""
        with suppress(OSError), self._shared():
            os.utime(self._answer.directory)
            if self._answer.origin:
                tools_request.remember(self._request, self._answer.version)

    def _shared(self) -> AbstractContextManager[bool]:
        """The directory is not removed meanwhile."""
        return locked(
            self._path / MARK, self._make_directory, shared=True, until_free=lambda: self._wait("their removal")
        )

    def _make_directory(self) -> None:
        directories.make_own(self._path)
        with files.open_kept(self._path / MARK, 0o644) as mark:
            if not mark.tell():
                mark.write(MARK_TEXT.format(module=MODULE))

    def _wait(self, what: str) -> None:
        self._progress.say("oc", f"waits for {what}")

    def _finish(self) -> None:
        """What is there of it stays when this is killed, and is gone on with."""
        final, work = self._answer.directory, self._work
        with locked(work, lambda: files.make_directory(work), until_free=lambda: self._wait("another run")):
            if not tools_kept.read(final):  # by another run, while this one waited
                self._forget_others(work)
                try:
                    made = tools_making.make(self._request, self._answer, work, self._progress)
                except BaseException:
                    _keep_downloads(work)
                    raise
                removal.remove_known(final, KNOWN)
                files.replace_directory(made, final)
                with suppress(FileNotFoundError):  # another run does the same
                    self._forget_older()
            removal.remove_tree(work)

    def _forget_older(self) -> None:
        """Channels move on, and each release takes about a gigabyte."""
        in_use = {run.read(Paths(path.name)).version for path in INSTALLS.glob("*")}
        alike = self._path.glob(f"{self._request.distribution}-*")
        found = {entry: kept.version for entry in alike if (kept := tools_kept.read(entry))}
        own = tools_release.numbers(self._answer.version)
        of_minor = [entry for entry, version in found.items() if tools_release.numbers(version) == own]
        for entry in sorted(of_minor, key=_wanted)[:-KEPT]:
            if found[entry] not in in_use and _wanted(entry) < time.time() - GIVEN_UP:
                removal.remove_known(entry, KNOWN)

    def _forget_others(self, own: Path) -> None:
        """Downloads that no run continues take room."""
        for work in self._path.glob(f"{UNFINISHED}*"):
            if work != own and _touched(work) < time.time() - GIVEN_UP:
                with locked(work) as has_lock:
                    if has_lock:
                        removal.remove_tree(work)


@dataclass(frozen=True)
class RemovalPort:
    path: Path

    def read(self) -> Tools | None:
        return Tools(None) if _own(self.path).has_ours else None

    def stays(self) -> list[str]:
        """What is there and not made here."""
        return _own(self.path).foreign()

    def apply(self, _step: Step) -> None:
        try:
            with locked(self.path / MARK, until_free=nothing):
                _own(self.path).remove()
        except OSError as error:
            raise OperatorError(f"{self.path} cannot be removed: {error}.") from error


def _wanted(entry: Path) -> float:
    return entry.stat().st_mtime


def _touched(work: Path) -> float:
    with suppress(FileNotFoundError):  # another run removes it just now
        return max(entry.stat().st_mtime for entry in (work, *work.iterdir()))
    return time.time()


def _keep_downloads(work: Path) -> None:
    for entry in work.iterdir():
        if not entry.with_suffix(tools_making.PART).exists():
            removal.remove_tree(entry)
    files.remove_empty(work)


class InstallerTools(Resource["Tools | None", "ToolsPort | RemovalPort"]):
    def desired(self) -> Tools | None:
        params = self.params
        environment = job_secrets.mapping_of("environment", params["environment"])
        os.environ.update({name: str(value) for name, value in environment.items()})
        path = Path(params["path"])
        refuse_conflicts(path)
        if not self.is_wanted:
            self.port = RemovalPort(path)
            return None
        self._request = _request_from(params)
        self._request.refuse_bad()
        tools_programs.refuse_bad_pull_secret(self._request.pull_secret)
        self._answer = tools_request.answer(self._request)
        progress = Progress(Path(params["events"]) if params["events"] and not self.check_mode else None)
        self.port = ToolsPort(self._request, self._answer, progress)
        return Tools(self._answer.directory.name)

    def open(self) -> AbstractContextManager[ToolsPort | RemovalPort]:
        return nullcontext(self.port)

    def plan(self, current: Tools | None, desired: Tools | None) -> Sequence[Step]:
        return plan(current, desired)

    def finish(self, _steps: Sequence[Step]) -> None:
        if isinstance(self.port, ToolsPort):
            self.port.remember()

    def result(self) -> dict[str, Any]:
        return _facts(self._request, self._answer) if self.is_wanted else {"kept": self._kept()}

    def warnings(self) -> list[str]:
        return removal.warnings(self._kept())

    def _kept(self) -> list[str]:
        return self.port.stays() if isinstance(self.port, RemovalPort) else []


def _request_from(params: dict[str, Any]) -> Request:
    return Request(
        version=params["version"],
        distribution=params["distribution"],
        path=Path(params["path"]),
        machine=os.uname().machine,
        release_image=params["release_image"] or None,
        source=params["source"] or None,
        fips=params["fips"],
        pull_secret=job_secrets.pull_secret_of(params["pull_secret"]) if params["pull_secret"] else "",
    )


def _facts(request: Request, answer: Answer) -> dict[str, Any]:
    kept = tools_kept.read(answer.directory)
    programs = answer.directory / tools_kept.BIN
    told = request.release_image or (answer.release.image if answer.release else None)
    return {
        "version": kept.version if kept else answer.version,
        "release_image": (kept.release_image if kept else told) or "",
        "directory": str(programs),
        "oc": str(programs / "oc"),
        "openshift_install": str(programs / "openshift-install"),
        "note": answer.note,
    }
