# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client wants of the boot, judged as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nometal_bmc.answers import Refused
from nometal_bmc.media.source import place
from nometal_bmc.redfish.wishes import Kinds, checked, note, one_of
from nometal_bmc.vms import boot, firmware
from nometal_bmc.vms.boot import Override

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.vms.domains import Domains

TEXT_OR_NULL = (str, type(None))
BOOT: Kinds = {
    "BootSourceOverrideEnabled": (str,),
    "BootSourceOverrideTarget": (str,),
    "BootSourceOverrideMode": (str,),
    "HttpBootUri": TEXT_OR_NULL,
}
HTTP_URI = re.compile(r"https?://[!-~]{1,2000}")


@dataclass(frozen=True)
class BootWish:
    """What a client wants of the boot; None: as it is."""

    mode: str | None
    target: str | None
    enabled: str | None
    http_uri: str | None
    forgets_uri: bool

    def write(self, domains: Domains, root: etree._Element) -> Override:
        """Write it into a definition, or refuse it."""
        if self.mode:
            firmware.set_mode(domains, root, self.mode)
        override = self._override(boot.get(root))
        if override.target == "UefiHttp":
            _check_http(root, override)
        boot.put(root, override)
        return override

    def _override(self, before: Override) -> Override:
        target = self.target or before.target
        uri = self.http_uri or (None if self.forgets_uri else before.http_uri)
        enabled = self.enabled or before.enabled
        if self.target and not self.enabled and before.enabled == "Disabled":
            enabled = "Once"  # it said what, but not for how long
        if target == "None" and enabled != "Disabled" and self.target is None:
            text = f"Boot/BootSourceOverrideEnabled {self.enabled} needs a Boot/BootSourceOverrideTarget."
            raise Refused(400, "PropertyMissing", text, prop="Boot/BootSourceOverrideTarget")
        if target == "None" or enabled == "Disabled":
            return Override(http_uri=uri)
        return Override(target, enabled, uri)


def boot_wish(found: dict[str, Any]) -> BootWish:
    wishes = checked(found, BOOT, where="Boot/")
    choices = {"Enabled": boot.ENABLED, "Target": boot.TARGETS, "Mode": firmware.MODES}
    chosen = {name: wishes.get(f"BootSourceOverride{name}") for name in choices}
    for name, value in chosen.items():
        if value is not None:
            one_of(value, choices[name], f"Boot/BootSourceOverride{name}")
    uri = wishes.get("HttpBootUri")
    if uri is not None and not HTTP_URI.fullmatch(uri):
        text = "Boot/HttpBootUri has to be a URL with http or https."
        raise Refused(400, "PropertyValueFormatError", text, prop="Boot/HttpBootUri")
    note(**chosen, HttpBootUri=place(urlsplit(uri)) if uri else uri)
    forgets = "HttpBootUri" in wishes and uri is None
    return BootWish(chosen["Mode"], chosen["Target"], chosen["Enabled"], uri, forgets)


def _check_http(root: etree._Element, override: Override) -> None:
    if firmware.mode(root) != "UEFI":
        text = "Boot/BootSourceOverrideTarget UefiHttp needs the boot mode UEFI."
        raise Refused(400, "PropertyValueNotInList", text, prop="Boot/BootSourceOverrideTarget")
    if not override.http_uri:
        text = "Boot/BootSourceOverrideTarget UefiHttp needs Boot/HttpBootUri."
        raise Refused(400, "PropertyMissing", text, prop="Boot/HttpBootUri")
