# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the boot override, and when one for a single boot is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nometal_bmc.answers import Refused
from nometal_bmc.machine.boot import BootWish, Override, get, mark_for_once, orders, put, put_order
from nometal_bmc.machine.firmware import mode, note_wish
from nometal_bmc.vms.firmware import set_mode
from nometal_bmc.vms.qemu import set_boot_indexes

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.vms.domains import Domains


def check(domains: Domains, uuid: str, wish: BootWish) -> Override:
    """What would come of a wish, or why it is refused. Nothing is changed."""
    return _write(domains, domains.read(uuid), wish)


def change(domains: Domains, uuid: str, wish: BootWish) -> None:
    """All of it or nothing."""
    with domains.lock(uuid):
        with domains.edit(uuid) as root:
            _write(domains, root, wish)
            note_wish(root, domains.read_live(uuid), mode, wish.mode)
        follow(domains, uuid, domains.read(uuid))


def _write(domains: Domains, root: etree._Element, wish: BootWish) -> Override:
    if wish.mode:
        set_mode(domains, root, wish.mode)
    if wish.order:
        put_order(root, wish.order)
    override = wish.override(get(root))
    if override.target == "UefiHttp":
        _check_http(root, override)
    put(root, override)
    return override


def _check_http(root: etree._Element, override: Override) -> None:
    if mode(root) != "UEFI":
        text = "Boot/BootSourceOverrideTarget UefiHttp needs the boot mode UEFI."
        raise Refused(400, "PropertyValueNotInList", text, prop="Boot/BootSourceOverrideTarget")
    if not override.http_uri:
        text = "Boot/BootSourceOverrideTarget UefiHttp needs Boot/HttpBootUri."
        raise Refused(400, "PropertyMissing", text, prop="Boot/HttpBootUri")


def follow(domains: Domains, uuid: str, root: etree._Element) -> None:
    """A running guest that is reset, or reboots by itself, boots by the order of this definition as well."""
    live = domains.read_live(uuid)
    if live is not None:
        set_boot_indexes(domains.domain(uuid), orders(root, live))


def booted(domains: Domains, uuid: str) -> None:
    """The VM was switched on: the boot has used up an override for one boot if the VM was started with it."""
    with domains.lock(uuid):
        live = domains.read_live(uuid)
        if live is not None:
            domains.empty_lost_cd(uuid, live)
            use_up(domains, uuid, mark_for_once(live))


def pending(domains: Domains, uuid: str) -> str | None:
    """The mark of an override for the next boot, if there is one."""
    return mark_for_once(domains.read(uuid))


def use_up(domains: Domains, uuid: str, mark: str | None) -> None:
    """A boot has begun with this override for one boot: it is over, unless there is another one by now."""
    if mark is None:
        return
    with domains.lock(uuid):
        root = domains.read(uuid)
        if mark == mark_for_once(root):
            ended = Override(http_uri=get(root).http_uri)
            put(root, ended)
            try:
                # First: a client that reads that the override is over may reset the guest at once.
                follow(domains, uuid, root)
            finally:
                with domains.edit(uuid) as definition:
                    put(definition, ended)
