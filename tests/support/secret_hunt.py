"""Looking for planted secrets: on disks, in archives, and in what /proc tells of processes while something runs.

A secret is found as it stands, in Base64 wherever it begins there, and in Base64 of that.
"""

from __future__ import annotations

import base64
import gzip
import io
import os
import stat
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from support import processes

if TYPE_CHECKING:
    from types import TracebackType

SHORTEST = 8
LARGEST = 64 * 1024**2
NO_DISK = ("proc", "sys", "dev")
PERIOD = 0.06
AROUND = 60
PRIVATE = 0o077
GZIP = b"\x1f\x8b"
LARGEST_OF_PROC = 1024**2


class Hunt:
    """What is looked for, by the name of each. Those that begin with the mark are only looked for where the mark is."""

    def __init__(self, secrets: Mapping[str, str], mark: str) -> None:
        shorter = [name for name, secret in secrets.items() if len(secret) < SHORTEST]
        if shorter:
            raise ValueError(f"Too short to be known again: {shorter}")
        self._mark = list(_forms(mark.encode()))
        self._marked = {name: list(_forms(text.encode())) for name, text in secrets.items() if text.startswith(mark)}
        self._others = {name: list(_forms(text.encode())) for name, text in secrets.items() if name not in self._marked}

    def names_in(self, data: bytes) -> list[str]:
        return list(self._places_in(data))

    def _places_in(self, data: bytes) -> dict[str, int]:
        is_marked = any(form in data for form in self._mark)
        wanted = {**self._others, **(self._marked if is_marked else {})}
        places = {name: max(map(data.find, forms)) for name, forms in wanted.items()}
        return {name: place for name, place in places.items() if place >= 0}

    def found_in(self, data: bytes | str, where: str) -> list[str]:
        """One line for each secret: whose, where, and what stands around it."""
        whole = data.encode(errors="replace") if isinstance(data, str) else data
        found = self._places_in(whole).items()
        return [f"{name} in {where}: {whole[max(0, at - AROUND) : at + AROUND]!r}" for name, at in found]

    def found_below(self, root: Path, since: float = 0.0, allowed: Iterable[str] = ()) -> list[str]:
        """In names and contents of files that have changed since then."""
        found = []
        for path in files_below(root, since):
            where = f"/{path.relative_to(root)}"
            if not any(f"{where}/".startswith(f"{place}/") for place in allowed):
                found += self.found_in(where, "a file's name")
                found += [line for inner, data in unpacked(where, content(path)) for line in self.found_in(data, inner)]
        return found

    def public_below(self, root: Path, since: float = 0.0) -> list[str]:
        """Files with a secret that others than their owner can read or reach."""
        return [
            f"/{path.relative_to(root)}"
            for path in files_below(root, since)
            if self.names_in(content(path)) and not _is_private(path, root)
        ]


def _forms(secret: bytes) -> Iterator[bytes]:
    yield secret
    for once in _in_base64(secret):
        yield once
        yield from _in_base64(once)


def _in_base64(data: bytes) -> Iterator[bytes]:
    """What is the same whatever stands before and after, for each place where it may begin."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data + b"\0" * (-(before + len(data)) % 3))
        yield encoded[-(-8 * before // 6) : 8 * (before + len(data)) // 6]


def files_below(root: Path, since: float = 0.0) -> Iterator[Path]:
    for directory, inner, names in os.walk(root):
        if directory == str(root):
            inner[:] = [name for name in inner if name not in NO_DISK]
        for name in names:
            with suppress(FileNotFoundError):
                path = Path(directory, name)
                told = path.lstat()
                if stat.S_ISREG(told.st_mode) and told.st_ctime >= since and told.st_blocks * 512 <= LARGEST:
                    yield path


def content(path: Path) -> bytes:
    """Without the holes of disks."""
    found = []
    with suppress(OSError), path.open("rb", buffering=0) as file:
        place = 0
        while (place := file.seek(place, os.SEEK_DATA)) >= 0:
            end = file.seek(place, os.SEEK_HOLE)
            file.seek(place)
            found.append(file.read(end - place))
            place = end
    return b"".join(found)


def unpacked(where: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """And what is packed in it, however deep."""
    yield where, data
    with suppress(OSError, EOFError, tarfile.TarError):
        if data.startswith(GZIP):
            yield from unpacked(where, gzip.decompress(data))
        elif data[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                for member in archive:
                    file = archive.extractfile(member)
                    yield from unpacked(f"{where}!{member.name}", file.read() if file else b"")


def _is_private(path: Path, root: Path) -> bool:
    """By its own mode, or that of a directory above it."""
    return any(not place.stat().st_mode & PRIVATE for place in (path, *path.parents) if place.is_relative_to(root))


class Witness:
    """Reads command line and environment of every process of this machine, lab hosts' included, again and again.

    The programs that are given a secret in their environment, and their children, may have it there.
    """

    def __init__(self, hunt: Hunt, trusted: str) -> None:
        self._hunt = hunt
        self._trusted = trusted.encode()
        self._known: dict[int, tuple[bytes, bytes]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.leaks: set[str] = set()
        self.seen_in_trusted: set[str] = set()
        self.looks = 0

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(PERIOD):
            self.looks += 1
            for pid in processes.all_pids():
                self._look_at(pid)

    def _look_at(self, pid: int) -> None:
        command = _told_of(pid, "cmdline")
        environment = _told_of(pid, "environ") if command else b""
        if self._known.get(pid) == (command, environment):
            return
        self._known[pid] = (command, environment)
        self.leaks.update(self._hunt.found_in(command, f"the command line of {command[:AROUND]!r}"))
        names = self._hunt.names_in(environment)
        if names and self._is_trusted(pid):
            self.seen_in_trusted.update(names)
        elif names and _told_of(pid, "cmdline") == command:  # it has not just become another program
            self.leaks.update(self._hunt.found_in(environment, f"the environment of {command[:AROUND]!r}"))

    def _is_trusted(self, pid: int) -> bool:
        own = (pid, *processes.ancestors(pid))
        return any(self._trusted in _told_of(each, "cmdline") for each in own)


def _told_of(pid: int, name: str) -> bytes:
    with suppress(OSError):
        descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
        try:
            return os.read(descriptor, LARGEST_OF_PROC)
        finally:
            os.close(descriptor)
    return b""
