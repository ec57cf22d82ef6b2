# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One release of the software: a virtual environment that is made once and never changed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PACKAGE = "nometal_bmc"
PREFIX = "release-"
DIGITS = 12
NAME = f"{PREFIX}{'[0-9a-f]' * DIGITS}*"
KNOWN = ("bin", "include", "lib", "lib64", "share", "pyvenv.cfg", ".gitignore", "cache", "release.json", ".*.new")
"""What there is in one: a virtual environment, and a record of it."""
LAST_LINES = 15
PYTHON_QUESTION = "import sys; print(sys.version_info >= (3, 9), flush=True); import venv, ensurepip"
# Imports all that the service is made of, and prints which files of the distribution it takes.
TRIAL = """
import importlib, json, os, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
print(json.dumps(sorted(file for file in files if os.path.isfile(file) and not file.startswith(sys.prefix + os.sep))))
"""
VENV_HINT = "Role nometal.ipi.host_prep installs what it takes."
PIP_HINT = (
    "It uses the host's own settings (/etc/pip.conf, the proxy of the play's environment); "
    "role variable bmc_emulation_pip_arguments adds to them."
)


@dataclass(frozen=True)
class Recipe:
    path: Path
    python: str
    requirements: str
    sources: Mapping[str, str]
    pip_arguments: Sequence[str]

    @property
    def digest(self) -> str:
        parts = [self.python, self.requirements, *(f"{name}\n{text}" for name, text in sorted(self.sources.items()))]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def require_python(self) -> None:
        try:
            asked = subprocess.run([self.python, "-c", PYTHON_QUESTION], check=False, capture_output=True, text=True)
        except OSError as error:
            raise OperatorError(f"python is {self.python}, which cannot be run: {error.strerror}.") from error
        if asked.stdout.strip() != "True":
            raise OperatorError(f"python: must be Python 3.9 or later, such as /usr/bin/python3 (got {self.python}).")
        if asked.returncode:
            raise NotThereYetError(f"{self.python} cannot make virtual environments. {VENV_HINT}")


@dataclass(frozen=True)
class Release:
    directory: Path

    @property
    def python(self) -> str:
        return str(self.directory / "bin/python")

    @property
    def is_finished(self) -> bool:
        return self._record.exists()

    @property
    def digest(self) -> str | None:
        """Of the recipe, if all is still as it was made, and what it takes of the distribution is there."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads(self._record.read_text(encoding="utf-8"))
            if record["stamp"] == self._stamp() and all(map(os.path.exists, record["borrowed"])):
                return str(record["digest"])
        return None

    @property
    def _record(self) -> Path:
        return self.directory / "release.json"

    def fill(self, recipe: Recipe) -> None:
        _run([recipe.python, "-m", "venv", "--system-site-packages", str(self.directory)], hint=VENV_HINT)
        self._install_requirements(recipe)
        self._install_package(recipe)
        borrowed = json.loads(_run([self.python, "-c", TRIAL, *map(_module, recipe.sources)]))
        record = {"digest": recipe.digest, "stamp": self._stamp(), "borrowed": borrowed}
        files.write_whole(self._record, json.dumps(record), 0o644)

    def _install_requirements(self, recipe: Recipe) -> None:
        # All settings of the host's pip count, and its cache is not kept.
        cache = self.directory / "cache"
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        command = [*pip, *recipe.pip_arguments, "--requirement", "/dev/stdin"]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        _run(command, text=recipe.requirements, environment=environment, hint=PIP_HINT)
        removal.discard(cache)

    def _install_package(self, recipe: Recipe) -> None:
        where = _run([self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        package = Path(where.strip()) / PACKAGE
        files.write_tree(package, recipe.sources)
        _run([self.python, "-m", "compileall", "-q", str(package)])

    def _stamp(self) -> str:
        """Of each file's size, time and access: any change shows, at the cost of a look at the directories."""
        # Another Python of the distribution would be another environment.
        words = [os.path.realpath(self.python), *_looks(str(self.directory), {str(self._record)})]
        return hashlib.sha256("\n".join(words).encode("utf-8", "surrogateescape")).hexdigest()


def begin(path: Path, recipe: Recipe) -> Release:
    """Named after its recipe. There may be one of the same that is damaged or still runs."""
    name = f"{PREFIX}{recipe.digest[:DIGITS]}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    directory = next(path / each for each in names if not (path / each).exists())
    files.make_directory(directory)
    return Release(directory)


def releases(path: Path) -> list[Release]:
    return [Release(directory) for directory in sorted(path.glob(NAME)) if removal.has_known(directory, KNOWN)]


def in_use(path: Path) -> set[Path]:
    """From which releases below the path programs run; they may still load parts of them."""
    programs = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            programs.add(Path(os.fsdecode(file.read_bytes().partition(b"\0")[0])))
    return {path / program.relative_to(path).parts[0] for program in programs if path in program.parents}


def _module(name: str) -> str:
    """By the name of its file in the package."""
    return ".".join([PACKAGE, *PurePosixPath(name).with_suffix("").parts]).removesuffix(".__init__")


def _looks(directory: str, without: set[str]) -> Iterator[str]:
    for entry in sorted(os.scandir(directory), key=lambda found: found.name):
        if entry.name == "__pycache__" or entry.path in without:
            continue
        status, is_directory = entry.stat(follow_symlinks=False), entry.is_dir(follow_symlinks=False)
        content = "" if is_directory else f"{status.st_size} {status.st_mtime_ns}"
        yield f"{entry.path} {status.st_mode} {status.st_uid} {status.st_gid} {content}"
        if is_directory:
            yield from _looks(entry.path, without)


def _run(
    command: Sequence[str], *, text: str = "", environment: Mapping[str, str] | None = None, hint: str = ""
) -> str:
    try:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, input=text, env=environment, umask=files.UMASK
        )
    except subprocess.CalledProcessError as error:
        said = "\n".join((error.stdout + error.stderr).strip().splitlines()[-LAST_LINES:])
        raise OperatorError(f"`{' '.join(command[:4])} ...` failed. {hint}\n{said}") from error
    return done.stdout
