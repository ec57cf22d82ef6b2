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
}


def boot_wish(found: dict[str, Any]) -> BootWish:
    wishes = checked(found, BOOT, where="Boot/", read_only=("BootOrder", "BootOptions"))
    choices = {"Enabled": boot.ENABLED, "Target": boot.TARGETS, "Mode": firmware.MODES}
    chosen = {name: wishes.get(f"BootSourceOverride{name}") for name in choices}
    for name, value in chosen.items():
        if value is not None:
            one_of(value, choices[name], f"Boot/BootSourceOverride{name}")
    uri = wishes.get("HttpBootUri")
    if uri is not None and not re.fullmatch(boot.HTTP_URI, uri):
        text = "Boot/HttpBootUri has to be a URL with http or https."
        raise Refused(400, "PropertyValueFormatError", text, prop="Boot/HttpBootUri")
    note(**chosen, HttpBootUri=place(urlsplit(uri)) if uri else uri)
    forgets = "HttpBootUri" in wishes and uri is None
    return BootWish(chosen["Mode"], chosen["Target"], chosen["Enabled"], uri, forgets)
