# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether registries accept the logins of a pull secret, as a client asks before it pulls anything."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.opener import opener_for, reason_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_SECONDS = 20
AT_ONCE = 8
UNAUTHORIZED, FORBIDDEN = 401, 403
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class Answer(Enum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Login:
    """What one registry makes of its login."""

    registry: str
    answer: Answer
    why: str = ""


class _RefusedError(Exception):
    """The registry, or who gives tokens for it, does not take the login."""


def logins_of(pull_secret: Any) -> dict[str, str]:
    """By registry, the login as HTTP's Basic has it. Entries for a part of a registry count for the whole."""
    try:
        read = json.loads(pull_secret) if isinstance(pull_secret, str) else pull_secret
        return {name: str(entry["auth"]) for name, entry in read["auths"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not the error itself, which quotes the text.
        raise OperatorError(
            "pull_secret: must be JSON with auths, each with auth, as of a container registry."
        ) from None


def check(pull_secret: Any, environment: Mapping[str, str]) -> list[Login]:
    known = logins_of(pull_secret)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda entry: _checked(entry[0], entry[1], environment), known.items()))


def _checked(name: str, auth: str, environment: Mapping[str, str]) -> Login:
    registry = name.partition("://")[2] or name
    try:
        _log_in(f"https://{registry.partition('/')[0]}/v2/", auth, environment)
    except _RefusedError as error:
        return Login(name, Answer.REFUSED, str(error))
    except (OSError, HTTPException, ValueError) as error:
        return Login(name, Answer.UNREACHABLE, reason_of(error))
    return Login(name, Answer.ACCEPTED)


def _log_in(url: str, auth: str, environment: Mapping[str, str]) -> None:
    """The registry itself takes the login, or says who gives a token for it."""
    basic = {"Authorization": f"Basic {auth}"}
    status, challenge = _asked(url, basic, environment)
    if status not in (UNAUTHORIZED, FORBIDDEN):
        return
    told = dict(CHALLENGE.findall(challenge))
    if not challenge.lower().startswith("bearer") or "realm" not in told:
        raise _RefusedError(f"the registry answered {status}")
    query = urlencode({"service": told["service"]} if "service" in told else {})
    if urlsplit(told["realm"]).scheme != "https":
        raise _RefusedError("its token server is not asked by https")
    status, _challenge = _asked(f"{told['realm']}?{query}", basic, environment)
    if status in (UNAUTHORIZED, FORBIDDEN):
        raise _RefusedError(f"its token server answered {status}")


def _asked(url: str, headers: dict[str, str], environment: Mapping[str, str]) -> tuple[int, str]:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - https alone
    try:
        with opener_for(url, environment).open(request, timeout=TIMEOUT_SECONDS) as answer:
            return int(answer.status), ""
    except urllib.error.HTTPError as error:
        if error.code not in (UNAUTHORIZED, FORBIDDEN):
            raise
        return error.code, error.headers.get("WWW-Authenticate", "")
