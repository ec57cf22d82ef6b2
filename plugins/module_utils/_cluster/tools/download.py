# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files by HTTP, over connections that stall and drop: each attempt goes on where the last one ended."""

from __future__ import annotations

import re
import urllib.request
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import disk as tools_disk
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import download_errors as download_trouble
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.download_errors import (
    DroppedError,
    UnreachableError,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.client import HTTPResponse
    from pathlib import Path
    from typing import Callable, TypeVar

    Outcome = TypeVar("Outcome")
    Told = Callable[[int, "int | None"], None]
    """How many bytes are there, and of how many, if that is known."""

PATIENCE, PATIENCE_FOR_TEXT = 30.0, 10.0  # seconds without a byte
PAUSES = (1.0, 3.0, 9.0)  # between attempts that came no further
BLOCK = 256 * 1024
NO_MORE = 416  # that range is behind the end


class Web:
    def __init__(self, source: str) -> None:
        """A login in the address is for its server alone, and appears in no message."""
        parts = urlsplit(source)
        host = parts.netloc.rpartition("@")[2]
        self.address = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        logins = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        if parts.username:
            logins.add_password(None, self.address, unquote(parts.username), unquote(parts.password or ""))
        self._opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(logins))

    def text(self, url: str) -> str:
        def attempt() -> str:
            with self._answer(url, {}, PATIENCE_FOR_TEXT) as answer:
                return answer.read().decode("utf-8", "replace")

        return _persistently(attempt, lambda: 0, url)

    def file(self, url: str, part: Path, told: Told) -> None:
        """Completes what there is already of the file."""
        _persistently(lambda: self._go_on(url, part, told), lambda: _size(part), url)

    def _go_on(self, url: str, part: Path, told: Told) -> None:
        validator = part.with_suffix(".validator")
        there = _size(part)
        known = validator.read_text(encoding="utf-8") if validator.exists() else ""
        headers = {"Range": f"bytes={there}-", **({"If-Range": known} if known else {})}
        with self._answer(url, headers if there else {}, PATIENCE, fine=(NO_MORE,)) as answer:
            if answer.status == NO_MORE:
                self._settle(answer, part)
                return
            start = _start(answer) if there else 0
            if start not in (0, there):
                raise OperatorError(f"{url}: the server was asked for what follows byte {there} and sent byte {start}.")
            total = _total(answer, start)
            name = url.rpartition("/")[2]
            tools_disk.require_room(part.parent, (total or 0) - there, name)
            with tools_disk.writing(part, name):
                files.write_whole(validator, _validator(answer), 0o644)
                files.open_kept(part, 0o644).close()
            _receive(answer, part, start, total, told)

    def _settle(self, answer: HTTPResponse, part: Path) -> None:
        """There is no more of it; unless it is another file by now."""
        if answer.headers.get("Content-Range", "").rpartition("/")[2] != str(_size(part)):
            part.unlink()
            raise DroppedError("the file has become another one")

    @contextmanager
    def _answer(
        self, url: str, headers: dict[str, str], patience: float, fine: tuple[int, ...] = ()
    ) -> Iterator[HTTPResponse]:
        # Otherwise some servers unpack what they send, which then has another checksum.
        request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", **headers})  # noqa: S310 - http or https, by tools_source
        with download_trouble.told(url, fine) as forgiven:
            try:
                answer = self._opener.open(request, timeout=patience)
            except OSError as error:
                answer = forgiven(error)
            with answer:
                yield answer


def _persistently(attempt: Callable[[], Outcome], reached: Callable[[], int], url: str) -> Outcome:
    """For as long as each attempt comes further than all before it, and then a little more."""
    furthest, vain = reached(), 0
    while True:
        try:
            return attempt()
        except DroppedError as error:
            trouble = error
        vain = 0 if reached() > furthest else vain + 1
        furthest = max(furthest, reached())
        if vain > len(PAUSES):
            raise UnreachableError(f"{url} cannot be downloaded: {trouble}{download_trouble.way_to(url)}.") from trouble
        wait.CLOCK.sleep(PAUSES[max(vain - 1, 0)])


def _receive(answer: HTTPResponse, part: Path, start: int, total: int | None, told: Told) -> None:
    there = start
    with part.open("r+b") as file:
        file.truncate(start)
        file.seek(start)
        while total is None or there < total:
            block = answer.read1(BLOCK)  # not all of it, which may never come
            if not block:
                break
            with tools_disk.writing(part, part.name):
                file.write(block)
                file.flush()
            there += len(block)
            told(there, total)
    if total is not None and there < total:
        raise DroppedError(f"the connection ended after {there} of {total} bytes")


def _size(part: Path) -> int:
    with suppress(FileNotFoundError):
        return part.stat().st_size
    return 0


def _start(answer: HTTPResponse) -> int:
    """A server that knows no ranges, or has another file by now, sends it all."""
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", "")) if answer.status == 206 else None  # noqa: PLR2004
    return int(found[1]) if found else 0


def _total(answer: HTTPResponse, start: int) -> int | None:
    length = answer.headers.get("Content-Length")
    return start + int(length) if length and length.isdigit() else None


def _validator(answer: HTTPResponse) -> str:
    """What tells this file from the next one of its name. Weak tags do not do that for a part of it."""
    tag = answer.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")
