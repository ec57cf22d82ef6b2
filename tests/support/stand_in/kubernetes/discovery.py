"""What the API has, plain and aggregated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from support.stand_in.kubernetes import kinds
from support.stand_in.kubernetes.kinds import EVICTION, SCALE, Kind

Object = dict[str, Any]
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
REVIEWS = (
    Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", (), False, ()),
    Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", (), False, ()),
)
"""Answered, and not stored."""
ALL = (*kinds.KINDS, *REVIEWS)
OTHERS = {SCALE: ("autoscaling", "v1", "Scale"), EVICTION: ("policy", "v1", "Eviction")}
"""The kinds of subresources that are not those of their objects."""


def versions() -> Object:
    """/api"""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups() -> Object:
    """/apis"""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group(name) for name in _groups() if name]}


def group_at(path: str) -> Object | None:
    """/apis/NAME"""
    name = path.removeprefix("/apis/")
    return group(name) if name and name in _groups() else None


def group(name: str) -> Object:
    found = [{"groupVersion": f"{name}/{version}", "version": version} for version in _versions(name)]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": found, "preferredVersion": found[0]}


def resources(path: str) -> Object | None:
    """/api/v1 and /apis/GROUP/VERSION"""
    known = [kind for kind in ALL if kind.path == path]
    if not known:
        return None
    found = [entry for kind in known for entry in _plain(kind)]
    group_version = known[0].group_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": found}


def _plain(kind: Kind) -> list[Object]:
    own = {"name": kind.plural, "singularName": kind.kind.lower(), "namespaced": kind.namespaced, "kind": kind.kind}
    found: list[Object] = [{**own, "verbs": _verbs(kind)}]
    if kind.short:
        found[0]["shortNames"] = list(kind.short)
    for name in kind.subresources:
        entry = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind}
        if name in OTHERS:
            entry |= dict(zip(("group", "version", "kind"), OTHERS[name]))
        found.append({**entry, "verbs": _verbs_of(name)})
    return found


def aggregated(path: str, version: str) -> Object:
    """/api and /apis in one answer each."""
    names = [name for name in _groups() if (name == "") == (path == "/api")]
    items = [
        {
            "metadata": {"name": name},
            "versions": [
                {"version": each, "freshness": "Current", "resources": _entries(name, each)} for each in _versions(name)
            ],
        }
        for name in names
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _entries(name: str, version: str) -> list[Object]:
    return [_entry(kind) for kind in ALL if (kind.group, kind.version) == (name, version)]


def _entry(kind: Kind) -> Object:
    own = (kind.group, kind.version, kind.kind)
    return {
        "resource": kind.plural,
        "responseKind": _named(own),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.kind.lower(),
        "shortNames": list(kind.short),
        "verbs": _verbs(kind),
        "subresources": [
            {"subresource": name, "responseKind": _named(OTHERS.get(name, own)), "verbs": _verbs_of(name)}
            for name in kind.subresources
        ],
    }


def _named(names: Iterable[str]) -> Object:
    return dict(zip(("group", "version", "kind"), names))


def _verbs(kind: Kind) -> list[str]:
    return ["create"] if kind in REVIEWS else list(VERBS)


def _verbs_of(subresource: str) -> list[str]:
    return ["create"] if subresource == EVICTION else ["get", "patch", "update"]


def _groups() -> list[str]:
    return list(dict.fromkeys(kind.group for kind in ALL))


def _versions(name: str) -> list[str]:
    return list(dict.fromkeys(kind.version for kind in ALL if kind.group == name))
