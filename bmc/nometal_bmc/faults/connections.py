# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections that meet faults before anything is asked by them."""

from __future__ import annotations

import logging
import socket
import ssl
import struct
import tempfile
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING

from nometal_bmc.faults.rules import Fault

if TYPE_CHECKING:
    from nometal_bmc.faults.decisions import CurrentFaults

__all__ = ["FaultyConnections", "reset_when_closed"]

LOG = logging.getLogger(__name__)
AT_ONCE = struct.pack("ii", 1, 0)
VALID = timedelta(days=365)


def reset_when_closed(connection: socket.socket) -> None:
    """Have the other side see a reset, and not an end in good order."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)


class FaultyConnections:
    """Decides about each new connection, in the order in which they come, whoever it is."""

    def __init__(self, faults: CurrentFaults) -> None:
        self._faults = faults

    def refuse(self, accepted: socket.socket) -> bool:
        """Whether it has been reset before it could say anything."""
        if not self._faults.decisions.of_connection(Fault.CONNECTION_REFUSED):
            return False
        LOG.info("Fault on purpose: %s", Fault.CONNECTION_REFUSED)
        reset_when_closed(accepted)
        accepted.close()
        return True

    def context(self, own: ssl.SSLContext | None) -> ssl.SSLContext | None:
        """What shows the certificate, the lab's own or another one."""
        if own is None or not self._faults.decisions.of_connection(Fault.CERTIFICATE_CHANGED):
            return own
        LOG.info("Fault on purpose: %s", Fault.CERTIFICATE_CHANGED)
        return self._other

    @cached_property
    def _other(self) -> ssl.SSLContext:
        """With a certificate that is signed by its own key."""
        # Ten megabytes that hardly a service ever needs.
        from cryptography import x509  # noqa: PLC0415
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "BMC")])
        builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        certificate = builder.not_valid_before(now - VALID).not_valid_after(now + VALID).sign(key, hashes.SHA256())
        encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        with tempfile.NamedTemporaryFile() as file:
            file.write(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
            file.write(certificate.public_bytes(encoding))
            file.flush()
            context.load_cert_chain(file.name)
        return context
