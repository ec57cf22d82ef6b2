# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where an image comes from, as a client may say it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

from nometal_bmc.answers import Refused

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PORTS", "Source", "Trust", "origin", "place", "refuse", "source_from", "split"]

PORTS = {"http": 80, "https": 443}
MALFORMED = "ActionParameterValueFormatError"


@dataclass(frozen=True)
class Trust:
    """Whose certificates are good: anybody's, or those of the system's CAs and of one file more."""

    verify: bool
    ca_file: Path | None = None

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca_file:
            try:
                context.load_verify_locations(self.ca_file)
            except OSError as error:
                text = f"The CA file {self.ca_file} of the configuration cannot be used: {error}."
                raise Refused(500, "InternalError", text) from error
        return context


@dataclass(frozen=True)
class Source:
    """Where an image is, and what is needed to get it. Two requests for equal sources share one download."""

    url: str  # without a login
    trust: Trust
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """For logs and messages: without the query, which often carries a token."""
        return place(urlsplit(self.url))


def source_from(url: object, login: tuple[str, str] | None, trust: Trust) -> Source:
    """Judge the URL that a client gave. A login inside of it is taken out, so that it is never shown again."""
    parts = split(url)
    if parts.username is not None and login is None:
        login = unquote(parts.username), unquote(parts.password or "")
    without_login = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")
    return Source(without_login.geturl(), trust, login)


def refuse(why: str, message_id: str, status: int = 400) -> NoReturn:
    raise Refused(status, message_id, f"The image cannot be inserted: {why}.", prop="Image")


def split(url: object) -> SplitResult:
    if not isinstance(url, str) or not url:
        refuse("Image has to be the URL of an image", MALFORMED)
    if not url.isprintable() or " " in url:
        refuse("its URL has a blank or a control character in it; write it as %20 or the like", MALFORMED)
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        refuse("its URL is malformed", MALFORMED)
    if parts.scheme not in PORTS:
        refuse(f"only http and https URLs are fetched, not {parts.scheme or 'one without a scheme'}", MALFORMED)
    if not valid:
        refuse("its URL names no host, or an impossible port", MALFORMED)
    return parts


def origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]


def place(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
