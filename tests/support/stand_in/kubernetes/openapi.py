"""The API's description: the server validates fields and can run dry.

There are no schemas in it, so clients leave validation to the server.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from support.stand_in.kubernetes import kinds
from support.stand_in.kubernetes.kinds import Kind
from support.stand_in.kubernetes.protobuf import field

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""As clients can parse it; they ask for it with an @ before the version."""
PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")
EXTENSION = "x-kubernetes-group-version-kind"


def v2() -> bytes:
    """An OpenAPIv2.Document of gnostic."""
    return b"".join(
        [
            field(1, "2.0"),
            field(2, field(1, "Kubernetes") + field(2, "stand-in")),
            field(8, b"".join(field(2, field(1, _path(kind)) + field(2, _item(kind))) for kind in kinds.KINDS)),
        ]
    )


def _item(kind: Kind) -> bytes:
    """A PathItem whose patch has the parameters, as QueryParameterSubSchemas, and the kind as a vendor extension."""
    parameters = b"".join(
        field(8, field(1, field(2, field(3, field(2, "query") + field(4, name))))) for name in PARAMETERS
    )
    group_version_kind = f"group: {json.dumps(kind.group)}\nkind: {kind.kind}\nversion: {kind.version}\n"
    return field(8, parameters + field(13, field(1, EXTENSION) + field(2, field(2, group_version_kind))))


def v3() -> dict[str, Any]:
    """The index of the groups' documents."""
    paths = sorted({kind.path for kind in kinds.KINDS})
    return {"paths": {path[1:]: {"serverRelativeURL": f"/openapi/v3{path}?hash={_hash(path)}"} for path in paths}}


def v3_of(path: str) -> dict[str, Any] | None:
    found = {_path(kind): {"patch": _patch(kind)} for kind in kinds.KINDS if kind.path == path}
    if not found:
        return None
    info = {"title": "Kubernetes", "version": "stand-in"}
    return {"openapi": "3.0.0", "info": info, "paths": found, "components": {"schemas": {}}}


def _patch(kind: Kind) -> dict[str, Any]:
    return {
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in PARAMETERS],
        "responses": {"200": {"description": "OK"}},
        EXTENSION: {"group": kind.group, "version": kind.version, "kind": kind.kind},
    }


def _path(kind: Kind) -> str:
    return f"{kind.path}/{'namespaces/{namespace}/' if kind.namespaced else ''}{kind.plural}/{{name}}"


def _hash(path: str) -> str:
    return hashlib.sha256(json.dumps(v3_of(path)).encode()).hexdigest()[:16].upper()
