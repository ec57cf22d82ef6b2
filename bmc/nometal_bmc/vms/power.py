# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching VMs on and off, and what belongs to that: fresh firmware variables, the end of an override for one boot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import libvirt

from nometal_bmc.answers import Refused
from nometal_bmc.machine import notes
from nometal_bmc.machine.firmware import state
from nometal_bmc.vms import boot, firmware

if TYPE_CHECKING:
    from nometal_bmc.vms.domains import Domains


def power_on(domains: Domains, uuid: str) -> None:
    """Start it; nothing happens if it runs."""
    with domains.lock(uuid):
        domain = domains.domain(uuid)
        if domain.isActive():
            return
        root = domains.read(uuid)
        with domains.starts:
            _start(domain, firmware.start_flags(root))
        with domains.edit(uuid) as started:
            notes.write(started, nvram=state(root))
        boot.booted(domains, uuid)


def power_off(domains: Domains, uuid: str) -> None:
    """Pull the plug; nothing happens if it is off. Calls that wait for a QEMU that has stopped end by this."""
    domain = domains.domain(uuid)
    if domain.isActive():
        _running(domain, domain.destroy)


def power_cycle(domains: Domains, uuid: str) -> None:
    """Off and on: what waits for that (firmware, changes of the definition) takes effect."""
    power_off(domains, uuid)
    with domains.lock(uuid):
        power_off(domains, uuid)  # somebody may have switched it on meanwhile
        power_on(domains, uuid)


def shut_down(domains: Domains, uuid: str) -> None:
    """Press the power button of a running guest; what it makes of that is its own affair."""
    domain = domains.domain(uuid)
    if domain.isActive():
        _running(domain, domain.shutdown)


def restart(domains: Domains, uuid: str) -> None:
    """Let a running guest reboot."""
    domain = domains.domain(uuid)
    if domain.isActive():
        _running(domain, domain.reboot)


def interrupt(domains: Domains, uuid: str) -> None:
    """Send a non-maskable interrupt."""
    domain = domains.domain(uuid)
    if not domain.isActive():
        raise Refused(409, "GeneralError", f"VM {domain.name()} is switched off: nothing can be interrupted.")
    _running(domain, domain.injectNMI)


def _start(domain: libvirt.virDomain, flags: int) -> None:
    try:
        domain.createWithFlags(flags)
    except libvirt.libvirtError as error:
        if not domain.isActive():  # else someone else was faster
            raise Refused(500, "InternalError", f"VM {domain.name()} cannot be started: {error}") from error


def _running(domain: libvirt.virDomain, action: Callable[[], object]) -> None:
    """Do something to a running guest; it may just have gone off by itself."""
    try:
        action()
    except libvirt.libvirtError:
        if domain.isActive():
            raise
