# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts from files that go into install-config.yaml: certificates and public keys."""

from __future__ import annotations

import ssl

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

PRIVATE = "PRIVATE KEY-----"
KEY_TYPES = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")
NOT_FOR_FIPS = ("ssh-ed25519", "ssh-dss", "sk-ssh-ed25519")


def certificates(pem: str | None, what: str) -> str | None:
    if not pem or not pem.strip():
        return None
    advice = "give one or more CA certificates in PEM"
    if PRIVATE in pem:
        raise OperatorError(f"{what} contains a private key, which would be copied to every node: {advice}.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=pem.strip() + "\n")
    except (ssl.SSLError, ValueError):
        raise OperatorError(f"{what} cannot be read as certificates: {advice}.") from None
    return pem.strip() + "\n"


def public_keys(text: str | None, *, fips: bool) -> str | None:
    """One per line."""
    if not text or not text.strip():
        return None
    where, advice = "lab_spec.install.ssh_key_file", "give a public key, such as ~/.ssh/id_ed25519.pub"
    if PRIVATE in text:
        raise OperatorError(f"{where} names a file with a private key: {advice}.")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines or not all(line.startswith(KEY_TYPES) for line in lines):
        raise OperatorError(f"{where} must name a file with public keys only: {advice}.")
    if fips and any(line.startswith(NOT_FOR_FIPS) for line in lines):
        raise OperatorError(f"{where} names a key of a type that FIPS does not allow: use RSA or ECDSA.")
    return "\n".join(lines)
