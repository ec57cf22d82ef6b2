# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One download over http or https that cannot last for ever, wander off or read this host's own files.

It is written on http.client because that leaves every bound to us: neither proxies, .netrc nor CA variables of the
environment count, a login never follows a redirect to another server, and each read returns with what is there.
"""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
import string
from base64 import b64encode
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from nometal_bmc.media.reach import Forbidden, connected, places_of
from nometal_bmc.media.source import PORTS, Source, Trust, origin, place, refuse, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nometal_bmc.config.settings import Network
    from nometal_bmc.media.deadline import Deadline

__all__ = ["UNFIT", "Reply", "Validators", "opened"]

LOG = logging.getLogger(__name__)

CONNECT_SECONDS = 10
STALL_SECONDS = 30
REDIRECTS = 5
CHUNK = 1 << 20
SETTLED_SECONDS = 2
LENGTH_DIGITS = 18
OK = 200
LOGIN_WANTED = (401, 403)
REDIRECTING = (301, 302, 303, 307, 308)

INACCESSIBLE = "CouldNotEstablishConnection"
NO_ACCESS = "ResourceAtUriUnauthorized"
UNFIT = "ResourceAtUriInUnknownFormat"


@dataclass(frozen=True)
class Validators:
    """By what a server shows that its file is still the same."""

    etag: str | None
    last_modified: str | None
    length: int | None
    settled: bool = field(compare=False)
    """Whether a later change would show: a file may change twice in the one second that a time stamp can tell."""


class Reply:
    """What a server answered with status 200."""

    def __init__(self, response: http.client.HTTPResponse, where: str, deadline: Deadline) -> None:
        self._response = response
        self._deadline = deadline
        self.place = where
        self.validators = _validators(response)

    @property
    def length(self) -> int | None:
        return self.validators.length

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes; refused unless all of it came."""
        received = 0
        while chunk := self._read(received):
            received += len(chunk)
            yield chunk
        if self.length is not None and received != self.length:
            refuse(f"{self.place} announced {self.length} bytes and sent {received}", INACCESSIBLE)

    def _read(self, received: int) -> bytes:
        if received == self.length:
            return b""
        with _refusing(self.place, self._deadline):
            chunk = self._response.read1(CHUNK)
        _check(self._deadline, self.place)
        return chunk


@contextmanager
def opened(source: Source, method: str, deadline: Deadline, networks: tuple[Network, ...]) -> Iterator[Reply]:
    """Ask for the source, wherever it redirects to, and refuse every answer but 200; networks: see `reach`."""
    url, login = source.url, source.login
    for _hop in range(REDIRECTS + 1):
        with _exchange(_Asked(url, login, source.trust, networks), method, deadline) as response:
            target = response.getheader("Location") if response.status in REDIRECTING else None
            if target is None:
                yield _judged(response, place(urlsplit(url)), deadline)
                return
        next_url = _redirected(url, target, source.trust)
        login = login if origin(next_url) == origin(url) else None
        url = next_url
    refuse(f"{source.place} redirects more than {REDIRECTS} times", INACCESSIBLE)


def _redirected(url: str, target: str, trust: Trust) -> str:
    parts = split(urljoin(url, quote(target, safe=string.punctuation)))
    if trust.verify and url.startswith("https:") and parts.scheme != "https":
        refuse(f"{place(urlsplit(url))} redirects to http, where VerifyCertificate is in vain", INACCESSIBLE)
    return parts.geturl()


@dataclass(frozen=True)
class _Asked:
    """Of one server."""

    url: str
    login: tuple[str, str] | None
    trust: Trust
    networks: tuple[Network, ...]


@contextmanager
def _exchange(asked: _Asked, method: str, deadline: Deadline) -> Iterator[http.client.HTTPResponse]:
    parts = urlsplit(asked.url)
    where = place(parts)
    _check(deadline, where)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    with _refusing(where, deadline):
        places = places_of(host, port, asked.networks)
        _check(deadline, where)
    terse = any(known.is_own for known in places)
    context = asked.trust.context() if parts.scheme == "https" else None
    with closing(_connection(host, port, context)) as connection:
        with _refusing(where, deadline, terse=terse):
            connection.sock = connected(places, CONNECT_SECONDS, deadline)
            if context:
                connection.sock = context.wrap_socket(
                    connection.sock, server_hostname=host, do_handshake_on_connect=False
                )
        with deadline.over(connection.sock):
            with _refusing(where, deadline, terse=terse):
                if isinstance(connection.sock, ssl.SSLSocket):
                    connection.sock.do_handshake()
                connection.sock.settimeout(STALL_SECONDS)
                connection.request(method, _target(parts), headers=_headers(asked.login))
                response = connection.getresponse()
            with response:
                yield response


def _connection(host: str, port: int, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
    if context is None:
        return http.client.HTTPConnection(host, port)
    return http.client.HTTPSConnection(host, port, context=context)


def _target(parts: SplitResult) -> str:
    return quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=string.punctuation)


def _headers(login: tuple[str, str] | None) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "nometal-bmc"}
    if login is not None:
        headers["Authorization"] = "Basic " + b64encode(":".join(login).encode()).decode()
    return headers


def _judged(response: http.client.HTTPResponse, where: str, deadline: Deadline) -> Reply:
    if response.status in LOGIN_WANTED:
        refuse(f"{where} answered {response.status}: it wants another login", NO_ACCESS)
    if response.status != OK:
        refuse(f"{where} answered {response.status}", INACCESSIBLE)
    return Reply(response, where, deadline)


def _validators(response: http.client.HTTPResponse) -> Validators:
    etag, last_modified = response.getheader("ETag"), response.getheader("Last-Modified")
    length = response.getheader("Content-Length")
    believable = length is not None and length.isdecimal() and len(length) <= LENGTH_DIGITS and not response.chunked
    known_length = int(length or 0) if believable else None
    if last_modified:
        settled = _seconds_between(last_modified, response.getheader("Date")) >= SETTLED_SECONDS
    else:
        settled = bool(etag) and not str(etag).startswith("W/")
    return Validators(etag, last_modified, known_length, settled=settled and known_length is not None)


def _seconds_between(earlier: str, later: str | None) -> float:
    try:
        return (parsedate_to_datetime(later or "") - parsedate_to_datetime(earlier)).total_seconds()
    except (TypeError, ValueError, IndexError):  # which one depends on the Python and on what is wrong
        return 0


def _check(deadline: Deadline, where: str) -> None:
    if deadline.is_past:
        refuse(f"{where} did not send the image within {deadline.seconds:.0f} seconds", INACCESSIBLE)


@contextmanager
def _refusing(where: str, deadline: Deadline, *, terse: bool = False) -> Iterator[None]:
    """Say what is wrong with the other server, which asking us again would not fix.

    terse: say it in the log only. Else images were a way to find out what listens on this host.
    """
    try:
        yield
    except Forbidden:
        text = "no image is fetched from this host itself, or from its links, unless media.networks allows the address"
        refuse(f"{where}: {text}", INACCESSIBLE)
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        _check(deadline, where)
        reason = _reason(error)
        if terse and not isinstance(error, (ssl.SSLCertVerificationError, http.client.IncompleteRead)):
            LOG.warning("%s: %s", where, reason)
            reason = "no server of images answers there; the service's log says more"
        refuse(f"{where}: {reason}", INACCESSIBLE)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}), and VerifyCertificate is true"
    if isinstance(error, socket.timeout):
        return "the server does not answer"
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, http.client.IncompleteRead):
        return "the server closed the connection in the middle of the image"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"the server does not speak HTTP properly ({type(error).__name__})"
