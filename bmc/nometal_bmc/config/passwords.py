# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hashed passwords, as they stand in the configuration: scrypt:<n>:<r>:<p>:<salt, base64>:<hash, base64>."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, replace

__all__ = ["HashedPassword", "NotAHash", "encoded", "hashed", "parse"]

FORMAT = re.compile(r"scrypt:(\d{1,7}):(\d{1,3}):(\d{1,3}):([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
N, R, P = 2**12, 8, 1  # 4 MiB and about 12 ms
MOST_BYTES, PARALLEL = 64 * 1024 * 1024, range(1, 5)
SALT_BYTES, HASH_BYTES = 16, 32


class NotAHash(ValueError):  # noqa: N818 - reads as what it is where it is caught
    """A text in another format, or with figures that this service does not want to spend."""


@dataclass(frozen=True)
class HashedPassword:
    """What is left of a password."""

    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    def matches(self, password: str) -> bool:
        return hmac.compare_digest(self.digest, self.of(password).digest)

    def of(self, password: str) -> HashedPassword:
        """Another password, with this one's salt and at this one's cost."""
        figures = {"n": self.n, "r": self.r, "p": self.p, "dklen": len(self.digest), "maxmem": 2 * MOST_BYTES}
        return replace(self, digest=hashlib.scrypt(encoded(password), salt=self.salt, **figures))

    def unusable(self) -> HashedPassword:
        """The hash of no password, which costs as much to compare as this one."""
        return replace(self, digest=secrets.token_bytes(len(self.digest)))

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(part).decode() for part in (self.salt, self.digest))
        return f"scrypt:{self.n}:{self.r}:{self.p}:{salt}:{digest}"


def encoded(text: str) -> bytes:
    """Also of invalid text: JSON can hold halves of characters."""
    return text.encode(errors="surrogatepass")


def hashed(password: str) -> HashedPassword:
    return HashedPassword(N, R, P, secrets.token_bytes(SALT_BYTES), bytes(HASH_BYTES)).of(password)


def parse(text: str) -> HashedPassword:
    match = FORMAT.fullmatch(text)
    if not match:
        raise NotAHash("expected scrypt:<n>:<r>:<p>:<salt, base64>:<hash, base64>")
    n, r, p = (int(figure) for figure in match.group(1, 2, 3))
    if n <= 1 or n & (n - 1) or not r or p not in PARALLEL or 128 * n * r > MOST_BYTES:
        raise NotAHash(f"scrypt with n={n}, r={r}, p={p} does not exist or needs more than {MOST_BYTES} bytes")
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in match.group(4, 5))
    except binascii.Error as error:
        raise NotAHash("its salt or hash is not base64") from error
    if not SALT_BYTES <= len(digest) <= 2 * HASH_BYTES:
        raise NotAHash(f"its hash has {len(digest)} bytes, expected {SALT_BYTES} to {2 * HASH_BYTES}")
    return HashedPassword(n, r, p, salt, digest)
