# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection to libvirt that comes back by itself after libvirtd was restarted."""

from __future__ import annotations

import threading
import time
import uuid as uuids
from contextlib import suppress
from typing import Callable, TypeVar

import libvirt

from nometal_bmc.answers import unavailable

T = TypeVar("T")

WAIT_SECONDS = 5.0
"""How long a restart of libvirtd may take before requests are refused."""

KEEPALIVE_SECONDS, KEEPALIVE_COUNT = 5, 6
"""By which a libvirtd that has stopped differs from one that takes its time."""

libvirt.registerErrorHandler(lambda *_: None, None)  # what fails is raised; libvirt would print it as well


class Connection:
    """One connection with the VMs that were looked up on it."""

    def __init__(self, uri: Callable[[], str]) -> None:
        self._uri = uri
        self._lock = threading.Lock()
        self._connection: libvirt.virConnect | None = None
        self._opened_uri = ""
        self._domains: dict[str, libvirt.virDomain] = {}
        self._gave_up = -WAIT_SECONDS

    def ask(self, uuid: str, question: Callable[[libvirt.virDomain], T]) -> T:
        """Ask a VM something; once more if the connection was lost meanwhile, or the VM was defined anew."""
        known = self._domains.get(uuid)
        if known is None:
            return question(self.look_up(uuid))
        try:
            return question(known)
        except libvirt.libvirtError as error:
            self._domains.pop(uuid, None)
            if _alive(known.connect()) and error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
        return question(self.look_up(uuid))

    def look_up(self, uuid: str) -> libvirt.virDomain:
        """Find a VM."""
        domain = self._domains[uuid] = self.run(lambda connection: connection.lookupByUUID(uuids.UUID(uuid).bytes))
        return domain

    def run(self, question: Callable[[libvirt.virConnect], T]) -> T:
        """Ask libvirt something, on a new connection if the old one turns out to be dead."""
        connection = self.get()
        try:
            return question(connection)
        except libvirt.libvirtError:
            if _alive(connection):
                raise
        return question(self.get())

    def get(self) -> libvirt.virConnect:
        """The connection, opened if need be."""
        connection = self._usable()
        if connection is None:
            with self._lock:
                connection = self._usable() or self._renewed()
        return connection

    def _usable(self) -> libvirt.virConnect | None:
        connection = self._connection
        return connection if connection is not None and self._opened_uri == self._uri() and _alive(connection) else None

    def _renewed(self) -> libvirt.virConnect:
        self._domains = {}
        self._opened_uri = self._uri()
        self._connection = self._opened()
        return self._connection

    def _opened(self) -> libvirt.virConnect:
        """Open it; those who queue behind one who has waited in vain do not wait again."""
        deadline = max(time.monotonic(), self._gave_up) + WAIT_SECONDS
        patient = time.monotonic() - self._gave_up > WAIT_SECONDS
        while True:
            try:
                return _kept_alive(libvirt.open(self._opened_uri))
            except libvirt.libvirtError as error:
                if not patient or time.monotonic() > deadline:
                    self._gave_up = time.monotonic() if patient else self._gave_up
                    raise unavailable(f"libvirt does not answer: {error}") from error
            time.sleep(0.1)


def _kept_alive(connection: libvirt.virConnect) -> libvirt.virConnect:
    with suppress(libvirt.libvirtError):  # not every driver can, and not without an event loop
        connection.setKeepAlive(KEEPALIVE_SECONDS, KEEPALIVE_COUNT)
    return connection


def _alive(connection: libvirt.virConnect) -> bool:
    try:
        return bool(connection.isAlive())
    except libvirt.libvirtError:
        return False
