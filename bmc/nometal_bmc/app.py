# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The application: sushy-tools' own, with our drivers, our views where its are not enough, and our answers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Callable

import flask
from sushy_tools.emulator import main as sushy
from sushy_tools.error import FishyError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from nometal_bmc import answers
from nometal_bmc.answers import Refused
from nometal_bmc.bios.store import Store
from nometal_bmc.broker.client import Machines
from nometal_bmc.front import guard, heads
from nometal_bmc.media.drives import Media
from nometal_bmc.redfish import (
    bios_views,
    boot_option_views,
    list_views,
    log_views,
    manager_views,
    media_views,
    network_views,
    nic_views,
    processor_views,
    service_views,
    storage_views,
    system_views,
    update_views,
)
from nometal_bmc.redfish.power_events import PowerEvents
from nometal_bmc.redfish.systems import Systems

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nometal_bmc.config.reading import CurrentConfig

LOG = logging.getLogger(__name__)
LONGEST_PATH = 200

READ_ONLY = ("chassis_resource", "volumes_collection")
NOT_OFFERED = (
    "static",
    "CertificateService.certificate_service_resource",
    "CertificateService.certificate_service_locations",
    "CertificateService.certificate_service_replace_certificate",
    "simple_task",
    "thermal_resource",
    "message_registry_file",
    "message_registry",
)
MESSAGE_IDS = {404: "ResourceMissingAtURI", 405: "OperationNotAllowed", 500: "InternalError"}


class Application(sushy.Application):
    """sushy-tools' application, whose drivers are set and not made by its configuration."""

    systems: Any = None
    vmedia: Any = None
    managers = storage = drives = volumes = None

    def make_default_options_response(self) -> flask.Response:
        """What can be done here is in a header: there is nothing to say in a body."""
        response = super().make_default_options_response()
        response.status_code = 204
        del response.content_type
        return response


def make_app(current: CurrentConfig) -> flask.Flask:
    """Make the lab's service. sushy-tools has one application per process, and so do we."""
    app = sushy.app
    app.__class__ = Application
    app.json.sort_keys = False
    app.url_map.merge_slashes = False  # or such a path is answered with a page for browsers
    domains = Machines(current)
    _set_drivers(app, domains)
    store = Store(lambda: current.config.state / "machines")
    service_views.add_views(app, current, app.systems)
    _set_views(app, domains, Media(current, domains), store)
    network_views.add_views(app, current, app.systems)
    for error in (Exception, FishyError, Refused):
        app.register_error_handler(error, _answer)
    guard.protect(app, current)
    log = app.extensions["nometal_bmc"].log
    log_views.add_views(app, log)
    update_views.add_views(app, store, app.systems, log)
    if current.config.listen:  # IPMI BMCs have an event log of commands
        PowerEvents(domains, log).start()
    return app


def _set_drivers(app: Application, domains: Machines) -> None:
    app.systems = Systems(domains)


def _set_views(app: Application, domains: Machines, media: Media, store: Store) -> None:
    app.vmedia = media
    system_views.add_views(app, domains, media, store)
    bios_views.add_views(app, store, app.systems)
    boot_option_views.add_views(app, domains)
    manager_views.add_views(app, domains)
    processor_views.add_views(app, domains)
    media_views.add_views(app, media)
    list_views.add_views(app, app.systems)
    nic_views.add_views(app, domains)
    storage_views.add_views(app, domains, app.systems)
    app.view_functions.update(dict.fromkeys(NOT_OFFERED, _refuse))
    app.view_functions.update({endpoint: _only_read(app.view_functions[endpoint]) for endpoint in READ_ONLY})


def _refuse(**_: str) -> flask.Response:
    raise answers.not_found(flask.request.path)


def _only_read(view: Callable[..., Any]) -> Callable[..., Any]:
    def reads(**arguments: str) -> Any:
        if flask.request.method not in heads.READING:
            raise _not_allowed(heads.READING)
        return view(**arguments)

    reads.methods = (*heads.READING, "OPTIONS")  # type: ignore[attr-defined]
    return reads


def _answer(error: Exception) -> flask.Response:
    """Every error as a Redfish message, without what only the log should tell."""
    if isinstance(error, Refused):
        refused = error
    elif isinstance(error, HTTPException):
        refused = _http_error(error)
    else:
        refused = _fault(error)
    response = flask.jsonify(refused.body)
    response.status_code = refused.status
    response.headers.update(refused.headers)
    return response


def _fault(error: Exception) -> Refused:
    if isinstance(error, FishyError):
        return Refused(error.code, MESSAGE_IDS.get(error.code, "GeneralError"), str(error))
    LOG.error("%s %s", flask.request.method, flask.request.path, exc_info=error)
    return Refused(500, "InternalError", "The service has failed at this; its log tells more.")


def _http_error(error: HTTPException) -> Refused:
    """What Flask refuses, in our words: its own are for people with browsers."""
    if isinstance(error, MethodNotAllowed):
        return _not_allowed(error.valid_methods or ())
    if isinstance(error, NotFound):
        return answers.not_found(flask.request.path[:LONGEST_PATH])
    return Refused(error.code or 500, "GeneralError", f"The request cannot be served: {error.name}.")


def _not_allowed(methods: Iterable[str]) -> Refused:
    allowed = ", ".join(sorted(methods))
    text = f"{flask.request.method} is not possible here; what is possible is {allowed}."
    return Refused(405, "OperationNotAllowed", text, headers={"Allow": allowed})
