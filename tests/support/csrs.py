"""Certificate requests as kubelets make them, and forged ones."""

from __future__ import annotations

import base64
import ipaddress
from functools import cache
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import CertificateRequest
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power import requests

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENT_USAGES = ("digital signature", "client auth")
SERVER_USAGES = ("digital signature", "server auth")
NODE_GROUPS = (requests.GROUP_OF_NODES, requests.AUTHENTICATED)


@cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def pem(  # noqa: PLR0913 - by keyword, and mostly left out
    node: str,
    *,
    dns: Sequence[str] = (),
    ips: Sequence[str] = (),
    organizations: Sequence[str] = (requests.GROUP_OF_NODES,),
    prefix: str = requests.USER_OF_NODE,
    unit: str = "",
    more: Sequence[x509.GeneralName] = (),
    authority: bool = False,
) -> str:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    parts.append(x509.NameAttribute(NameOID.COMMON_NAME, f"{prefix}{node}"))
    parts += [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit)] if unit else []
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    names = [*map(x509.DNSName, dns), *(x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips), *more]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key(), hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def client(name: str, node: str, **changes: Any) -> CertificateRequest:
    of_request: dict[str, Any] = {
        key: changes.pop(key) for key in ("signer", "username", "groups", "usages") if key in changes
    }
    usual: dict[str, Any] = {
        "signer": requests.CLIENT,
        "username": requests.BOOTSTRAPPER,
        "groups": sorted(requests.GROUPS_OF_BOOTSTRAPPER),
        "usages": CLIENT_USAGES,
    }
    usual.update(of_request)
    return CertificateRequest(name, request=pem(node, **changes), pending=True, **usual)


def serving(name: str, node: str, **changes: Any) -> CertificateRequest:
    usual: dict[str, Any] = {
        "signer": requests.SERVING,
        "username": f"{requests.USER_OF_NODE}{node}",
        "groups": NODE_GROUPS,
        "usages": SERVER_USAGES,
    }
    usual.update(changes)
    return client(name, node, **usual)


def object_of(request: CertificateRequest) -> dict[str, Any]:
    """As the API has it."""
    spec = {
        "signerName": request.signer,
        "username": request.username,
        "groups": [*request.groups],
        "usages": [*request.usages],
        "request": base64.b64encode(request.request.encode()).decode(),
    }
    return {"metadata": {"name": request.name}, "spec": spec}
