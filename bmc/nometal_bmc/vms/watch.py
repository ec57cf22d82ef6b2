# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots that no client of ours has asked for: a guest that reboots by itself, a VM that someone else has started."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Callable

import libvirt

from nometal_bmc.answers import Refused
from nometal_bmc.vms import boot, power
from nometal_bmc.vms.happenings import of_lifecycle

if TYPE_CHECKING:
    from nometal_bmc.vms.domains import Domains

LOG = logging.getLogger(__name__)
LOOK_SECONDS = 0.5  # how soon a restart of libvirtd is noticed
AGAIN_SECONDS = 5.0
HANDLERS = 16
SETTLED_SECONDS = 2.0
"""A BIOS that is reset resets the machine once or twice more: this long after the last of them, the boot has begun."""


class Watch:
    """Ends overrides for one boot when the boot begins."""

    def __init__(self, domains: Domains) -> None:
        """To be made before any connection: libvirt tells events only on those that are made after."""
        libvirt.virEventRegisterDefaultImpl()
        self._domains = domains
        self._connection: libvirt.virConnect | None = None
        self._subscriptions: list[tuple[libvirt.virConnect, int]] = []
        self._events: queue.SimpleQueue[tuple[Callable[[str], None], str]] = queue.SimpleQueue()
        self._handlers = ThreadPoolExecutor(HANDLERS, "watch")
        self._waiting: defaultdict[str, deque[Callable[[str], None]]] = defaultdict(deque)
        self._waiting_lock = threading.Lock()
        self._resets: dict[str, tuple[float, str]] = {}  # the time of the last one, and the override at the first one

    def start(self) -> None:
        for target in (self._run_loop, self._run):
            threading.Thread(target=target, name=f"watch-{target.__name__}", daemon=True).start()

    @staticmethod
    def _run_loop() -> None:
        while True:
            libvirt.virEventRunDefaultImpl()

    def _run(self) -> None:
        while True:
            self._look()

    def _look(self) -> None:
        try:
            self._subscribe()
            with suppress(queue.Empty):
                self._handle(*self._events.get(timeout=LOOK_SECONDS))
            self._end_resets()
            self._end_restarts()
            self._domains.power_states.settle()
        except (Refused, libvirt.libvirtError) as error:
            LOG.warning("watching the VMs: %s", error)
            time.sleep(AGAIN_SECONDS)

    def _subscribe(self) -> None:
        """Once for each connection; what happened before counts as well."""
        connection = self._domains.connection()
        if connection is self._connection:
            return
        self._unsubscribe()
        self._connection, self._subscriptions = connection, []
        watched = {
            libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE: self._note_lifecycle,
            libvirt.VIR_DOMAIN_EVENT_ID_REBOOT: self._note_reset,
        }
        for kind, note in watched.items():
            number = connection.domainEventRegisterAny(None, kind, note, None)
            self._subscriptions.append((connection, number))
        for uuid in self._domains.names:
            self._events.put((self._found, uuid))

    def _unsubscribe(self) -> None:
        """End what was begun on a connection that is dead: else it and its socket would stay."""
        for connection, number in self._subscriptions:
            with suppress(libvirt.libvirtError):
                connection.domainEventDeregisterAny(number)

    def _note_lifecycle(
        self, _connection: Any, domain: libvirt.virDomain, event: int, detail: int, _opaque: Any
    ) -> None:
        what = of_lifecycle(event, detail)
        if what and domain.UUIDString() in self._domains.names:
            self._domains.happenings.add(domain.UUIDString(), what)
            self._note_power(domain.UUIDString(), event)
        if event in (libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_STOPPED):
            self._domains.restarts.forget(domain.UUIDString())
        if event == libvirt.VIR_DOMAIN_EVENT_STARTED:
            self._events.put((self._started, domain.UUIDString()))

    def _note_power(self, uuid: str, event: int) -> None:
        if event == libvirt.VIR_DOMAIN_EVENT_STARTED:
            self._domains.power_states.started(uuid)
        elif event == libvirt.VIR_DOMAIN_EVENT_STOPPED:
            self._domains.power_states.ended(uuid)

    def _note_reset(self, _connection: Any, domain: libvirt.virDomain, *_: Any) -> None:
        self._domains.restarts.forget(domain.UUIDString())
        if domain.UUIDString() in self._domains.names:
            self._domains.happenings.add(domain.UUIDString(), "reset")
        self._events.put((self._reset, domain.UUIDString()))

    def _handle(self, what: Callable[[str], None], uuid: str) -> None:
        """In another thread, after what waits for the same VM: a VM that does not answer holds up no other."""
        if uuid not in self._domains.names:
            return
        with self._waiting_lock:
            self._waiting[uuid].append(what)
            if len(self._waiting[uuid]) == 1:
                self._handlers.submit(self._carry_out, uuid)

    def _carry_out(self, uuid: str) -> None:
        waiting = self._waiting[uuid]
        while True:
            try:
                waiting[0](uuid)
            except Refused as refused:  # it may be gone by now
                LOG.info("watching %s: %s", uuid, refused)
            except Exception as error:
                LOG.warning("watching %s: %s", uuid, error)
            with self._waiting_lock:
                waiting.popleft()
                if not waiting:
                    return

    def _found(self, uuid: str) -> None:
        """What it is now; events tell what it becomes, also while it is asked for."""
        before = None
        while (is_on := self._domains.active(uuid)) != before:
            self._note_power(uuid, libvirt.VIR_DOMAIN_EVENT_STARTED if is_on else libvirt.VIR_DOMAIN_EVENT_STOPPED)
            before = is_on
        self._started(uuid)

    def _started(self, uuid: str) -> None:
        boot.booted(self._domains, uuid)

    def _reset(self, uuid: str) -> None:
        known = self._resets.get(uuid)
        mark = known[1] if known else boot.pending(self._domains, uuid)
        if mark:
            self._resets[uuid] = (time.monotonic(), mark)

    def _end_resets(self) -> None:
        for uuid, (when, mark) in list(self._resets.items()):
            if time.monotonic() - when > SETTLED_SECONDS:
                del self._resets[uuid]
                self._handle(partial(self._use_up, mark), uuid)

    def _end_restarts(self) -> None:
        for uuid in self._domains.restarts.take_due():
            LOG.info("%s has not restarted when it was asked to, and is reset", self._domains.names.get(uuid, uuid))
            self._handle(partial(power.power_cycle, self._domains), uuid)

    def _use_up(self, mark: str, uuid: str) -> None:
        boot.use_up(self._domains, uuid, mark)
