"""Protocol buffers, where there is no other way: typed clients send objects so, and one document has no other form."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from support.stand_in.kubernetes.errors import BadRequest, UnsupportedMediaType

MAGIC = b"k8s\0"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Schema = dict[int, tuple[str, Any]]
"""By field number: name and form: `str`, `int`, `bytes`, a schema; in a list if repeated, in a tuple if it is a map."""

OWNER: Schema = {1: ("kind", str), 3: ("name", str), 4: ("uid", str), 5: ("apiVersion", str)}
METADATA: Schema = {
    1: ("name", str),
    2: ("generateName", str),
    3: ("namespace", str),
    5: ("uid", str),
    6: ("resourceVersion", str),
    11: ("labels", (str,)),
    12: ("annotations", (str,)),
    13: ("ownerReferences", [OWNER]),
    14: ("finalizers", [str]),
}
CONDITION: Schema = {1: ("type", str), 2: ("reason", str), 3: ("message", str), 6: ("status", str)}
ATTRIBUTES: Schema = dict(
    enumerate(
        ((name, str) for name in ("namespace", "verb", "group", "version", "resource", "subresource", "name")), start=1
    )
)
OBJECTS: dict[str, Schema] = {
    "CertificateSigningRequest": {
        1: ("metadata", METADATA),
        3: ("status", {1: ("conditions", [CONDITION]), 2: ("certificate", bytes)}),
    },
    "SelfSubjectAccessReview": {2: ("spec", {1: ("resourceAttributes", ATTRIBUTES)})},
    "SelfSubjectReview": {},
    "Namespace": {1: ("metadata", METADATA)},
    "ConfigMap": {1: ("metadata", METADATA), 2: ("data", (str,))},
    "Secret": {1: ("metadata", METADATA), 2: ("data", (bytes,)), 3: ("type", str), 4: ("stringData", (str,))},
}
UNKNOWN: Schema = {1: ("typeMeta", {1: ("apiVersion", str), 2: ("kind", str)}), 2: ("raw", None)}


def read(body: bytes) -> dict[str, Any]:
    """The object in an envelope as Kubernetes sends it."""
    if not body.startswith(MAGIC):
        raise BadRequest("the body is no protobuf of Kubernetes")
    envelope = decode(UNKNOWN, body[len(MAGIC) :])
    kind = envelope["typeMeta"]["kind"]
    if kind not in OBJECTS:
        raise UnsupportedMediaType(f"the protobuf of a {kind} is not known here: send JSON")
    return {**envelope["typeMeta"], **decode(OBJECTS[kind], envelope.get("raw", b""))}


def decode(schema: Schema, data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        if number not in schema:
            continue
        name, form = schema[number]
        if isinstance(form, list):
            found.setdefault(name, []).append(_value(form[0], value))
        elif isinstance(form, tuple):
            entry = decode({1: ("key", str), 2: ("value", form[0])}, value)
            found.setdefault(name, {})[entry.get("key", "")] = entry.get("value", "")
        elif value not in (b"", 0):
            found[name] = _value(form, value)
    return found


def _value(form: Any, value: Any) -> Any:
    if form is str:
        return value.decode()
    if form is bytes:
        return base64.b64encode(value).decode()
    return decode(form, value) if isinstance(form, dict) else value


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        form = tag & 7
        if form == VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if form == BYTES:
            length, place = _varint(data, place)
        elif form in (FIXED32, FIXED64):
            length = 4 if form == FIXED32 else 8
        else:
            raise BadRequest(f"invalid protobuf: wire type {form}")
        yield tag >> 3, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if not byte & 0x80:
            return value, place
    raise BadRequest("invalid protobuf: it ends in a number")


def field(number: int, content: str | bytes) -> bytes:
    """A field that is a text, or a message."""
    data = content.encode() if isinstance(content, str) else content
    return _number(number << 3 | BYTES) + _number(len(data)) + data


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
