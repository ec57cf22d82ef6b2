# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file with all that tells why an installation failed, and with no secret."""

from __future__ import annotations

import io
import os
import tarfile
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable, Union

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import KNOWN_OF_BUNDLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

KEPT = 3
ENDING = ".tar.gz"
TAIL_BYTES = 20 * 1024**2
README = """\
What an installation of lab {lab} has left to look at, gathered on {when}.

Pull secrets, passwords, tokens and private keys are replaced by [redacted]; what cannot be searched for them, such as
programs and archives of unknown kinds, is left out. Addresses, host names, certificates and public keys are in here.
Of long logs, these are the last {mib} MiB.

Not to be had:
{missing}
In here:
{contents}"""

Content = Union[str, bytes]
"""Bytes are pictures, and go in as they are."""


@dataclass(frozen=True)
class Piece:
    """Something to gather. It may fail, or hang: the bundle then says so in its place."""

    name: str
    read: Callable[[], Mapping[str, Content]]
    seconds: float = 30


@dataclass
class _Answer:
    content: Mapping[str, Content] = field(default_factory=dict)
    trouble: str = ""


def make(directory: Path, lab: str, pieces: Iterable[Piece], redact: Callable[[str], str]) -> tuple[Path, list[str]]:
    """Returns where it is, and what is in it. It appears when it is whole; old ones go then."""
    files.own_directory(directory, 0o700)
    path = _new(directory, lab)
    for left in directory.glob(".*.new"):  # by one that was killed
        left.unlink(missing_ok=True)
    with files.whole(path, 0o600) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        contents = _fill(archive, path.name[: -len(ENDING)], lab, pieces, redact)
    made = removal.matching(directory, KNOWN_OF_BUNDLES)
    for old in sorted(made, key=lambda bundle: bundle.stat().st_mtime_ns)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path, contents


def _fill(
    archive: tarfile.TarFile, top: str, lab: str, pieces: Iterable[Piece], redact: Callable[[str], str]
) -> list[str]:
    contents, missing = [], []
    for piece in pieces:
        answer = _asked(piece, redact)
        if answer.trouble:
            missing.append(f"  {piece.name}: {redact(answer.trouble)}\n")
        for name, content in answer.content.items():
            _add(archive, f"{top}/{name}", content)
            contents.append(name)
    told = {
        "lab": lab,
        "when": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "mib": TAIL_BYTES // 1024**2,
        "missing": "".join(missing) or "  -\n",
        "contents": "".join(f"  {name}\n" for name in contents),
    }
    _add(archive, f"{top}/README.txt", README.format(**told))
    return ["README.txt", *contents]


def _asked(piece: Piece, redact: Callable[[str], str]) -> _Answer:
    """In a thread that nothing waits for any longer: what hangs in libvirt cannot be interrupted."""
    answer = _Answer()

    def ask() -> None:
        try:
            found = piece.read()
            answer.content = {
                redact(name): redact(content) if isinstance(content, str) else content
                for name, content in found.items()
            }
        except Exception as error:  # a piece that is missing is no reason to give up the others
            answer.trouble = str(error) or type(error).__name__

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(piece.seconds)
    return _Answer(trouble=f"it took longer than {piece.seconds:.0f} s") if thread.is_alive() else answer


def _add(archive: tarfile.TarFile, name: str, content: Content) -> None:
    data = content.encode(errors="replace") if isinstance(content, str) else content
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
    archive.addfile(entry, io.BytesIO(data))


def _new(directory: Path, lab: str) -> Path:
    stamp = f"{lab}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    names = [stamp, *(f"{stamp}.{number}" for number in range(1, 100))]
    free = (path for path in (directory / f"{name}{ENDING}" for name in names) if not path.exists())
    return next(free, directory / f"{stamp}.100{ENDING}")


def tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """The end of a long file, from the beginning of a line: half a secret is not known again."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        data = file.read(limit)
    return from_line(data, cut=size > limit)


def from_line(data: bytes, *, cut: bool) -> str:
    whole = data.partition(b"\n")[2] if cut else data
    return whole.decode(errors="replace")
