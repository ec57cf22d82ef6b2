"""What the API refuses, as the Status object that says so."""

from __future__ import annotations

from typing import Any

from support.stand_in.kubernetes.kinds import Kind


class ApiError(Exception):
    code = 500
    reason = "InternalError"

    def __init__(self, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        found |= {"message": str(self), "reason": self.reason, "code": self.code}
        return {**found, "details": self.details} if self.details else found


class BadRequest(ApiError):  # noqa: N818 - these are named as the API names them
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):  # noqa: N818
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):  # noqa: N818
    code, reason = 403, "Forbidden"


class NotFound(ApiError):  # noqa: N818
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):  # noqa: N818
    code, reason = 405, "MethodNotAllowed"


class Conflict(ApiError):  # noqa: N818
    """The object has changed meanwhile, or others own its fields."""

    code, reason = 409, "Conflict"


class Exists(ApiError):  # noqa: N818
    code, reason = 409, "AlreadyExists"


class Expired(ApiError):  # noqa: N818
    code, reason = 410, "Expired"


class UnsupportedMediaType(ApiError):  # noqa: N818
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):  # noqa: N818
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):  # noqa: N818
    code, reason = 429, "TooManyRequests"


class ServiceUnavailable(ApiError):  # noqa: N818
    code, reason = 503, "ServiceUnavailable"


def of(kind: Kind, name: str) -> dict[str, Any]:
    """The details that name an object."""
    found = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in found.items() if value}


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{kind.name} "{name}" not found', of(kind, name))


def invalid(kind: Kind, name: str, field: str, message: str) -> Invalid:
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": field}]
    group_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {**of(kind, name), "kind": kind.kind, "causes": causes}
    return Invalid(f'{group_kind} "{name}" is invalid: {field}: {message}', details)
