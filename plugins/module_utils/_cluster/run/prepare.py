# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installer's directory as it is to find it, locked against other runs meanwhile."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import (
    installer_errors,
    manifest_files,
    media_tls,
    no_proxy,
    yaml_text,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import runner
from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, files, removal, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import locked
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import CACHE, KNOWN_OF_CLUSTER, Paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

OURS = 0o700
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
WAITING_SECONDS, MANIFESTS_SECONDS = 900, 300
WRONG_CONFIG = 3  # the installer's exit code


@dataclass(frozen=True)
class Job:
    """What a new installation is made of."""

    program: Path
    release: tuple[int, int] | None
    config: Mapping[str, Any]
    """With all secrets in it."""
    secrets: Sequence[str]
    """What may not be shown, as far as the configuration's keys do not tell it."""
    known_secrets: Callable[[Paths], Iterable[str]]
    """All of them, once everything is written down there."""
    manifests: Mapping[str, str]
    media_tls: bool
    environment: Mapping[str, str]

    @property
    def switches_tls_off(self) -> bool:
        return not self.media_tls and (self.release is None or self.release >= media_tls.SINCE)


@dataclass(frozen=True)
class Draft(Paths):
    """Beside what is there of a lab's installation: the next one, until it is known to be good."""

    @property
    def directory(self) -> Path:
        return super().directory / "draft"


def environment_of(paths: Paths, tools: Path, more: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, str]:
    """Nothing else of ours: it may name other registries, another cluster."""
    given = {name: str(value) for name, value in more.items()}
    return {
        **given,
        **no_proxy.exceptions(given, config),
        "PATH": f"{tools}:{PATH}",
        "LANG": "C.UTF-8",
        "HOME": str(paths.directory),
        "TMPDIR": str(paths.temporary),
        "XDG_CACHE_HOME": str(paths.cache),
    }


@contextmanager
def alone(paths: Paths) -> Iterator[None]:
    """Others that prepare an installation of this lab are waited for."""
    with ExitStack() as held:
        wait.require(
            lambda: _is_taken(paths, held),
            WAITING_SECONDS,
            lambda: f"Another play is preparing an installation of lab {paths.lab} and does not end.",
        )
        try:
            yield
        finally:
            files.remove_empty(paths.directory)


@contextmanager
def drafted(paths: Paths, job: Job) -> Iterator[str]:
    """The installer has made its manifests, so it takes the configuration. What the operator should know is given."""
    draft = Draft(paths.lab)
    try:
        _remove(draft.directory)  # of one that was killed
        make_directories(draft)
        text = yaml_text.dump(job.config)
        files.write_whole(draft.config, text, 0o600)
        files.write_whole(draft.secrets, json.dumps({"secrets": job.secrets}) + "\n", 0o600)
        files.write_whole(draft.assets / draft.config.name, text, 0o600)  # the installer consumes this one
        _create_manifests(draft, job)
        if job.switches_tls_off:
            media_tls.switch_off(draft.assets)
        yield manifest_files.add(draft.assets, job.manifests)
    finally:
        _remove(draft.directory)


def adopt(paths: Paths) -> None:
    """The draft, in place of all that is there but for what an administrator has put beside it."""
    draft = Draft(paths.lab)
    _clear(paths)
    make_directories(paths)
    draft.config.replace(paths.config)
    draft.secrets.replace(paths.secrets)
    files.replace_directory(draft.assets, paths.assets)


def _clear(paths: Paths) -> None:
    removal.remove_known(paths.assets, KNOWN_OF_CLUSTER)
    _remove(paths.temporary)
    for file in (paths.config, paths.secrets, paths.runner, paths.run, paths.output, paths.directory / runner.PLAN):
        files.remove(file)


def _remove(directory: Path) -> None:
    stays = removal.remove_tree(directory)
    if stays:
        raise OperatorError(f"{directory} cannot be made anew, for others have something in it: {', '.join(stays)}.")


def make_directories(paths: Paths) -> None:
    for directory in (paths.directory, paths.assets, paths.temporary):
        files.own_directory(directory, OURS)
    directories.note([CACHE.parent], directories.MEMORY)
    for directory in (CACHE, paths.cache):
        files.own_directory(directory)


def _is_taken(paths: Paths, held: ExitStack) -> bool:
    """The directory itself is the lock, so that there is nothing to leave behind."""
    with suppress(FileNotFoundError):  # another play has just ended, and removed it
        return held.enter_context(locked(paths.directory, lambda: files.own_directory(paths.directory, OURS)))
    return False


def _create_manifests(paths: Paths, job: Job) -> None:
    command = [str(job.program), "create", "manifests", "--dir", str(paths.assets)]
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=paths.directory,
            env={**job.environment, "HOME": str(paths.directory), "TMPDIR": str(paths.temporary)},
            umask=0o077,
            timeout=MANIFESTS_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise OperatorError(f"`{job.program.name} create manifests` did not end in {MANIFESTS_SECONDS} s.") from error
    if done.returncode:
        found = "\n".join(installer_errors.errors_in(done.stderr + done.stdout, job.known_secrets(paths)))
        if done.returncode == WRONG_CONFIG:
            raise OperatorError(f"The installer refuses the lab's install-config.yaml:\n{found}")
        code = f"ended with {done.returncode}"
        raise OperatorError(f"`{job.program.name} create manifests` {code}:\n{found}")
