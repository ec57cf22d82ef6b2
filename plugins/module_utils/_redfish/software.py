# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The software of the BMC services, in an environment of its own that all labs share."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host.files import remove_empty
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PACKAGE = "nometal_bmc"
DIGEST = "digest"
# .gitignore: of Python 3.13 and later.
PARTS = {"bin", "include", "lib", "lib64", "share", "pyvenv.cfg", ".gitignore", "cache", DIGEST}
LAST_LINES = 15
# It fails when the distribution's Python has become another one since.
ASK = f"import pathlib, sys, {PACKAGE}; print(pathlib.Path(sys.prefix, '{DIGEST}').read_text())"


@dataclass(frozen=True)
class Software:
    """Which release is installed; none if it is not whole."""

    digest: str | None


@dataclass(frozen=True)
class Recipe:
    path: Path
    python: str
    requirements: str
    sources: Mapping[str, str]
    pip_arguments: Sequence[str]

    @property
    def digest(self) -> str:
        parts = [self.requirements, *(f"{name}\n{text}" for name, text in sorted(self.sources.items()))]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def plan(current: Software | None, wanted: Software | None) -> Sequence[Step]:
    if current == wanted:
        return []
    return [Step("install" if wanted else "remove", "software")]


class SoftwarePort:
    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._path = recipe.path
        self._mark = recipe.path / DIGEST

    def refuse_conflicts(self) -> None:
        """What is not ours is neither replaced nor removed."""
        if not self._path.is_absolute():
            raise OperatorError(f"path is {self._path}: an absolute path is right, such as /opt/nometal/bmc.")
        if self._path.exists() and not self._may_be_ours():
            raise OperatorError(f"{self._path} is there and is no BMC software: name a directory of its own.")
        strange = [name for name in self._recipe.sources if Path(name).name != name]
        if strange:
            raise OperatorError(f"sources: {', '.join(strange)}: file names without a directory are right.")

    def _may_be_ours(self) -> bool:
        """Empty, or some of an environment: an installation may have been interrupted at any point."""
        return self._path.is_dir() and {entry.name for entry in self._path.iterdir()} <= PARTS

    def read(self) -> Software | None:
        return Software(self._installed()) if self._path.exists() else None

    def apply(self, step: Step) -> None:
        if step.verb == "install":
            self._install()
        else:
            shutil.rmtree(self._path)
            remove_empty(self._path.parent)

    def _installed(self) -> str | None:
        with suppress(OSError):
            done = subprocess.run([self._python, "-c", ASK], check=False, capture_output=True, text=True)
            return done.stdout.strip() or None
        return None

    @property
    def _python(self) -> str:
        return str(self._path / "bin/python")

    def _install(self) -> None:
        os.umask(0o022)  # the service is no root
        afresh = [] if self._installed() else ["--clear"]
        with suppress(FileNotFoundError):
            self._mark.unlink()  # until all is done: what is killed in between is made afresh
        _run([self._recipe.python, "-m", "venv", "--system-site-packages", *afresh, str(self._path)], hint=VENV_HINT)
        self._install_requirements()
        self._install_package()
        self._mark.write_text(self._recipe.digest + "\n", encoding="utf-8")

    def _install_requirements(self) -> None:
        # All settings of the host's pip count, and its cache is to be nobody's afterwards.
        cache = self._path / "cache"
        pip = [self._python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        command = [*pip, *self._recipe.pip_arguments, "--requirement", "/dev/stdin"]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        _run(command, text=self._recipe.requirements, environment=environment, hint=PIP_HINT)
        shutil.rmtree(cache, ignore_errors=True)

    def _install_package(self) -> None:
        where = _run([self._python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        package = Path(where.strip()) / PACKAGE
        shutil.rmtree(package, ignore_errors=True)
        package.mkdir()
        for name, text in self._recipe.sources.items():
            (package / name).write_text(text, encoding="utf-8")
        _run([self._python, "-m", "compileall", "-q", str(package)])


VENV_HINT = "Role nometal.ipi.host_prep installs what it takes."
PIP_HINT = (
    "It uses the host's own settings (/etc/pip.conf, the proxy of the play's environment); "
    "role variable bmc_emulation_pip_arguments adds to them."
)


def _run(
    command: Sequence[str], *, text: str = "", environment: Mapping[str, str] | None = None, hint: str = ""
) -> str:
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, input=text, env=environment)
    except FileNotFoundError as error:
        raise OperatorError(f"{command[0]} is missing. {hint}".strip()) from error
    except subprocess.CalledProcessError as error:
        said = "\n".join((error.stdout + error.stderr).strip().splitlines()[-LAST_LINES:])
        raise OperatorError(f"`{' '.join(command[:4])} ...` failed. {hint}\n{said}") from error
    return done.stdout
