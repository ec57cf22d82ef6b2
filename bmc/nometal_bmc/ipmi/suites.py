# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cipher suites that a session can have."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Callable

AES_CBC_128 = 1
RECORD = 0xC0  # of a standard suite; the numbers of its algorithms follow, marked with their kind
INTEGRITY, CONFIDENTIALITY = 0x40, 0x80
ALGORITHM_LENGTH = 8


@dataclass(frozen=True)
class Suite:
    """Algorithms by their numbers in IPMI 2.0, tables 13-17 to 13-19."""

    number: int
    authentication: int
    integrity: int
    hash: Callable[..., Any]
    code_length: int
    """Bytes of the hash that prove a packet."""
    confidentiality: int = AES_CBC_128

    @property
    def algorithms(self) -> tuple[int, int, int]:
        return (self.authentication, self.integrity, self.confidentiality)

    def record(self) -> bytes:
        """As it is listed to clients."""
        authentication, integrity, confidentiality = self.algorithms
        return bytes([RECORD, self.number, authentication, INTEGRITY | integrity, CONFIDENTIALITY | confidentiality])

    def payloads(self) -> bytes:
        """As an answer to a request for a session has it."""
        return b"".join(
            bytes([kind, 0, 0, ALGORITHM_LENGTH, algorithm, 0, 0, 0]) for kind, algorithm in enumerate(self.algorithms)
        )


SUITES = (
    Suite(3, authentication=1, integrity=1, hash=hashlib.sha1, code_length=12),
    Suite(17, authentication=3, integrity=4, hash=hashlib.sha256, code_length=16),
)


def chosen(proposed: bytes) -> Suite | None:
    """The best suite of those that a client proposes in three payloads; one of no length leaves the choice to us."""
    wishes = [proposed[at : at + ALGORITHM_LENGTH] for at in range(0, 3 * ALGORITHM_LENGTH, ALGORITHM_LENGTH)]
    for suite in reversed(SUITES):
        if all(wish[3] == 0 or wish[4] & 0x3F == number for wish, number in zip(wishes, suite.algorithms)):
            return suite
    return None
