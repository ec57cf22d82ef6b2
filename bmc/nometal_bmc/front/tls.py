# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificate that clients see: the files' content of now, without a restart."""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nometal_bmc.config.settings import Tls

__all__ = ["Certificate"]

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2: neither CBC nor keys that decrypt what was recorded
LOG = logging.getLogger(__name__)


class Certificate:
    """Its `context` serves all connections; those that are there keep what they have been shown."""

    def __init__(self, tls: Tls) -> None:
        """Raise OSError, of which ssl.SSLError is one, when certificate and key cannot be used."""
        self.context = _context()
        self._tls = tls
        self._seen = self._signature()
        self.context.load_cert_chain(tls.certificate, tls.key)

    def refresh(self) -> None:
        """Take the files again if they have changed. While they do not fit together, what was there stays."""
        signature = self._signature()
        if signature == self._seen:
            return
        self._seen = signature
        try:
            _context().load_cert_chain(self._tls.certificate, self._tls.key)  # a misfit would spoil the living one
            self.context.load_cert_chain(self._tls.certificate, self._tls.key)
        except OSError as error:
            LOG.warning("Keeping the certificate of before: %s: %s", self._tls.certificate, error)
        else:
            LOG.info("The certificate has been read again")

    def _signature(self) -> list[tuple[int, ...]]:
        try:
            both = [path.stat() for path in (self._tls.certificate, self._tls.key)]
        except OSError:
            return []
        return [(status.st_ino, status.st_mtime_ns, status.st_size) for status in both]


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION  # costs the server more than the client
    context.set_alpn_protocols(["http/1.1"])
    return context
