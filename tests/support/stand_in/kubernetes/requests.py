"""A request, and what it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from support.stand_in import documents
from support.stand_in.kubernetes import discovery, patches, protobuf
from support.stand_in.kubernetes.errors import BadRequest, UnsupportedMediaType
from support.stand_in.kubernetes.kinds import Kind
from support.stand_in.kubernetes.users import Attributes, User

NAMESPACES = "namespaces"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True)
class Target:
    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def resource(self) -> str:
        return "/".join(filter(None, (self.kind.plural, self.subresource)))


def target(path: str) -> Target | None:
    """/api/v1/... or /apis/GROUP/VERSION/..., if there is such a kind."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    depth = 2 if parts[0] == "api" else 3
    prefix, rest = "/" + "/".join(parts[:depth]), parts[depth:]
    known = {kind.plural: kind for kind in discovery.ALL if kind.path == prefix}
    namespace = ""
    if len(rest) > 2 and rest[0] == NAMESPACES and rest[2] in known and known[rest[2]].namespaced:
        namespace, rest = rest[1], rest[2:]
    if not rest or rest[0] not in known or len(rest) > 3:
        return None
    plural, name, subresource = [*rest, "", ""][:3]
    kind = known[plural]
    if (subresource and subresource not in kind.subresources) or (name and kind.namespaced and not namespace):
        return None
    return Target(kind, namespace, name, subresource)


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    user: User | None = None

    @cached_property
    def path(self) -> str:
        return urlsplit(self.url).path

    @cached_property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))

    @cached_property
    def target(self) -> Target | None:
        return target(self.path)

    @property
    def verb(self) -> str:
        """As of Kubernetes."""
        named = bool(self.target and self.target.name)
        if self.method == "DELETE":
            return "delete" if named else "deletecollection"
        if self.method in VERBS:
            return VERBS[self.method]
        if self.query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if named or not self.target else "list"

    @property
    def media_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip() or "application/json"

    @property
    def dry(self) -> bool:
        return self.query.get("dryRun") == "All" or (
            self.method == "DELETE" and "All" in self.options.get("dryRun", [])
        )

    @property
    def manager(self) -> str:
        """Without a parameter, the name of the program."""
        return self.query.get("fieldManager") or self.headers.get("User-Agent", "").partition("/")[0] or "unknown"

    @property
    def options(self) -> dict[str, Any]:
        """Of a deletion."""
        return self.object() if self.body else {}

    def attributes(self, about: Target) -> Attributes:
        return Attributes(self.verb, about.kind.group, about.resource, about.namespace, about.name)

    def object(self) -> dict[str, Any]:
        found = self.content()
        if not isinstance(found, dict):
            raise BadRequest("the body of the request must be an object")
        return found

    def content(self) -> Any:
        if self.media_type == protobuf.MEDIA_TYPE:
            return protobuf.read(self.body)
        try:
            if self.media_type in ("application/yaml", patches.APPLY):
                return documents.load(self.body.decode())
            if self.media_type.endswith("json"):
                return json.loads(self.body)
        except ValueError as error:
            raise BadRequest(f"the body of the request is invalid: {error}") from error
        raise UnsupportedMediaType(f"the body of the request was in an unknown format: {self.media_type}")
