# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster's API answers when it does not do what it is asked for."""

from __future__ import annotations

import re
from typing import Literal

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.log import masked
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

Reason = Literal["unreachable", "not found", "conflict", "forbidden", "unauthorized", "invalid", "other"]
UNREACHABLE = "|".join(
    (
        "Unable to connect|was refused|no route to host|network is unreachable|no such host|connection reset|EOF$",
        r"i/o timeout|TLS handshake|deadline exceeded|Client\.Timeout|currently unable to handle|etcdserver",
        r"\((ServiceUnavailable|Timeout|ServerTimeout|InternalError|TooManyRequests)\)",
    )
)
REASONS: tuple[tuple[str, Reason], ...] = (
    (r"\(Unauthorized\)|must be logged in|certificate has expired", "unauthorized"),
    (r"admission webhook|\(Invalid\)|\(BadRequest\)|^The .* is invalid:|strict decoding|unknown field", "invalid"),
    (r"\(Forbidden\)", "forbidden"),
    (r"\(NotFound\)|doesn't have a resource type|no matches for kind|no objects passed to", "not found"),
    (r"\(Conflict\)|\(AlreadyExists\)|Apply failed with \d+ conflict", "conflict"),
    (UNREACHABLE, "unreachable"),
)
"""What clients of all releases say. The first that fits."""
OF_THE_CLIENTS_LOG = re.compile(r"^[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+\] |^Warning: ")
LONGEST = 400


class ApiError(OperatorError):
    def __init__(self, reason: Reason, said: str) -> None:
        super().__init__(said)
        self.reason = reason


def error_of(said: str) -> ApiError:
    """Of what the client has written to its standard error."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    line = next((line for line in lines if not OF_THE_CLIENTS_LOG.match(line)), lines[0] if lines else "")
    reason: Reason = next((reason for pattern, reason in REASONS if re.search(pattern, line)), "other")
    return ApiError(reason, f"The cluster's API: {shown(line) or 'no reason was given'}")


def shown(text: str) -> str:
    """In one line, which is not long and without what may be a secret."""
    line = " ".join(masked(text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
