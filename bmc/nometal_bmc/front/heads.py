# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What HTTP and Redfish demand of the head of each request, and of each answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["READING", "check", "describe", "refusal_of"]

ODATA_VERSION = "4.0"
SCHEMAS = "http://redfish.dmtf.org/schemas/v1"
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+;=-]+)(:[0-9]{0,5})?")
REQUEST_LINE = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+ [!-~]+ HTTP/1\.[01]\r?\n")
TYPE = re.compile(rb'\{\s*"@odata\.type":\s*"#([\w.]+)\.\w+"')  # which our resources begin with
ALLOWED = "nometal_bmc.allowed"
READING = ("GET", "HEAD")
OK = 200


def check(environ: dict[str, Any]) -> None:
    """Refuse a request whose answer could be for another host, or in another protocol than the client believes."""
    host = environ.get("HTTP_HOST")
    if host is None and environ["SERVER_PROTOCOL"] != "HTTP/1.0":
        raise Refused(400, "HeaderMissing", "Host is missing in the request's head.")
    if host is not None and not HOST.fullmatch(host):
        raise Refused(400, "HeaderInvalid", "Host must be one name or address, and perhaps a port.")
    version = environ.get("HTTP_ODATA_VERSION", ODATA_VERSION)
    if version != ODATA_VERSION:
        raise Refused(412, "HeaderInvalid", f"OData-Version must be {ODATA_VERSION}.")


def refusal_of(data: bytes, why: str) -> Refused:
    """What is answered to a beginning that the parser cannot take: an unknown method, or no request at all."""
    if REQUEST_LINE.match(data):
        return Refused(501, "GeneralError", "The service does not know this method.")
    return Refused(400, "GeneralError", why)


def describe(response: flask.Response) -> flask.Response:
    """Tell what else can be done at this place, and where the schema of its content is."""
    request = flask.request
    if request.method not in READING or response.status_code != OK or request.url_rule is None:
        return response
    response.headers.setdefault("Allow", ", ".join(_allowed(request.url_rule.rule)))
    if response.mimetype == "application/json":
        kind = TYPE.match(response.get_data())
        if kind:
            response.headers.add("Link", f"<{SCHEMAS}/{kind[1].decode()}.json>; rel=describedby")
    return response


def _allowed(rule: str) -> Iterable[str]:
    """A path may have several rules, each with its methods."""
    app = flask.current_app
    if ALLOWED not in app.extensions:
        methods: dict[str, set[str]] = {}
        for known in app.url_map.iter_rules():
            own = getattr(app.view_functions[known.endpoint], "methods", None) or known.methods or ()
            methods.setdefault(_shape(known.rule), set()).update(own)
        app.extensions[ALLOWED] = {shape: sorted(found) for shape, found in methods.items()}
    found: list[str] = app.extensions[ALLOWED][_shape(rule)]
    return found


def _shape(rule: str) -> str:
    """Whatever the rules call what they have in common."""
    return re.sub("<[^>]*>", "<>", rule)
