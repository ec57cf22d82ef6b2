"""Lists as tables, which is how clients ask for what they print."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable

from support.stand_in.kubernetes.kinds import Kind

Object = dict[str, Any]
Column = tuple[str, Callable[[Object], Any]]
"""A title, with a plus before it if it is for wide output only."""


def _at(path: str) -> Callable[[Object], Any]:
    def read(item: Object) -> Any:
        found: Any = item
        for name in path.split("/"):
            found = found.get(name) if isinstance(found, dict) else None
        return "" if found is None else found

    return read


def _nothing(_item: Object) -> str:
    return ""


def _condition(kind: str) -> Callable[[Object], str]:
    def read(item: Object) -> str:
        conditions = item.get("status", {}).get("conditions") or []
        return next((entry["status"] for entry in conditions if entry["type"] == kind), "")

    return read


def _node_status(item: Object) -> str:
    ready = {"True": "Ready", "False": "NotReady"}.get(_condition("Ready")(item), "NotReady")
    return ready + (",SchedulingDisabled" if item.get("spec", {}).get("unschedulable") else "")


def _roles(item: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = item["metadata"].get("labels") or {}
    return ",".join(sorted(name.removeprefix(prefix) for name in labels if name.startswith(prefix))) or "<none>"


def _address(item: Object) -> str:
    addresses = item.get("status", {}).get("addresses") or []
    return next((entry["address"] for entry in addresses if entry["type"] == "InternalIP"), "<none>")


def _request_status(item: Object) -> str:
    kinds = [entry["type"] for entry in item.get("status", {}).get("conditions") or []]
    return ",".join([*kinds, *(["Issued"] if item.get("status", {}).get("certificate") else [])]) or "Pending"


def _ready_pods(item: Object) -> str:
    containers = item.get("spec", {}).get("containers") or []
    statuses = item.get("status", {}).get("containerStatuses") or []
    return f"{len([entry for entry in statuses if entry.get('ready')])}/{len(containers)}"


def _pod_status(item: Object) -> str:
    return "Terminating" if item["metadata"].get("deletionTimestamp") else str(_at("status/phase")(item) or "Pending")


def _completed(item: Object) -> str:
    history = item.get("status", {}).get("history") or []
    return next((entry["version"] for entry in history if entry.get("state") == "Completed"), "")


def _progress(item: Object) -> str:
    conditions = item.get("status", {}).get("conditions") or []
    return next((entry.get("message", "") for entry in conditions if entry["type"] == "Progressing"), "")


def _operator_version(item: Object) -> str:
    versions = item.get("status", {}).get("versions") or []
    return next((entry["version"] for entry in versions if entry["name"] == "operator"), "")


COLUMNS: dict[str, tuple[Column, ...]] = {
    "baremetalhosts.metal3.io": (
        ("+Status", _at("status/operationalStatus")),
        ("State", _at("status/provisioning/state")),
        ("Consumer", _at("spec/consumerRef/name")),
        ("+BMC", _at("spec/bmc/address")),
        ("Online", lambda item: str(item.get("spec", {}).get("online", "")).lower()),
        ("Error", _at("status/errorType")),
    ),
    "machines.machine.openshift.io": (
        ("Phase", _at("status/phase")),
        ("Type", _nothing),
        ("Region", _nothing),
        ("Zone", _nothing),
        ("+Node", _at("status/nodeRef/name")),
        ("+ProviderID", _at("spec/providerID")),
        (
            "+State",
            lambda item: (item["metadata"].get("annotations") or {}).get("machine.openshift.io/instance-state", ""),
        ),
    ),
    "machinesets.machine.openshift.io": (
        ("Desired", _at("spec/replicas")),
        ("Current", _at("status/replicas")),
        ("Ready", _at("status/readyReplicas")),
        ("Available", _at("status/availableReplicas")),
    ),
    "nodes": (
        ("Status", _node_status),
        ("Roles", _roles),
        ("Version", _at("status/nodeInfo/kubeletVersion")),
        ("+Internal-IP", _address),
    ),
    "pods": (("Ready", _ready_pods), ("Status", _pod_status), ("+Node", _at("spec/nodeName"))),
    "secrets": (("Type", _at("type")), ("Data", lambda item: len(item.get("data") or {}))),
    "configmaps": (("Data", lambda item: len(item.get("data") or {})),),
    "certificatesigningrequests.certificates.k8s.io": (
        ("SignerName", _at("spec/signerName")),
        ("Requestor", _at("spec/username")),
        ("Condition", _request_status),
    ),
    "poddisruptionbudgets.policy": (
        ("Min Available", lambda item: _at("spec/minAvailable")(item) or "N/A"),
        ("Max Unavailable", lambda item: _at("spec/maxUnavailable")(item) or "N/A"),
        ("Allowed Disruptions", _at("status/disruptionsAllowed")),
    ),
    "clusterversions.config.openshift.io": (
        ("Version", _completed),
        ("Available", _condition("Available")),
        ("Progressing", _condition("Progressing")),
        ("Status", _progress),
    ),
    "clusteroperators.config.openshift.io": (
        ("Version", _operator_version),
        ("Available", _condition("Available")),
        ("Progressing", _condition("Progressing")),
        ("Degraded", _condition("Degraded")),
    ),
    "events": (("Type", _at("type")), ("Reason", _at("reason")), ("Message", _at("message"))),
}


def table(kind: Kind, items: list[Object], version: str, include: str, now: float) -> Object:
    """`include`: how much of each object goes along: None, Metadata or Object."""
    columns: tuple[Column, ...] = (
        ("Name", lambda item: item["metadata"]["name"]),
        *COLUMNS.get(kind.name, ()),
        ("Age", lambda item: age(item["metadata"].get("creationTimestamp", ""), now)),
    )
    definitions = [
        {
            "name": title.removeprefix("+"),
            "type": "string",
            "format": "name" if title == "Name" else "",
            "description": "",
            "priority": int(title.startswith("+")),
        }
        for title, _ in columns
    ]
    rows = [{"cells": [read(item) for _, read in columns], **_included(item, include, version)} for item in items]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _included(item: Object, include: str, version: str) -> Object:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": item}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": item["metadata"]}
    return {"object": partial}


def age(created: str, now: float) -> str:
    """As kubectl shows it: 42s, 5m, 3h, 4d."""
    if not created:
        return "<unknown>"
    seconds = max(0, int(now - datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp()))
    for unit, size, upto in (("s", 1, 120), ("m", 60, 180 * 60), ("h", 3600, 48 * 3600)):
        if seconds < upto:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"
