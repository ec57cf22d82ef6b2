# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab's own certificate authority, and the certificate that its BMC service shows."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    x509 = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY = datetime.timedelta(days=1)
SPAN = 3650 * DAY  # it may not be renewed for years
CA_SPAN = 3 * SPAN
RENEWAL = 365 * DAY  # as long before its end any run renews it
SKEW = DAY  # clients' clocks


@dataclass(frozen=True)
class Pair:
    """A key and its certificate, in PEM."""

    key: bytes
    certificate: bytes


@dataclass(frozen=True)
class Certificate:
    """What matters of the server's certificate. Good: the CA's, fits its key, and is not to be renewed yet."""

    names: tuple[str, ...]
    good: bool = True


def require_cryptography() -> None:
    if x509 is None:
        raise NotThereYetError("Python's cryptography is missing: role nometal.ipi.host_prep installs it.")


def is_good_ca(pair: Pair | None) -> bool:
    """One that also outlives a certificate made now."""
    return _parsed(pair, at_least=SPAN) is not None


def read(pair: Pair | None, ca_key: bytes) -> Certificate | None:
    found = _parsed(pair, at_least=RENEWAL)
    return Certificate(_names_of(found), good=_is_signed_with(ca_key, found)) if found else None


def _names_of(certificate: Any) -> tuple[str, ...]:
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:  # another was put there
        return ()
    return tuple(str(name.value) for name in alternatives)


def make_ca(lab: str, former_key: bytes = b"") -> Pair:
    """With the key of before, who trusts the certificate of before trusts all that this one signs."""
    key = _key(former_key) or ec.generate_private_key(ec.SECP256R1())
    name = _name(f"nometal.ipi lab {lab} BMC CA")
    usage = {name: name in ("key_cert_sign", "crl_sign") for name in USAGES}
    builder = _builder(name, key, CA_SPAN).issuer_name(name)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(x509.KeyUsage(**usage), critical=True)
    return _pair(key, builder.sign(key, hashes.SHA256()))


def make_server(lab: str, names: Sequence[str], ca: Pair) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    authority = x509.load_pem_x509_certificate(ca.certificate)
    authority_key: Any = serialization.load_pem_private_key(ca.key, None)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    usage = {name: name == "digital_signature" for name in USAGES}
    builder = _builder(_name(f"BMCs of lab {lab}"), key, SPAN).issuer_name(authority.subject)
    builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.KeyUsage(**usage), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(issuer, critical=False)
    return _pair(key, builder.sign(authority_key, hashes.SHA256()))


USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _name(text: str) -> Any:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: Any, key: Any, span: datetime.timedelta) -> Any:
    now = _now()
    builder = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    builder = (
        builder.serial_number(x509.random_serial_number()).not_valid_before(now - SKEW).not_valid_after(now + span)
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return builder.add_extension(identifier, critical=False)


def _alternative(name: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pair(key: Any, certificate: Any) -> Pair:
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(key=private, certificate=certificate.public_bytes(encoding))


def _parsed(pair: Pair | None, at_least: datetime.timedelta) -> Any:
    """The certificate, if the key is its own and it is valid for so long."""
    if pair is None:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
    except ValueError:
        return None
    key = _key(pair.key)
    fits = key and _public_bytes(key.public_key()) == _public_bytes(certificate.public_key())
    return certificate if fits and _now() + at_least < _end_of(certificate) else None


def _key(text: bytes) -> Any:
    """None where it is none, or not of the kind that is made here."""
    try:
        key = serialization.load_pem_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it is encrypted
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _is_signed_with(ca_key: bytes, certificate: Any) -> bool:
    key, signed = _key(ca_key), certificate.tbs_certificate_bytes
    if key is None or certificate.signature_hash_algorithm is None:
        return False
    try:
        key.public_key().verify(certificate.signature, signed, ec.ECDSA(certificate.signature_hash_algorithm))
    except InvalidSignature:
        return False
    return True


def _public_bytes(key: Any) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def _end_of(certificate: Any) -> datetime.datetime:
    """Releases before 42 know only the first of the two, which has no time zone; it is to go."""
    if hasattr(certificate, "not_valid_after_utc"):
        return certificate.not_valid_after_utc
    return certificate.not_valid_after.replace(tzinfo=datetime.timezone.utc)
