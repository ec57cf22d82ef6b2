# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the distribution, downloaded and unpacked but never installed: some would set up the host's boot."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Manager(Protocol):
        """A package manager. It checks the signatures of what it downloads."""

        def download(self, names: Sequence[str], directory: Path, *, libraries: bool) -> None: ...

        def unpack(self, package: Path, directory: Path) -> None: ...


LAST_LINES = 12
KERNEL = re.compile(r"linux-(image|modules)-")
LIBRARY = re.compile(r"lib[^:]+$")
KEYS = Path("/etc/pki/rpm-gpg")
# By itself, apt tries for a minute.
PATIENCE = ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20"]
STRONG_TIES = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]


class CommandError(OperatorError):
    """A program has failed, which may have been expected."""


class NotCarriedError(OperatorError):
    """The distribution's mirror answers and does not have a package."""


def manager(scratch: Path) -> Manager:
    return Apt(scratch) if shutil.which("apt-get") else Dnf(scratch)


def unpacked(source: Manager, names: Sequence[str], scratch: Path, *, libraries: bool) -> Path:
    """One directory with the contents of all these packages, and of the libraries that they need."""
    packages, contents = scratch / "packages", scratch / "contents"
    files.make_directory(packages)
    files.make_directory(contents)
    source.download(names, packages, libraries=libraries)
    for package in sorted(packages.iterdir()):
        source.unpack(package, contents)
        package.unlink()
    return contents


class Apt:
    """The host's own lists of packages may be missing or outdated. They stay so: a fresh copy is ours alone."""

    def __init__(self, scratch: Path) -> None:
        self._lists = scratch / "lists"
        self._options = [*PATIENCE, "-o", "APT::Sandbox::User=root", "-o", f"Dir::Cache={scratch}/cache"]

    def download(self, names: Sequence[str], directory: Path, *, libraries: bool = False) -> None:
        try:
            self._get(names, directory, libraries)
        except CommandError:
            complaint = self._update()
            try:
                self._get(names, directory, libraries)
            except CommandError as error:
                raise _explained(names, "apt-get update", complaint, str(error)) from error

    def _update(self) -> str:
        """Why nothing came of it. One of several mirrors may be down and not be the one that matters."""
        if self._lists.exists():
            return ""
        files.make_directory(self._lists)
        self._options += ["-o", f"Dir::State::Lists={self._lists}", "-o", "Acquire::Languages=none"]
        try:
            _run(["apt-get", "-qq", *self._options, "-o", "APT::Update::Error-Mode=any", "update"])
        except CommandError as error:
            return "" if any(self._lists.glob("*_Packages*")) else str(error)
        return ""

    def _get(self, names: Sequence[str], directory: Path, libraries: bool) -> None:
        needed: set[str] = set()
        if libraries or any(map(KERNEL.match, names)):
            # The package of a distribution's latest kernel is empty and names those of its parts.
            told = _run(["apt-cache", *self._options, "depends", "--recurse", *STRONG_TIES, *names])
            needed = {word for word in told.split() if (LIBRARY if libraries else KERNEL).match(word)}
        _run(["apt-get", "-qq", *self._options, "download", *sorted({*names} | needed)], directory)

    def unpack(self, package: Path, directory: Path) -> None:
        _run(["dpkg-deb", "--extract", str(package), str(directory)])


class Dnf:
    def __init__(self, scratch: Path) -> None:
        self._keys = scratch / "keys"

    def download(self, names: Sequence[str], directory: Path, *, libraries: bool = False) -> None:
        options = ["--arch=x86_64", "--arch=noarch", f"--destdir={directory}", *(["--resolve"] if libraries else [])]
        try:
            _run(["dnf", "--quiet", "download", *options, *names])
        except CommandError as error:
            complaint = "" if self._has_lists() else str(error)
            raise _explained(names, "dnf makecache", complaint, str(error)) from error
        self._check_signatures(directory)

    def _has_lists(self) -> bool:
        try:
            _run(["dnf", "--quiet", "makecache"])
        except CommandError:
            return False
        return True

    def _check_signatures(self, directory: Path) -> None:
        """By the distribution's keys, which are not in the host's database before something has been installed."""
        rpmkeys = ["rpmkeys", "--dbpath", str(self._keys)]
        if not self._keys.exists():
            files.make_directory(self._keys)
            _run([*rpmkeys, "--import", *map(str, sorted(filter(Path.is_file, KEYS.iterdir())))])
        _run([*rpmkeys, "--checksig", *map(str, sorted(directory.iterdir()))])

    def unpack(self, package: Path, directory: Path) -> None:
        _run(["sh", "-c", 'rpm2cpio "$1" | cpio --quiet -idm --no-absolute-filenames', "-", str(package)], directory)


def _explained(names: Sequence[str], check: str, complaint: str, said: str) -> OperatorError:
    wanted = ", ".join(names)
    if not complaint:
        return NotCarriedError(
            f"The host's package mirror does not carry what the image is made of ({wanted}).\n{said}"
        )
    return OperatorError(
        f"The image is made of packages that cannot be downloaded ({wanted}): the host does not reach its package "
        f"mirror. See that `{check}` works, with the proxy of the play's environment if it takes one.\n{complaint}"
    )


def _run(command: Sequence[str], directory: Path | None = None) -> str:
    if not shutil.which(command[0]):
        raise OperatorError(f"{command[0]} is not installed: role nometal.ipi.host_prep installs it.")
    mortal = ["/usr/bin/setpriv", "--pdeathsig", "KILL", *command]  # what a killed run leaves must not write any more
    try:
        done = subprocess.run(mortal, check=True, capture_output=True, text=True, cwd=directory, umask=files.UMASK)
    except subprocess.CalledProcessError as error:
        said = "\n".join((error.stdout + error.stderr).strip().splitlines()[-LAST_LINES:])
        raise CommandError(f"`{command[0]}` said:\n{said}") from error
    return done.stdout
