"""Certificates of kubelets: how they are asked for, what is read of a request, and how one is signed."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.stand_in import pki
from support.stand_in.controllers.objects import Object

CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
BOOTSTRAPPERS = (
    *("system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"),
    "system:authenticated",
)
ORGANIZATION, PREFIX = "system:nodes", "system:node:"
KUBELETS = (ORGANIZATION, "system:authenticated")
CLIENT_USAGES, SERVING_USAGES = ("digital signature", "client auth"), ("digital signature", "server auth")
HOUR, DAY = 3600, 86400


@dataclass(frozen=True)
class Asked:
    """What is in a request."""

    common_name: str
    organizations: tuple[str, ...]
    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def request(node: str, names: Sequence[str] = ()) -> str:
    """In PEM, by a key that nobody needs afterwards."""
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
        x509.NameAttribute(NameOID.COMMON_NAME, f"{PREFIX}{node}"),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(one) for one in names]), critical=False)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


def object_of(pem: str, signer: str, user: str, groups: Sequence[str]) -> Object:
    """The CertificateSigningRequest."""
    usages = CLIENT_USAGES if signer == CLIENT else SERVING_USAGES
    spec = {"request": base64.b64encode(pem.encode()).decode(), "signerName": signer, "usages": list(usages)}
    spec |= {"username": user, "groups": list(groups)}
    return {"metadata": {"generateName": "csr-"}, "spec": spec, "status": {}}


def asked(item: Object) -> Asked | None:
    """None for what is no request."""
    try:
        read = x509.load_pem_x509_csr(base64.b64decode(item["spec"]["request"]))
    except (ValueError, KeyError):
        return None
    names = read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    organizations = tuple(str(one.value) for one in read.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    return Asked(str(names[0].value) if names else "", organizations, *_alternatives(read))


def sign(ca: pki.Pair, item: Object, now: float, seconds: float) -> str:
    """In PEM."""
    read = x509.load_pem_x509_csr(base64.b64decode(item["spec"]["request"]))
    builder = (
        x509.CertificateBuilder()
        .subject_name(read.subject)
        .issuer_name(x509.load_pem_x509_certificate(ca.certificate.encode()).subject)
        .public_key(read.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_time(now - HOUR))
        .not_valid_after(_time(now + seconds))
    )
    for extension in read.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    key = serialization.load_pem_private_key(ca.key.encode(), None)
    made = builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]  # ours are of the right kind
    return made.public_bytes(serialization.Encoding.PEM).decode()


def expiry(certificate: str) -> float:
    read = x509.load_pem_x509_certificate(certificate.encode())
    if hasattr(read, "not_valid_after_utc"):
        return read.not_valid_after_utc.timestamp()
    return read.not_valid_after.replace(tzinfo=datetime.timezone.utc).timestamp()  # up to Debian 12's


def _alternatives(read: x509.CertificateSigningRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return (), ()
    addresses = tuple(str(one) for one in found.get_values_for_type(x509.IPAddress))
    return tuple(found.get_values_for_type(x509.DNSName)), addresses


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
