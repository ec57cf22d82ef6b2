# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a request is answered with, and refused with: a status and a Redfish message that names the wrong property."""

from __future__ import annotations

from typing import Any, NamedTuple

REGISTRY = "Base.1.18"


class Answer(NamedTuple):
    """A whole one."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Refused(Exception):  # noqa: N818 - reads as a sentence: raise Refused(400, ...)
    """A request that is not carried out. Nothing was changed."""

    def __init__(
        self,
        status: int,
        message_id: str,
        message: str,
        *,
        prop: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Tell the client why; `message_id` is of the registry Base, `prop` a path such as Boot/HttpBootUri."""
        super().__init__(message)
        self.status = status
        self.message_id = message_id
        self.message = message
        self.prop = prop
        self.headers = headers or {}

    @property
    def body(self) -> dict[str, Any]:
        return body(self.message_id, self.message, self.prop)


def body(message_id: str, message: str, prop: str | None = None) -> dict[str, Any]:
    """The error as Redfish has it."""
    code = f"{REGISTRY}.{message_id}"
    info: dict[str, Any] = {"@odata.type": "#Message.v1_0_5.Message", "MessageId": code, "Message": message}
    if prop:
        info["RelatedProperties"] = [f"#/{prop}"]
    return {"error": {"code": code, "message": message, "@Message.ExtendedInfo": [info]}}


def not_found(what: str) -> Refused:
    """There is no such thing, or not for this client."""
    return Refused(404, "ResourceMissingAtURI", f"{what} does not exist.")


def unavailable(why: str) -> Refused:
    """The host cannot serve this now; the client may ask again."""
    return Refused(503, "ServiceTemporarilyUnavailable", why, headers={"Retry-After": "3"})
