# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client wants of the boot, judged as a whole."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from nometal_bmc.answers import Refused
from nometal_bmc.machine import boot, firmware
from nometal_bmc.machine.boot import BootWish
from nometal_bmc.media.source import place
from nometal_bmc.redfish.wishes import Kinds, checked, note, one_of

TEXT_OR_NULL = (str, type(None))
BOOT: Kinds = {
    "BootSourceOverrideEnabled": (str,),
    "BootSourceOverrideTarget": (str,),
    "BootSourceOverrideMode": (str,),
    "HttpBootUri": TEXT_OR_NULL,
    "BootOrder": (list,),
}


def boot_wish(found: dict[str, Any]) -> BootWish:
    wishes = checked(found, BOOT, where="Boot/", read_only=("BootOptions",))
    choices = {"Enabled": boot.ENABLED, "Target": boot.TARGETS, "Mode": firmware.MODES}
    chosen = {name: wishes.get(f"BootSourceOverride{name}") for name in choices}
    for name, value in chosen.items():
        if value is not None:
            one_of(value, choices[name], f"Boot/BootSourceOverride{name}")
    uri = wishes.get("HttpBootUri")
    if uri is not None and not re.fullmatch(boot.HTTP_URI, uri):
        text = "Boot/HttpBootUri has to be a URL with http or https."
        raise Refused(400, "PropertyValueFormatError", text, prop="Boot/HttpBootUri")
    order = wishes.get("BootOrder")
    if order is not None:
        _check_order(order)
    note(**chosen, HttpBootUri=place(urlsplit(uri)) if uri else uri, BootOrder=",".join(order) if order else None)
    forgets = "HttpBootUri" in wishes and uri is None
    return BootWish(chosen["Mode"], chosen["Target"], chosen["Enabled"], uri, forgets, order)


def _check_order(order: list[Any]) -> None:
    """What each machine has to boot from is checked where it is known."""
    if not all(isinstance(name, str) for name in order):
        text = "Boot/BootOrder has to be a list of strings."
        raise Refused(400, "PropertyValueTypeError", text, prop="Boot/BootOrder")
    if not 0 < len(order) <= boot.MOST_OPTIONS or not all(re.fullmatch(boot.OPTION, name) for name in order):
        text = "Boot/BootOrder has to be a list of one or more of the system's BootOptions."
        raise Refused(400, "PropertyValueNotInList", text, prop="Boot/BootOrder")
