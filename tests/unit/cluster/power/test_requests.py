"""Which certificate requests are approved: those that kubelets of the lab's nodes make, and no forged one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography import x509
from support.csrs import CLIENT_USAGES, NODE_GROUPS, SERVER_USAGES, client, serving

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import CertificateRequest
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power import requests
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

DOMAIN = "demo.lab.example.test"
MASTER, WORKER, SPARE = (
    Node(name, f"demo-{name}", role, f"{name}.{DOMAIN}", (f"192.168.126.{number}", f"fd2e::{number}"))
    for number, (name, role) in enumerate(
        [("control-plane-0", Role.CONTROL_PLANE), ("worker-0", Role.WORKER), ("spare-0", Role.SPARE)], 20
    )
)
NODES = [MASTER, WORKER, SPARE]
NAME, SHORT = WORKER.fqdn, WORKER.name
OWN = {"dns": [NAME], "ips": ["192.168.126.21"]}


def reason(request: CertificateRequest) -> str:
    [judgement] = requests.judged([request], NODES).judgements
    return judgement.reason


@pytest.mark.parametrize(
    "request_",
    [
        client("csr-1", NAME),
        client("csr-1", SHORT),
        client("csr-1", MASTER.fqdn),
        client("csr-1", NAME, usages=(*CLIENT_USAGES, "key encipherment")),
        serving("csr-1", NAME, **OWN),
        serving("csr-1", NAME, dns=[NAME, SHORT], ips=["192.168.126.21", "fd2e:0:0::21"]),
        serving("csr-1", SHORT, dns=[SHORT]),
        serving("csr-1", NAME, **OWN, usages=("key encipherment", *SERVER_USAGES)),
        serving("csr-1", NAME, **OWN, groups=(*NODE_GROUPS, "others")),
    ],
)
def test_what_kubelets_of_the_lab_make_is_approved(request_: CertificateRequest) -> None:
    assert [each.request for each in requests.judged([request_], NODES).approved] == ["csr-1"]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (client("c", NAME, signer=requests.SERVING), "it was not made by the node itself"),
        (client("c", "worker-9"), "it is not for a node of the lab"),
        (client("c", f"worker-0.other.{DOMAIN}"), "it is not for a node of the lab"),
        (client("c", SPARE.fqdn), "it is not for a node of the lab"),
        (client("c", NAME, prefix=""), "it is not for a node of the lab"),
        (client("c", NAME, prefix="system:admin:"), "it is not for a node of the lab"),
        (client("c", NAME, organizations=["system:masters"]), "its organization is not system:nodes"),
        (client("c", NAME, organizations=["system:nodes", "system:masters"]), "its organization is not system:nodes"),
        (client("c", NAME, organizations=[]), "its organization is not system:nodes"),
        (client("c", NAME, unit="system:masters"), "it asks for more than the certificate of a kubelet"),
        (client("c", NAME, authority=True), "it asks for more than the certificate of a kubelet"),
        (client("c", NAME, username="system:admin"), "it was not made by the node bootstrapper"),
        (
            client("c", NAME, groups=("system:masters", *requests.GROUPS_OF_BOOTSTRAPPER)),
            "it was made by one of other groups",
        ),
        (client("c", NAME, groups=("system:authenticated",)), "it was made by one of other groups"),
        (client("c", NAME, usages=SERVER_USAGES), "it is for other usages than those of a client"),
        (client("c", NAME, usages=(*CLIENT_USAGES, "cert sign")), "it is for other usages than those of a client"),
        (client("c", NAME, usages=("client auth",)), "it is for other usages than those of a client"),
        (client("c", NAME, **OWN), "a client's has no names or addresses"),
        (serving("c", NAME, **OWN, username=requests.BOOTSTRAPPER), "it was not made by the node itself"),
        (serving("c", NAME, **OWN, username=f"system:node:{MASTER.fqdn}"), "it was not made by the node itself"),
        (serving("c", NAME, **OWN, groups=("system:authenticated",)), "it was made by one of other groups"),
        (serving("c", NAME, **OWN, usages=CLIENT_USAGES), "it is for other usages than those of a server"),
        (
            serving("c", NAME, **OWN, usages=(*SERVER_USAGES, "client auth")),
            "it is for other usages than those of a server",
        ),
        (serving("c", NAME), "it has no name and no address"),
        (serving("c", NAME, dns=[NAME, f"api.{DOMAIN}"]), "it has a name that is not the node's"),
        (serving("c", NAME, dns=[f"*.{DOMAIN}"]), "it has a name that is not the node's"),
        (serving("c", NAME, dns=[MASTER.fqdn]), "it has a name that is not the node's"),
        (serving("c", NAME, dns=[NAME], ips=["192.168.126.5"]), "it has an address that is not the node's"),
        (
            serving("c", NAME, **OWN, more=[x509.UniformResourceIdentifier("https://example.test")]),
            "it asks for more than the certificate of a kubelet",
        ),
    ],
)
def test_what_is_forged_or_foreign_is_left(request_: CertificateRequest, why: str) -> None:
    assert reason(request_) == why


def test_what_cannot_be_read_is_left() -> None:
    good = client("c", NAME)
    lines = good.request.splitlines()
    damaged = "\n".join([*lines[:2], lines[2][::-1], *lines[3:]])
    for text in ("", "no PEM", good.request * 2, damaged, good.request.replace(" REQUEST", "")):
        assert reason(replace(good, request=text)) == "it is damaged"


@pytest.mark.parametrize(
    "request_",
    [
        replace(client("c", NAME), pending=False),
        client("c", NAME, signer="kubernetes.io/kube-apiserver-client"),
        client("c", NAME, signer="kubernetes.io/legacy-unknown"),
        client(
            "c", NAME, username=f"system:node:{NAME}", groups=NODE_GROUPS
        ),  # its renewal, which the cluster approves
    ],
)
def test_only_what_kubelets_wait_for_is_judged(request_: CertificateRequest) -> None:
    assert requests.judged([request_], NODES).judgements == []
    assert requests.judge(request_, {NAME: WORKER}).reason or not request_.pending


def test_of_forty_that_wait_three_are_not_the_labs() -> None:
    """After four days: each kubelet has asked again and again."""
    waiting = [client(f"client-{n}", (MASTER, WORKER)[n % 2].fqdn) for n in range(30)]
    waiting += [serving(f"serving-{n}", NAME, **OWN) for n in range(7)]
    foreign = [
        client("foreign-1", "worker-9"),
        serving("foreign-2", NAME, dns=["x.test"]),
        client("foreign-3", NAME, unit="x"),
    ]
    found = requests.judged([*waiting[:20], *foreign, *waiting[20:]], NODES)
    assert (len(found.approved), [each.request for each in found.left]) == (37, ["foreign-1", "foreign-2", "foreign-3"])
    assert (
        str(found.left[0])
        == "foreign-1 (system:node:worker-9, kube-apiserver-client-kubelet): it is not for a node of the lab"
    )
