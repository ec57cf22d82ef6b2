"""What is refused before it is stored: by the schemas, and by the webhook of BareMetalHosts."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from support.stand_in.kubernetes import errors, schemas
from support.stand_in.kubernetes.kinds import Kind

Object = dict[str, Any]
SECRETS, HOSTS = "secrets", "baremetalhosts.metal3.io"
REGISTERING = ("", "registering")


NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
LONGEST_NAME, LONGEST_LABEL = 253, 63


def _check_metadata(kind: Kind, metadata: Object) -> None:
    name = metadata["name"]

    def must_be(field: str, value: Any, form: re.Pattern[str], longest: int) -> None:
        if not (isinstance(value, str) and form.fullmatch(value) and len(value) <= longest):
            raise errors.invalid(kind, name, f"metadata.{field}", f"Invalid value: {json.dumps(value)}")

    must_be("name", name, NAME, LONGEST_NAME)
    for key, value in (metadata.get("labels") or {}).items():
        must_be("labels", key, KEY, LONGEST_NAME + LONGEST_LABEL)
        must_be("labels", value, LABEL, LONGEST_LABEL)
    for key, value in (metadata.get("annotations") or {}).items():
        must_be("annotations", key, KEY, LONGEST_NAME + LONGEST_LABEL)
        if not isinstance(value, str):
            raise errors.invalid(kind, name, "metadata.annotations", f"Invalid value: {json.dumps(value)}")


def normalized(kind: Kind, given: Object) -> Object:
    """As it is stored, before its fields get their managers."""
    return _encoded(kind, given) if kind.name == SECRETS else given


def admit(kind: Kind, new: Object, old: Object | None) -> Object:
    """The object as it is to be stored."""
    _check_metadata(kind, new["metadata"])
    schema = schemas.SCHEMAS.get(kind.name)
    if schema is not None:
        found = schemas.errors_of(schema, new.get("spec", {}), "spec")
        if found:
            raise errors.invalid(kind, new["metadata"]["name"], *found[0])
        new = {**new, "spec": schemas.pruned(schema, new.get("spec", {}))}
    new = normalized(kind, new)
    if kind.name == HOSTS:
        refusals = [*_of_host(new), *(_of_change(new, old) if old is not None else [])]
        if refusals:
            text = refusals[0] if len(refusals) == 1 else f"[{', '.join(refusals)}]"
            raise errors.Forbidden(f'admission webhook "baremetalhost.metal3.io" denied the request: {text}')
    return new


def _encoded(kind: Kind, secret: Object) -> Object:
    """What is given as text is stored as base64, as all data."""
    texts = secret.get("stringData") or {}
    data = {
        **(secret.get("data") or {}),
        **{key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }
    try:
        for text in data.values():
            base64.b64decode(text, validate=True)
    except ValueError as error:
        raise errors.invalid(kind, secret["metadata"]["name"], "data", f"illegal base64 data: {error}") from error
    left = {name: part for name, part in secret.items() if name != "stringData"}
    return {"type": "Opaque", **left, **({"data": data} if data else {})}


def strict(kind: Kind, body: Object) -> list[str]:
    """What strict validation refuses, and others are warned of."""
    schema = schemas.SCHEMAS.get(kind.name)
    keys = schemas.unknown(schema, body.get("spec", {}), "spec") if schema is not None else []
    return [f'unknown field "{key}"' for key in keys]


def _of_host(host: Object) -> list[str]:
    spec = host["spec"]
    found = []
    bmc = spec.get("bmc", {})
    address = bmc.get("address", "")
    if address and not re.match(r"[a-z0-9+-]+://[^/]|[^:/]+(:\d+)?$|\[[0-9a-fA-F:]+\](:\d+)?$", address):
        found.append(f'failed to parse BMC address information: parse "{address}": invalid URI')
    device = spec.get("rootDeviceHints", {}).get("deviceName", "")
    if device and not re.fullmatch(r"/dev/(?!disk/)[^/]+|/dev/disk/by-path/.+", device):
        found.append(
            f'device name of root device hint must be "/dev/" or "/dev/disk/by-path/", not "{device}"'
            if device.startswith("/dev/disk/")
            else f'device name of root device hint must be of the form "/dev/...", not "{device}"'
        )
    if spec.get("bootMode") == "UEFISecureBoot" and address.startswith("ipmi:"):
        found.append("BMC driver ipmi does not support secure boot")
    return found


def _of_change(new: Object, old: Object) -> list[str]:
    found = []
    state = old.get("status", {}).get("provisioning", {}).get("state", "")
    before, after = old["spec"].get("bmc", {}).get("address", ""), new["spec"].get("bmc", {}).get("address", "")
    detached = old.get("status", {}).get("operationalStatus") == "detached"
    if before and before != after and state not in REGISTERING and not detached:
        found.append(
            "BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached"
        )
    mac = old["spec"].get("bootMACAddress", "")
    if mac and mac != new["spec"].get("bootMACAddress", ""):
        found.append("bootMACAddress can not be changed once it is set")
    outside = "externallyProvisioned"
    if new["spec"].get(outside) and not old["spec"].get(outside) and state and state != "available":
        found.append(f"externallyProvisioned can not be changed in the state {state}")
    return found
