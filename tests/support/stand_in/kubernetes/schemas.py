"""What custom resources may have, where it matters: a key that is not in the schema is not stored."""

from __future__ import annotations

import re
from typing import Any

Schema = dict[str, Any]
"""A map of its keys; in a leaf, the key "" has its type."""


def _leaf(kind: str, **more: Any) -> Schema:
    return {"": kind, **more}


STRING, BOOLEAN, INTEGER, ANY = _leaf("string"), _leaf("boolean"), _leaf("integer"), _leaf("any")
REFERENCE = dict.fromkeys(("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"), STRING)
SECRET = {"name": STRING, "namespace": STRING}
HOST: Schema = {
    "architecture": STRING,
    "automatedCleaningMode": _leaf("string", one_of=("metadata", "disabled")),
    "bmc": {"address": STRING, "credentialsName": STRING, "disableCertificateVerification": BOOLEAN},
    "bootMACAddress": _leaf("string", pattern="[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}"),
    "bootMode": _leaf("string", one_of=("UEFI", "UEFISecureBoot", "legacy")),
    "consumerRef": REFERENCE,
    "customDeploy": {"method": STRING},
    "description": STRING,
    "disablePowerOff": BOOLEAN,
    "externallyProvisioned": BOOLEAN,
    "firmware": dict.fromkeys(("simultaneousMultithreadingEnabled", "sriovEnabled", "virtualizationEnabled"), BOOLEAN),
    "hardwareProfile": STRING,
    "image": {"checksum": STRING, "checksumType": STRING, "format": STRING, "url": STRING},
    "inspectionMode": _leaf("string", one_of=("disabled", "agent")),
    "metaData": SECRET,
    "networkData": SECRET,
    "online": BOOLEAN,
    "preprovisioningNetworkDataName": STRING,
    "raid": ANY,
    "rootDeviceHints": {
        **dict.fromkeys(("deviceName", "hctl", "model", "serialNumber", "vendor"), STRING),
        **dict.fromkeys(("wwn", "wwnVendorExtension", "wwnWithExtension"), STRING),
        "minSizeGigabytes": INTEGER,
        "rotational": BOOLEAN,
    },
    "taints": ANY,
    "userData": SECRET,
}
REQUIRED = {"": ("online",), "bmc": ("address", "credentialsName"), "customDeploy": ("method",), "image": ("url",)}
SCHEMAS: dict[str, Schema] = {"baremetalhosts.metal3.io": HOST}
PROVIDER_SPEC: Schema = {
    "apiVersion": STRING,
    "kind": STRING,
    "metadata": ANY,
    "customDeploy": {"method": STRING},
    "hostSelector": {"matchLabels": ANY, "matchExpressions": ANY},
    "image": {"checksum": STRING, "url": STRING},
    "userData": SECRET,
}
"""Of Machines, which the actuator reads: it fails with a key that is not here (`unknown`)."""
TYPES = {"string": str, "boolean": bool, "integer": int}


def unknown(schema: Schema, value: Any, path: str = "") -> list[str]:
    """The paths of the keys that are not in the schema."""
    if "" in schema or not isinstance(value, dict):
        return []
    found: list[str] = []
    for key, part in value.items():
        place = f"{path}.{key}" if path else key
        found += unknown(schema[key], part, place) if key in schema else [place]
    return found


def pruned(schema: Schema, value: Any) -> Any:
    if "" in schema or not isinstance(value, dict):
        return value
    return {key: pruned(schema[key], part) for key, part in value.items() if key in schema}


def errors_of(schema: Schema, value: Any, path: str = "") -> list[tuple[str, str]]:
    """Field and message of what has the wrong type or value, or is missing."""
    kind: str = schema.get("", "object")
    if kind == "any":
        return []
    if not _is(value, TYPES.get(kind, dict)):
        return [(path, f'Invalid value: "{_type(value)}": {path} in body must be of type {kind}: "{_type(value)}"')]
    if "one_of" in schema and value not in schema["one_of"]:
        allowed = ", ".join(f'"{item}"' for item in schema["one_of"])
        return [(path, f'Unsupported value: "{value}": supported values: {allowed}')]
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return [(path, f"Invalid value: \"{value}\": {path} in body should match '{schema['pattern']}'")]
    if kind != "object":
        return []
    missing = [name for name in REQUIRED.get(path.removeprefix("spec").lstrip("."), ()) if name not in value]
    found = [(f"{path}.{name}", "Required value") for name in missing]
    for key, part in value.items():
        found += errors_of(schema[key], part, f"{path}.{key}") if key in schema else []
    return found


def _is(value: Any, expected: type) -> bool:
    return isinstance(value, expected) and not (expected is int and isinstance(value, bool))


def _type(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")
