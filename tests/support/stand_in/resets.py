"""Which VMs have been reset: a host that hangs as the scenario wants is woken by that."""

from __future__ import annotations

import threading
from typing import Any

import libvirt


class Resets(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="resets", daemon=True)
        libvirt.virEventRegisterDefaultImpl()
        self._connection = libvirt.open("qemu:///system")
        self._names: set[str] = set()
        self._connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_REBOOT, self._note, None)

    def run(self) -> None:
        while True:
            libvirt.virEventRunDefaultImpl()

    def of(self, vm: str) -> bool:
        """Whether it has been since it was last asked for."""
        there = vm in self._names
        self._names.discard(vm)
        return there

    def _note(self, _connection: Any, domain: Any, _opaque: Any) -> None:
        self._names.add(domain.name())
