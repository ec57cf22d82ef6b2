# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed download means: whether it is worth another attempt, and what the operator can do."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Callable

NOT_THERE = (403, 404, 410)  # 403: so do some stores of objects answer
PASSING = (408, 425, 429, 500, 502, 503, 504)
LOGIN = (401, 407)


class DroppedError(Exception):
    """Another attempt may go well."""


class UnreachableError(OperatorError):
    """There is no answer from there."""


class NotThereError(OperatorError):
    """There is an answer: no such file."""


@contextmanager
def told(url: str, fine: tuple[int, ...]) -> Iterator[Callable[[OSError], Any]]:
    """What goes wrong inside, in words. Yields what turns an answer that is fine, though an error, into an answer."""

    def forgiven(error: OSError) -> Any:
        if isinstance(error, urllib.error.HTTPError) and error.code in fine:
            return error
        raise error

    try:
        yield forgiven
    except urllib.error.HTTPError as error:
        raise _refusal(url, error) from error
    except urllib.error.URLError as error:
        raise _trouble(url, error.reason) from error
    except (OSError, http.client.HTTPException) as error:
        raise _trouble(url, error) from error


def way_to(url: str) -> str:
    """The proxy, if there is one between."""
    parts = urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return ""
    return f" (by the proxy {proxy.rpartition('@')[2].rpartition('//')[2]})"


def _refusal(url: str, error: urllib.error.HTTPError) -> Exception:
    answer = f"{error.code} {error.reason}"
    if error.code in PASSING:
        return DroppedError(f"the server answers {answer}")
    if error.code in NOT_THERE:
        return NotThereError(f"{url}: the server answers {answer}.")
    if error.code in LOGIN:
        asks = "the proxy" if error.code == LOGIN[1] else "the server"
        return OperatorError(
            f"{url}: {asks} asks for a login ({answer}){way_to(url)}; it is given as https://user:password@host/."
        )
    return OperatorError(f"{url}: the server answers {answer}{way_to(url)}.")


def _trouble(url: str, reason: Any) -> Exception:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return OperatorError(
            f"{url}: the server's certificate is not trusted: {reason.verify_message}{way_to(url)}. If it is of a "
            "CA of your own, make this host trust that CA; if it has expired or the host's time is wrong, fix that."
        )
    if isinstance(reason, ssl.SSLError) and not isinstance(reason, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return OperatorError(f"{url}: TLS fails: {getattr(reason, 'reason', None) or reason}{way_to(url)}.")
    if isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME:
        return UnreachableError(f"{url}: this host cannot find the address of {urlsplit(url).hostname}{way_to(url)}.")
    if isinstance(reason, (socket.timeout, TimeoutError)):
        return DroppedError("nothing came for too long")
    if "Tunnel connection failed" in str(reason):
        return OperatorError(f"{url}: the proxy refuses{way_to(url)}: {reason}.")
    return DroppedError(f"the connection failed: {_words(reason)}")


def _words(reason: Any) -> str:
    return str(getattr(reason, "strerror", None) or reason or type(reason).__name__)
