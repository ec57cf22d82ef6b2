# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The broker's socket: who may ask, what is understood, and a thread for each client."""

from __future__ import annotations

import logging
import os
import pwd
import socket
import struct
import threading
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import libvirt

from nometal_bmc.answers import Refused, unavailable
from nometal_bmc.broker.handlers import Begun, Handlers
from nometal_bmc.broker.operations import OPERATIONS, START_SECONDS, Operation, Unfit
from nometal_bmc.broker.places import Places
from nometal_bmc.broker.protocol import MOST_REQUEST_BYTES, receive, send
from nometal_bmc.vms.domains import Domains
from nometal_bmc.vms.restoration import Restoration
from nometal_bmc.vms.watch import Watch

if TYPE_CHECKING:
    from pathlib import Path

    from nometal_bmc.config.reading import CurrentBrokerConfig

__all__ = ["Server"]

LOG = logging.getLogger(__name__)
BACKLOG = 256
PEER = struct.Struct("3i")
SOCKET_MODE = 0o666  # who comes so far is a matter of the directory, and who is let in one of _may_ask


class Server:
    """Serves from the beginning; requests wait until there is something to answer them."""

    def __init__(self, current: CurrentBrokerConfig) -> None:
        self._current = current
        self._listener = _bound(current.config.socket)
        self._domains = Domains(current)
        self._watch = Watch(self._domains)
        self._places = Places(self._domains.silent)
        self._ending_places = Places(self._domains.silent)  # those of calls that hang are not for those that end them
        self._handlers = Handlers(current, self._domains)

    def serve(self) -> None:
        """For ever."""
        self._watch.start()
        Restoration(self._domains).start()
        LOG.info("Serving at %s", self._current.config.socket)
        while True:
            try:
                connection, _address = self._listener.accept()
            except OSError as error:  # too many of them
                LOG.warning("a client cannot be let in: %s", error)
                time.sleep(0.1)
                continue
            threading.Thread(target=self._converse, args=[connection], daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        begun = Begun()
        with connection, suppress(ConnectionError):
            try:
                if self._may_ask(connection):
                    while found := receive(connection, MOST_REQUEST_BYTES):
                        self._answer(connection, found[0], begun)
            finally:
                begun.drop()

    def _may_ask(self, connection: socket.socket) -> bool:
        _pid, uid, _gid = PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
        allowed = {0, os.geteuid()}
        with suppress(KeyError):  # there is none of this name
            allowed |= {pwd.getpwnam(name).pw_uid for name in [self._current.config.user] if name}
        if uid not in allowed:
            LOG.warning("Refused a client with the user id %d", uid)
        return uid in allowed

    def _answer(self, connection: socket.socket, request: dict[str, Any], begun: Begun) -> None:
        descriptor = None
        try:
            name, arguments = self._understood(request)
            if name in self._handlers.of_client:
                descriptor = self._handlers.of_client[name](begun, **arguments)
                answer: dict[str, Any] = {"result": None}
            else:
                answer = {"result": self._carried_out(name, arguments)}
        except Refused as refused:
            answer = {"refused": _described(refused)}
        except Exception as error:
            answer = {"refused": _described(_fault(request, error))}
        try:
            send(connection, answer, descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _understood(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        name = request.get("operation")
        operation = OPERATIONS.get(name) if isinstance(name, str) else None
        if operation is None:
            raise Unfit("there is no such operation")
        return str(name), operation.checked(request.get("arguments"))

    def _carried_out(self, name: str, arguments: dict[str, Any]) -> Any:
        operation, uuid = OPERATIONS[name], arguments.get("uuid", "")
        with self._place(operation, uuid) if uuid in self._domains.names else nullcontext():
            return self._handlers.by_name[name](**arguments)

    def _place(self, operation: Operation, uuid: str) -> AbstractContextManager[None]:
        long = operation.seconds >= START_SECONDS
        if operation.asks_qemu:
            return self._places.take(uuid, long=long)
        return self._ending_places.take(uuid, long=True) if long else nullcontext()


def _fault(request: dict[str, Any], error: Exception) -> Refused:
    name = str(request.get("operation"))[:40]
    if isinstance(error, Unfit):
        LOG.warning("Refused %r: %s", name, error)
        return Refused(400, "GeneralError", f"The broker refuses this: {error}.")
    if isinstance(error, libvirt.libvirtError) and error.get_error_domain() == libvirt.VIR_FROM_RPC:
        return unavailable(f"libvirt went away: {error}")
    if isinstance(error, libvirt.libvirtError):
        LOG.error("%s: libvirt: %s", name, error)
        return Refused(500, "InternalError", f"libvirt: {error}")
    LOG.error("%s", name, exc_info=error)
    return Refused(500, "InternalError", "The service has failed at this; its log tells more.")


def _described(refused: Refused) -> dict[str, Any]:
    return {
        "status": refused.status,
        "message_id": refused.message_id,
        "message": refused.message,
        "prop": refused.prop,
        "headers": refused.headers,
    }


def _bound(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)  # of one that was killed
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(SOCKET_MODE)
    listener.listen(BACKLOG)
    return listener
