"""The cluster's certificates: one authority, the API server's certificate, and the administrator's."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.stand_in import documents

DAYS = 3650


@dataclass(frozen=True)
class Pair:
    """In PEM."""

    certificate: str
    key: str


def authority(name: str) -> Pair:
    key = _key()
    return _pair(key, _certificate(name, key.public_key(), key, name, (), authority=True))


def issue(ca: Pair, name: str, names: Sequence[str] = (), groups: Sequence[str] = ()) -> Pair:
    """`groups`: what a client belongs to, which the API server takes from its certificate."""
    key, signer = _key(), serialization.load_pem_private_key(ca.key.encode(), None)
    issuer = x509.load_pem_x509_certificate(ca.certificate.encode()).subject
    common = issuer.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    return _pair(key, _certificate(name, key.public_key(), signer, str(common), names, groups=groups))


def kubeconfig(ca: Pair, admin: Pair, host: str, address: str, port: int = 6443) -> str:
    """The address is for where no name server knows the name."""
    cluster = {
        "certificate-authority-data": _base64(ca.certificate),
        "server": f"https://{host}:{port}",
        "extensions": [{"name": "stand-in", "extension": {"address": address}}],
    }
    user = {"client-certificate-data": _base64(admin.certificate), "client-key-data": _base64(admin.key)}
    name = host.split(".")[1]
    return documents.dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "admin", "context": {"cluster": name, "user": "admin"}}],
            "current-context": "admin",
        }
    )


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _certificate(  # noqa: PLR0913 - what is in a certificate
    name: str,
    public: Any,
    signer: Any,
    issuer: str,
    names: Sequence[str],
    *,
    authority: bool = False,
    groups: Sequence[str] = (),
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name, groups))
        .issuer_name(_name(issuer))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(item) for item in names]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _name(common: str, groups: Sequence[str] = ()) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pair(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Pair:
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return Pair(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
