"""Patches as the API server applies them, and objects in protocol buffers."""

from __future__ import annotations

from typing import Any

import pytest
from support.stand_in.kubernetes import patches, protobuf
from support.stand_in.kubernetes.errors import BadRequest, Invalid, UnsupportedMediaType
from support.stand_in.kubernetes.protobuf import MAGIC, field


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": [1]}, {"a": [2, 3]}, {"a": [2, 3]}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": "b"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_merge_patches(live: Any, patch: Any, result: Any) -> None:
    assert patches.merge(live, patch) == result


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/b", "value": 2}], {"a": [1, 2], "b": 2}),
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3]}),
        ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2]}),
        ([{"op": "remove", "path": "/a/1"}], {"a": [1]}),
        ([{"op": "replace", "path": "/a/0", "value": 9}], {"a": [9, 2]}),
        ([{"op": "test", "path": "/a/0", "value": 1}, {"op": "remove", "path": "/a"}], {}),
        ([{"op": "move", "from": "/a", "path": "/b~1c"}], {"b/c": [1, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/b"}], {"a": [1, 2], "b": 1}),
    ],
)
def test_json_patches(operations: Any, result: Any) -> None:
    assert patches.by_operations({"a": [1, 2]}, operations) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "invent", "path": "/a"},
    ],
)
def test_json_patches_that_do_not_apply(operation: Any) -> None:
    live = {"a": 1}
    with pytest.raises(Invalid, match="does not apply"):
        patches.by_operations(live, [operation])
    assert live == {"a": 1}
    with pytest.raises(BadRequest, match="list of operations"):
        patches.by_operations(live, operation)


def containers(*names: str, image: str = "x") -> list[dict[str, str]]:
    return [{"name": name, "image": image} for name in names]


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        (containers("a", "b"), containers("b", image="y"), [*containers("a"), *containers("b", image="y")]),
        (containers("a"), containers("b"), containers("a", "b")),
        (containers("a", "b"), [{"name": "a", "$patch": "delete"}], containers("b")),
        (containers("a", "b"), [{"$patch": "replace"}, *containers("c")], containers("c")),
    ],
)
def test_strategic_patches_of_lists(live: Any, patch: Any, result: Any) -> None:
    assert patches.strategic({"containers": live}, {"containers": patch}) == {"containers": result}


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        ({"finalizers": ["a"]}, {"finalizers": ["b"]}, {"finalizers": ["a", "b"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]}),
        ({"taints": [{"key": "a"}]}, {"taints": [{"key": "b"}]}, {"taints": [{"key": "b"}]}),
        ({"a": 1, "b": 2}, {"$retainKeys": ["b"], "b": 3}, {"b": 3}),
        ({"a": 1}, {"$patch": "replace", "b": 2}, {"b": 2}),
        ({"unschedulable": True}, {"unschedulable": None}, {}),
    ],
)
def test_strategic_patches_of_maps(live: Any, patch: Any, result: Any) -> None:
    assert patches.strategic(live, patch) == result


def envelope(kind: str, raw: bytes) -> bytes:
    return MAGIC + field(1, field(1, "certificates.k8s.io/v1") + field(2, kind)) + field(2, raw)


def test_an_approval_in_protobuf() -> None:
    metadata = field(1, "csr-1") + field(6, "12") + field(11, field(1, "a") + field(2, "b" * 200))
    condition = field(1, "Approved") + field(2, "Why") + field(6, "True")
    raw = field(1, metadata) + field(3, field(1, condition) + field(2, b"\xff"))
    assert protobuf.read(envelope("CertificateSigningRequest", raw)) == {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "csr-1", "resourceVersion": "12", "labels": {"a": "b" * 200}},
        "status": {
            "conditions": [{"type": "Approved", "reason": "Why", "status": "True"}],
            "certificate": "/w==",
        },
    }


def test_other_kinds_in_protobuf_are_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match="the protobuf of a Pod is not known here"):
        protobuf.read(envelope("Pod", b""))
    with pytest.raises(BadRequest, match="no protobuf"):
        protobuf.read(b"{}")
