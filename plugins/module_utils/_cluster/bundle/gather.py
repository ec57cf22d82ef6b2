# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `openshift-install gather bootstrap` fetches from the bootstrap VM and the control plane, as texts."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import signal
import subprocess
import tarfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.archive import TAIL_BYTES, from_line, tail
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROGRAMS = ("openshift-install", "openshift-baremetal-install")
ENDING_SECONDS = 10
MOST_BYTES = 100 * 1024**2
DEEPEST = 3
ARCHIVES = (".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class Gathering:
    assets: Path
    scratch: Path
    """Where it may lie for as long as it takes: it has secrets."""
    tools: Path
    bootstrap: str
    masters: Sequence[str]
    seconds: float


def gather(wanted: Gathering) -> dict[str, str]:
    """In a copy of the installer's directory, whose log is read by those who watch."""
    program = next((wanted.tools / name for name in PROGRAMS if (wanted.tools / name).exists()), None)
    if program is None:
        raise OperatorError(f"{wanted.tools} has no {PROGRAMS[0]}")
    with _scratch(wanted) as directory:
        addresses = ["--bootstrap", wanted.bootstrap, *(word for ip in wanted.masters for word in ("--master", ip))]
        command = [str(program), "gather", "bootstrap", "--dir", str(directory), *addresses]
        said = _run(command, wanted, directory)
        found = {"output.txt": said}
        return {**found, **gathered(directory)}


def gathered(directory: Path) -> Mapping[str, str]:
    """What the installer has fetched last; when the bootstrap VM fails, it does so by itself if it can."""
    archives = sorted(directory.glob("log-bundle-*.tar.gz"), key=lambda made: made.stat().st_mtime_ns)
    return texts_of(archives[-1].name, archives[-1].read_bytes(), Budget(MOST_BYTES)) if archives else {}


@contextmanager
def _scratch(wanted: Gathering) -> Iterator[Path]:
    removal.discard(wanted.scratch)  # of one that was killed
    files.make_directory(wanted.scratch, 0o700)
    try:
        copy = wanted.scratch / "cluster"
        shutil.copytree(wanted.assets, copy, ignore=shutil.ignore_patterns("*.log", "*.tar.gz"))
        yield copy
    finally:
        removal.discard(wanted.scratch)


def _run(command: Sequence[str], wanted: Gathering, directory: Path) -> str:
    path = f"{wanted.tools}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    environment = {**os.environ, "PATH": path, "TMPDIR": str(wanted.scratch)}
    output = directory.parent / "output.txt"
    with files.open_kept(output, 0o600) as file:
        done = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=directory,
            start_new_session=True,
            umask=0o077,
        )
        ending = _ended(done, wanted.seconds)
    return f"{tail(output)}{ending}\n"


def _ended(process: subprocess.Popen[bytes], seconds: float) -> str:
    try:
        return f"exit code {process.wait(seconds)}"
    except subprocess.TimeoutExpired:
        for number in (signal.SIGINT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDING_SECONDS)
                break
        return f"ended, for it took longer than {seconds:.0f} s"


class Budget:
    """How much more may be unpacked."""

    def __init__(self, size: int) -> None:
        self._left = size

    def read(self, file: IO[bytes] | gzip.GzipFile) -> bytes:
        """The end of it, from a line's beginning."""
        data, is_cut = b"", False
        limit = min(TAIL_BYTES, self._left)
        while chunk := file.read(1024**2):
            data += chunk
            is_cut = is_cut or len(data) > limit
            data = data[max(0, len(data) - limit) :]
        self._left -= len(data)
        return data.partition(b"\n")[2] if is_cut else data


def texts_of(name: str, data: bytes, budget: Budget, depth: int = 0) -> Mapping[str, str]:
    """By name. Archives are unpacked, so that secrets are found in them; what is not text is left out."""
    if depth < DEEPEST and name.endswith(ARCHIVES):
        with suppress(tarfile.TarError, EOFError, OSError):
            return _texts_in_tar(name, data, budget, depth)
    elif depth < DEEPEST and name.endswith(".gz"):
        with suppress(EOFError, OSError), gzip.open(io.BytesIO(data)) as file:
            return texts_of(name[: -len(".gz")], budget.read(file), budget, depth + 1)
    return {} if b"\0" in data or name.endswith((*ARCHIVES, ".gz")) else {name: from_line(data, cut=False)}


def _texts_in_tar(name: str, data: bytes, budget: Budget, depth: int) -> dict[str, str]:
    found: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file:
                found.update(texts_of(_inside(name, member.name), budget.read(file), budget, depth + 1))
    return found


def _inside(archive: str, member: str) -> str:
    """Where a member is shown: below the archive's name, which usually is that of the directory in it."""
    ending = next(ending for ending in ARCHIVES if archive.endswith(ending))
    base = PurePosixPath(archive[: -len(ending)])
    inner = PurePosixPath(*(part for part in PurePosixPath(member).parts if part not in ("/", "..")))
    return str((base.parent if inner.parts[:1] == (base.name,) else base) / inner)
