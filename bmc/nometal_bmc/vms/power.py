# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching VMs on and off, and what belongs to that: fresh firmware variables, the end of an override for one boot."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Callable

import libvirt

from nometal_bmc.answers import Refused
from nometal_bmc.machine.firmware import state
from nometal_bmc.vms import boot, firmware
from nometal_bmc.vms.domains import is_paused

if TYPE_CHECKING:
    from nometal_bmc.vms.domains import Domains


def power_on(domains: Domains, uuid: str, *, patiently: bool = False) -> None:
    """Start it, anew if it was saved; let it go on if it is paused. Nothing happens if it runs."""
    is_on = domains.domain(uuid).isActive()
    turn = nullcontext() if is_on else domains.starts.turn(uuid, patiently=patiently)
    with turn, domains.lock(uuid):
        _switch_on(domains, uuid)


def _switch_on(domains: Domains, uuid: str) -> None:
    domain = domains.domain(uuid)
    if domain.isActive():
        if is_paused(domain):
            _running(domain, domain.resume)
        return
    # What was saved has the devices and the boot order from before.
    anew = libvirt.VIR_DOMAIN_START_FORCE_BOOT if domain.hasManagedSaveImage() else 0
    with domains.starting(uuid) as root:
        _start(domain, firmware.start_flags(root) | anew)
    domains.power_states.started(uuid)
    domains.power_states.save()
    domains.note(uuid, nvram=state(root))
    boot.booted(domains, uuid)


def power_off(domains: Domains, uuid: str) -> None:
    """Pull the plug; nothing happens if it is off. Calls that wait for a QEMU that has stopped end by this."""
    domains.power_states.cancel_restoring(uuid)
    domains.starts.cancel(uuid)
    domain = domains.domain(uuid)
    if domain.isActive():
        with domains.ending(uuid):
            _running(domain, domain.destroy)
    domains.power_states.switched_off(uuid)
    domains.power_states.save()


def power_cycle(domains: Domains, uuid: str) -> None:
    """Off and on: what waits for that (firmware, changes of the definition) takes effect."""
    power_off(domains, uuid)
    with domains.starts.turn(uuid), domains.lock(uuid):
        power_off(domains, uuid)  # somebody may have switched it on meanwhile
        _switch_on(domains, uuid)


def shut_down(domains: Domains, uuid: str) -> None:
    """Press the power button of a running guest; what it makes of that is its own affair. One that is off stays off."""
    domain = domains.domain(uuid)
    if domain.isActive():
        _refuse_paused(domain)
        domains.power_states.asked_to_end(uuid)
        _running(domain, domain.shutdown)
    else:
        domains.starts.cancel(uuid)
        domains.power_states.cancel_restoring(uuid)
        domains.power_states.save()


def restart(domains: Domains, uuid: str) -> None:
    """Let a running guest reboot; one that does not is reset after its time, by the watch."""
    domain = domains.domain(uuid)
    if domain.isActive():
        _refuse_paused(domain)
        domains.restarts.expect(uuid, domains.restart_timeout)
        try:
            _running(domain, domain.reboot)
        except BaseException:
            domains.restarts.forget(uuid)
            raise


def interrupt(domains: Domains, uuid: str) -> None:
    """Send a non-maskable interrupt."""
    domain = domains.domain(uuid)
    if not domain.isActive():
        raise Refused(409, "GeneralError", f"VM {domain.name()} is switched off: nothing can be interrupted.")
    _refuse_paused(domain)
    _running(domain, domain.injectNMI)


def _refuse_paused(domain: libvirt.virDomain) -> None:
    if is_paused(domain):
        text = f"VM {domain.name()} is paused: its guest hears nothing. On lets it go on, and ForceOff switches it off."
        raise Refused(409, "GeneralError", text)


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
