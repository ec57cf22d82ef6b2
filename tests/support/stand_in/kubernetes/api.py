"""What the API server answers."""

from __future__ import annotations

import base64
import binascii
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from support.stand_in.kubernetes import (
    admission,
    discovery,
    errors,
    eviction,
    openapi,
    patches,
    selectors,
    tables,
    users,
)
from support.stand_in.kubernetes.errors import BadRequest, MethodNotAllowed, NotFound, UnsupportedMediaType
from support.stand_in.kubernetes.kinds import APPROVAL, EVICTION, SCALE, STATUS, Kind
from support.stand_in.kubernetes.requests import Request, Target
from support.stand_in.kubernetes.store import ADDED, DELETED, Event, Object, Store
from support.stand_in.kubernetes.users import Attributes, User

JSON = "application/json"
HEALTH = ("/healthz", "/livez", "/readyz")
BUDGETS, REQUESTS = "poddisruptionbudgets.policy", "certificatesigningrequests.certificates.k8s.io"
BOOKMARK = "BOOKMARK"
INITIAL_END = "k8s.io/initial-events-end"
WATCH_SECONDS = 1800
BOOKMARK_SECONDS = 10


@dataclass
class Answer:
    code: int
    body: Any
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


class Api:
    def __init__(self, store: Store, version: str) -> None:
        self.store = store
        self._version = version.removeprefix("v")

    def answer(self, request: Request) -> Answer:
        """Raises the errors of `errors`."""
        if request.path == "/version" or request.path.startswith(HEALTH):
            return self._public(request.path)
        if request.user is None:
            raise errors.Unauthorized("Unauthorized")
        found = _described(request)
        if found is not None:
            return found
        target = request.target
        if target is None:
            raise NotFound("the server could not find the requested resource")
        wanted = request.attributes(target)
        if not users.may(request.user, wanted):
            raise errors.Forbidden(users.refusal(request.user, wanted), errors.of(target.kind, target.name))
        selectors.check_fields(target.kind, request.query.get("fieldSelector", ""))
        if target.kind in discovery.REVIEWS:
            return _review(request, request.user)
        return self._of_object(request, target)

    def _public(self, path: str) -> Answer:
        if path != "/version":
            return Answer(http.client.OK, b"ok", "text/plain; charset=utf-8")
        major, minor = self._version.split(".")[:2]
        return Answer(
            http.client.OK,
            {"major": major, "minor": minor, "gitVersion": f"v{self._version}", "platform": "linux/amd64"},
        )

    def _of_object(self, request: Request, target: Target) -> Answer:
        if target.subresource == EVICTION:
            return self._evict(request, target)
        does = {
            "POST": self._create,
            "PUT": self._update,
            "PATCH": self._patch,
            "DELETE": self._delete,
            "GET": self._get,
        }
        named = {"POST": False, "PUT": True, "PATCH": True}.get(request.method, bool(target.name))
        if request.method not in does or named != bool(target.name):
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        return does[request.method](request, target)

    def _get(self, request: Request, target: Target) -> Answer:
        if not target.name:
            return self._list(request, target)
        item = self.store.get(target.kind.name, target.name, target.namespace)
        if target.subresource == SCALE:
            return Answer(http.client.OK, scale_of(item))
        return self._shown(request, target.kind, self._counted(target.kind, item))

    def _list(self, request: Request, target: Target) -> Answer:
        version = str(self.store.version)
        found = self._selected(request, target)
        limit = int(request.query.get("limit") or 0)
        start = _start(request.query.get("continue", ""))
        rest = [item for item in found if _place(item) > start] if start else found
        page = rest[:limit] if limit else rest
        metadata: Object = {"resourceVersion": version}
        if len(page) < len(rest):
            metadata |= {"continue": _token(_place(page[-1])), "remainingItemCount": len(rest) - len(page)}
        items = [self._counted(target.kind, item) for item in page]
        wanted = _table_version(request)
        if wanted:
            found_table = self._table(request, target.kind, items, wanted)
            return Answer(http.client.OK, {**found_table, "metadata": metadata})
        kind = target.kind
        body = {"kind": f"{kind.kind}List", "apiVersion": kind.group_version, "metadata": metadata, "items": items}
        return Answer(http.client.OK, body)

    def _selected(self, request: Request, target: Target) -> list[Object]:
        return [item for item in self.store.list(target.kind.name, target.namespace) if _is_selected(request, item)]

    def _create(self, request: Request, target: Target) -> Answer:
        body = self._body(request, target)
        if STATUS in target.kind.subresources and target.kind.name != "nodes":
            body.pop("status", None)
        if target.kind.name == REQUESTS and request.user:
            spec = {**body.get("spec", {}), "username": request.user.name, "groups": list(request.user.groups)}
            body["spec"] = spec
        headers = _validated(request, target.kind, body)
        made = self.store.create(target.kind.name, body, request.manager, dry=request.dry)
        return self._shown(request, target.kind, made, http.client.CREATED, headers)

    def _update(self, request: Request, target: Target) -> Answer:
        body = self._body(request, target)
        headers = _validated(request, target.kind, body)
        if target.subresource == APPROVAL:
            body = self._approved(target, body)
        made = self.store.update(target.kind.name, body, target.subresource, request.manager, dry=request.dry)
        if target.subresource == SCALE:
            return Answer(http.client.OK, scale_of(made))
        return self._shown(request, target.kind, made, headers=headers)

    def _approved(self, target: Target, body: Object) -> Object:
        """An approval decides, and changes nothing else of the status."""
        there = self.store.get(target.kind.name, target.name)
        conditions = body.get("status", {}).get("conditions", [])
        for condition in conditions:
            for name in ("lastUpdateTime", "lastTransitionTime"):
                condition[name] = condition.get(name) or self.store.now()
        return {**body, "status": {**there.get("status", {}), "conditions": conditions}}

    def _patch(self, request: Request, target: Target) -> Answer:
        if request.media_type == patches.APPLY:
            return self._apply(request, target)
        change = request.content()
        while True:
            live = self.store.get(target.kind.name, target.name, target.namespace)
            shown = scale_of(live) if target.subresource == SCALE else live
            body = _patched(request, target.kind, shown, change)
            headers = _validated(request, target.kind, body)
            body.setdefault("metadata", {}).update(name=target.name)
            if target.namespace:
                body["metadata"]["namespace"] = target.namespace
            try:
                made = self.store.update(target.kind.name, body, target.subresource, request.manager, dry=request.dry)
            except errors.Conflict:
                told, there = body["metadata"], live["metadata"]
                if any(told.get(key) != there[key] for key in ("uid", "resourceVersion")):
                    raise  # the patch itself says of which version it is
                continue
            if target.subresource == SCALE:
                return Answer(http.client.OK, scale_of(made))
            return self._shown(request, target.kind, made, headers=headers)

    def _apply(self, request: Request, target: Target) -> Answer:
        body = self._body(request, target)
        unknown = admission.strict(target.kind, body)
        if unknown:
            field_path = unknown[0].split('"')[1]
            where = "/".join(filter(None, (target.namespace, target.name)))
            what = f"{where}; {target.kind.group_version}, Kind={target.kind.kind}"
            _validated(request, target.kind, body)
            raise BadRequest(
                f"failed to create typed patch object ({what}): .{field_path}: field not declared in schema"
            )
        if not request.query.get("fieldManager"):
            raise BadRequest(
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            )
        try:
            self.store.get(target.kind.name, target.name, target.namespace)
            code = http.client.OK
        except NotFound:
            if target.subresource:
                raise
            code = http.client.CREATED
        force = request.query.get("force") == "true"
        made = self.store.apply(target.kind.name, body, request.manager, force, target.subresource, dry=request.dry)
        return self._shown(request, target.kind, made, code)

    def _delete(self, request: Request, target: Target) -> Answer:
        if target.subresource:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        if not target.name:
            for item in self._selected(request, target):
                self.store.delete(target.kind.name, item["metadata"]["name"], item["metadata"].get("namespace", ""))
            return Answer(http.client.OK, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
        conditions = request.options.get("preconditions") or {}
        gone = self.store.delete(
            *(target.kind.name, target.name, target.namespace, conditions.get("uid", "")),
            conditions.get("resourceVersion", ""),
            dry=request.dry,
        )
        if gone["metadata"].get("finalizers"):
            return self._shown(request, target.kind, gone)
        details = {**errors.of(target.kind, target.name), "uid": gone["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return Answer(http.client.OK, status)

    def _evict(self, request: Request, target: Target) -> Answer:
        if request.method != "POST":
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        options = request.object().get("deleteOptions") or {}
        uid = (options.get("preconditions") or {}).get("uid", "")
        dry = request.dry or "All" in (options.get("dryRun") or [])
        eviction.evict(self.store, target.name, target.namespace, uid, dry=dry)
        return Answer(http.client.CREATED, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})

    def _body(self, request: Request, target: Target) -> Object:
        """It must be about what the address is about."""
        body = request.object()
        kind, told = target.kind, (body.get("apiVersion"), body.get("kind"))
        expected = ("autoscaling/v1", "Scale") if target.subresource == SCALE else (kind.group_version, kind.kind)
        if told != expected and any(told):
            raise BadRequest(f"{told[1]} in version {told[0]!r} cannot be handled as a {expected[1]} in {expected[0]}")
        metadata = body["metadata"] = body.get("metadata") or {}
        for name, value in (("namespace", target.namespace), ("name", target.name)):
            if value and metadata.get(name, value) != value:
                raise BadRequest(
                    f"the {name} of the object ({metadata[name]}) does not match the {name} on the URL ({value})"
                )
            if value:
                metadata[name] = value
        return body

    def _counted(self, kind: Kind, item: Object) -> Object:
        """A budget with what it allows now."""
        return {**item, "status": eviction.status(self.store, item)} if kind.name == BUDGETS else item

    def _shown(
        self,
        request: Request,
        kind: Kind,
        item: Object,
        code: int = http.client.OK,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        wanted = _table_version(request)
        return Answer(code, self._table(request, kind, [item], wanted) if wanted else item, headers=headers or {})

    def _table(self, request: Request, kind: Kind, items: list[Object], version: str) -> Object:
        include = request.query.get("includeObject", "Metadata")
        return tables.table(kind, items, version, include, self.store.clock())

    def watch(self, request: Request, target: Target) -> Iterator[Object | None]:
        """The events as the client wants them; None while nothing happens, when the client may have gone."""
        selectors.check_fields(target.kind, request.query.get("fieldSelector", ""))
        named = Target(target.kind, target.namespace)
        given = request.query.get("resourceVersion", "")
        since = int(given) if given not in ("", "0") else self.store.version
        marks = request.query.get("allowWatchBookmarks") == "true"
        initial = request.query.get("sendInitialEvents")
        if initial == "true" or (given in ("", "0") and initial != "false"):
            since = self.store.version
            for item in self._selected(request, named):
                if not target.name or item["metadata"]["name"] == target.name:
                    yield self._event(request, target.kind, ADDED, item)
        if initial == "true":
            yield self._bookmark(request, target.kind, since, {INITIAL_END: "true"})
        idle = 0
        while not self.store.closed:
            found, reached = self.store.events([target.kind.name], since)
            for event in found:
                kind_of_event = _seen_as(request, target, event)
                if kind_of_event:
                    yield self._event(request, target.kind, kind_of_event, event.object)
            since = reached
            if not self.store.wait(1, since):
                idle += 1
                if marks and idle % BOOKMARK_SECONDS == 0:
                    yield self._bookmark(request, target.kind, since, {})
                yield None

    def _event(self, request: Request, kind: Kind, name: str, item: Object) -> Object:
        wanted = _table_version(request)
        shown = self._table(request, kind, [item], wanted) if wanted else item
        return {"type": name, "object": shown}

    def _bookmark(self, request: Request, kind: Kind, version: int, annotations: dict[str, str]) -> Object:
        metadata = {
            "resourceVersion": str(version),
            "creationTimestamp": None,
            **({"annotations": annotations} if annotations else {}),
        }
        item = {"kind": kind.kind, "apiVersion": kind.group_version, "metadata": metadata}
        wanted = _table_version(request)
        if wanted:
            item = {**tables.table(kind, [], wanted, "None", 0), "metadata": metadata}
        return {"type": BOOKMARK, "object": item}


def _described(request: Request) -> Answer | None:
    """Discovery and OpenAPI."""
    path = request.path.rstrip("/") or "/"
    if path in ("/api", "/apis"):
        for version in _aggregated_versions(request):
            media_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            return Answer(http.client.OK, discovery.aggregated(path, version), media_type)
        return Answer(http.client.OK, discovery.versions() if path == "/api" else discovery.groups())
    if path == "/openapi/v2":
        return Answer(http.client.OK, openapi.v2(), openapi.PROTOBUF)
    if path == "/openapi/v3":
        return Answer(http.client.OK, openapi.v3())
    if path.startswith("/openapi/v3/"):
        found = openapi.v3_of(path.removeprefix("/openapi/v3"))
        return None if found is None else Answer(http.client.OK, found)
    resources = discovery.resources(path) or discovery.group_at(path)
    return None if resources is None else Answer(http.client.OK, resources)


def _aggregated_versions(request: Request) -> list[str]:
    """Those that the client takes, if it takes any before the plain form."""
    found = []
    for form in _accepted(request):
        if form.get("as") == "APIGroupDiscoveryList" and form.get("v") in ("v2", "v2beta1"):
            found.append(form["v"])
        elif form[""] == JSON and "as" not in form:
            break
    return found


def _table_version(request: Request) -> str:
    """Empty if the client does not ask for tables before the plain form."""
    for form in _accepted(request):
        if form.get("as") == "Table" and form.get("v") in ("v1", "v1beta1"):
            return form["v"]
        if form[""] in (JSON, "*/*") and "as" not in form:
            break
    return ""


def _accepted(request: Request) -> list[dict[str, str]]:
    forms = []
    for part in request.headers.get("Accept", "*/*").split(","):
        media_type, *parameters = [item.strip() for item in part.split(";")]
        forms.append({"": media_type, **dict(item.partition("=")[::2] for item in parameters)})
    return forms


def _review(request: Request, user: User) -> Answer:
    body = request.object()
    if body.get("kind") == "SelfSubjectReview":
        status: Object = {"userInfo": {"username": user.name, "groups": list(user.groups)}}
    else:
        asked = body.get("spec", {}).get("resourceAttributes") or {}
        resource = "/".join(filter(None, (asked.get("resource", ""), asked.get("subresource", ""))))
        group, namespace, name = (asked.get(key, "") for key in ("group", "namespace", "name"))
        status = {"allowed": users.may(user, Attributes(asked.get("verb", ""), group, resource, namespace, name))}
    return Answer(http.client.CREATED, {**body, "status": status})


def _patched(request: Request, kind: Kind, live: Object, change: Any) -> Object:
    if request.media_type == patches.JSON:
        found = patches.by_operations(live, change)
    elif request.media_type == patches.MERGE:
        found = patches.merge(live, change)
    elif request.media_type == patches.STRATEGIC and not kind.custom:
        found = patches.strategic(live, change)
    else:
        known = ", ".join((patches.JSON, patches.MERGE, patches.APPLY))
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {known}"
        )
    if not isinstance(found, dict):
        raise BadRequest("the patch does not leave an object")
    return found


def _validated(request: Request, kind: Kind, body: Object) -> dict[str, str]:
    """Headers with warnings, or a refusal where the client asks for strict validation."""
    unknown = admission.strict(kind, body)
    wanted = request.query.get("fieldValidation", "Warn")
    if unknown and wanted == "Strict":
        text = ", ".join(unknown)
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: {text}'
        )
    if not unknown or wanted == "Ignore":
        return {}
    return {"Warning": ", ".join(f"299 - {json.dumps(text)}" for text in unknown)}


def _seen_as(request: Request, target: Target, event: Event) -> str:
    """What an event is to a watch that sees only some objects: they come into its view and leave it."""
    metadata = event.object["metadata"]
    if target.namespace not in ("", metadata.get("namespace", "")) or target.name not in ("", metadata["name"]):
        return ""
    now = event.type != DELETED and _is_selected(request, event.object)
    before = event.old is not None and _is_selected(request, event.old)
    if now:
        return event.type if before else ADDED
    return DELETED if before else ""


def _is_selected(request: Request, item: Object) -> bool:
    labels, wanted = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    return selectors.by_labels(labels, item) and selectors.by_fields(wanted, item)


def scale_of(item: Object) -> Object:
    metadata = {
        key: item["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    status, selector = item.get("status", {}), item.get("spec", {}).get("selector") or {}
    labels = ",".join(f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items())
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": item.get("spec", {}).get("replicas", 0)},
        "status": {"replicas": status.get("replicas", 0), "selector": labels},
    }


def _place(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _token(place: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _start(token: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        namespace, name = json.loads(base64.urlsafe_b64decode(token))
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"continue key is not valid: {error}") from error
    return namespace, name
