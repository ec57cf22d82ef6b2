"""Label selectors, as objects write them and as requests do, and field selectors."""

from __future__ import annotations

import re
from typing import Any

from support.stand_in.kubernetes.errors import BadRequest
from support.stand_in.kubernetes.kinds import Kind

Object = dict[str, Any]
FIELDS = ("metadata.name", "metadata.namespace")
OF_KINDS = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP"),
    "nodes": ("spec.unschedulable",),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "events": (
        *("reason", "reportingComponent", "source", "type"),
        *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")),
        "involvedObject.fieldPath",
    ),
}


def matches(selector: Object | None, item: Object) -> bool:
    """A selector of an object: matchLabels and matchExpressions. None matches nothing, an empty one all."""
    if selector is None:
        return False
    labels = item["metadata"].get("labels") or {}
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    expressions = selector.get("matchExpressions") or []
    return equal and all(
        _holds(labels, told["key"], told["operator"], told.get("values") or []) for told in expressions
    )


def by_labels(text: str, item: Object) -> bool:
    """`a=b,c!=d,e in (f,g),h notin (i),j,!k`."""
    labels = item["metadata"].get("labels") or {}
    return all(_holds(labels, *_term(term)) for term in _terms(text))


def check_fields(kind: Kind, text: str) -> None:
    """The fields that a server can select by are few."""
    for term in filter(None, text.split(",")):
        field = re.split("!?=", term)[0]
        if field not in FIELDS and field not in OF_KINDS.get(kind.name, ()):
            why = f"field label not supported: {field}"
            raise BadRequest(f'Unable to find "{kind.name}" that match field selector "{text}": {why}')


def by_fields(text: str, item: Object) -> bool:
    """`metadata.name=a,spec.nodeName!=b`."""
    for term in filter(None, text.split(",")):
        found = re.fullmatch(r"([^=!]+)(!=|==|=)(.*)", term)
        if not found:
            raise BadRequest(f'invalid field selector {term!r}: must be "name=value"')
        path, operator, value = found.groups()
        if (_field(item, path) == value) == (operator == "!="):
            return False
    return True


def _field(item: Object, path: str) -> str:
    found: Any = item
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return "" if found is None else {True: "true", False: "false"}.get(found, str(found))


def _terms(text: str) -> list[str]:
    return [term.strip() for term in re.split(r",(?![^()]*\))", text) if term.strip()]


def _term(term: str) -> tuple[str, str, list[str]]:
    if found := re.fullmatch(r"(\S+)\s+(in|notin)\s+\(([^()]*)\)", term):
        values = [value.strip() for value in found[3].split(",")]
        return found[1], "In" if found[2] == "in" else "NotIn", values
    if found := re.fullmatch(r"([^=!\s]+)\s*(!=|==|=)\s*(\S*)", term):
        return found[1], "NotIn" if found[2] == "!=" else "In", [found[3]]
    if found := re.fullmatch(r"(!?)([^=!\s]+)", term):
        return found[2], "DoesNotExist" if found[1] else "Exists", []
    raise BadRequest(f'unable to parse requirement: invalid label selector "{term}"')


def _holds(labels: dict[str, str], key: str, operator: str, values: list[str]) -> bool:
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) == (operator == "Exists")
