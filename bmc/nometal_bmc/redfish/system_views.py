# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A system as clients see it and change it: its boot, its power and its secure boot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import Refused, not_found
from nometal_bmc.bios.store import LEDS
from nometal_bmc.config.settings import POWER_RESTORE
from nometal_bmc.events.log import BOOT, POWER, SETTINGS
from nometal_bmc.machine import boot, firmware, power
from nometal_bmc.redfish import bios_views, boot_option_views
from nometal_bmc.redfish.boot_wishes import boot_wish
from nometal_bmc.redfish.service_views import CHASSIS_PATH
from nometal_bmc.redfish.wishes import PARAMETER, Kinds, becomes_event, checked, note, noted, one_of

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.bios.store import Store
    from nometal_bmc.broker.client import Machines
    from nometal_bmc.media.drives import Media

FIXED = (
    "Id",
    "Name",
    "UUID",
    "PowerState",
    "Status",
    "Manufacturer",
    "MemorySummary",
    "ProcessorSummary",
    "SystemType",
)
CHANGEABLE: Kinds = {"Boot": (dict,), "PowerRestorePolicy": (str,), "IndicatorLED": (str,)}
RESTARTS = ("ForceRestart", "PowerCycle", "GracefulRestart")
KIB_IN_GIB = 1024 * 1024


def show(domains: Machines, uuid: str) -> dict[str, Any]:
    """The resource."""
    root, live, paused, power_restore = domains.read_shown(uuid)
    present = root if live is None else live
    mode = firmware.mode(firmware.shown(root, live))
    path = f"/redfish/v1/Systems/{uuid}"
    parts = ["Processors", "SimpleStorage", "Storage", "EthernetInterfaces", "VirtualMedia", "LogServices"]
    if mode == "UEFI":
        parts.append("SecureBoot")
    return {
        "@odata.type": "#ComputerSystem.v1_14_0.ComputerSystem",
        "@odata.id": path,
        "Id": uuid,
        "UUID": uuid,
        "Name": root.findtext("name"),
        "SystemType": "Virtual",
        "Manufacturer": "nometal.ipi",
        "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        "PowerState": "Off" if live is None else "Paused" if paused else "On",
        "PowerRestorePolicy": power_restore,
        "Boot": {**_boot(root, mode), **boot_option_views.of_boot(root, uuid)},
        **_summaries(present),
        **{name: {"@odata.id": f"{path}/{name}"} for name in parts},
        "Links": {
            "Chassis": [{"@odata.id": CHASSIS_PATH}],
            "ManagedBy": [{"@odata.id": f"/redfish/v1/Managers/{uuid}"}],
        },
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{path}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(power.RESET_TYPES),
            }
        },
    }


def _summaries(present: Any) -> dict[str, Any]:
    """Of processors and memory."""
    status = {"State": "Enabled", "Health": "OK"}
    cores = int(present.findtext("vcpu", "1"))
    return {
        "ProcessorSummary": {"Count": 1, "CoreCount": cores, "LogicalProcessorCount": cores, "Status": status},
        "MemorySummary": {"TotalSystemMemoryGiB": _gibibytes(present.findtext("memory", "0")), "Status": status},
    }


def change(domains: Machines, media: Media, store: Store, uuid: str, body: dict[str, Any]) -> None:
    """PATCH: all of it or nothing."""
    wishes = checked(body, CHANGEABLE, read_only=FIXED)
    for name, allowed in {"PowerRestorePolicy": POWER_RESTORE, "IndicatorLED": LEDS}.items():
        if name in wishes:
            one_of(wishes[name], allowed, name)
    if "PowerRestorePolicy" in wishes:
        becomes_event(SETTINGS, f"Power restore policy changed: {wishes['PowerRestorePolicy']}")
    if "Boot" in wishes:
        _change_boot(domains, media, uuid, wishes["Boot"])
    if "PowerRestorePolicy" in wishes:
        note(PowerRestorePolicy=wishes["PowerRestorePolicy"])
        domains.set_power_restore(uuid, wishes["PowerRestorePolicy"])
    if "IndicatorLED" in wishes:
        bios_views.set_led(store, uuid, wishes["IndicatorLED"])


def _change_boot(domains: Machines, media: Media, uuid: str, found: dict[str, Any]) -> None:
    wish = boot_wish(found)
    becomes_event(BOOT, f"Boot settings changed: {noted()}")
    override = domains.check_boot(uuid, wish)
    if override["target"] == "UefiHttp":
        media.insert(uuid, override["http_uri"])
    domains.change_boot(uuid, wish)


def reset(domains: Machines, uuid: str, body: dict[str, Any]) -> None:
    """The action ComputerSystem.Reset."""
    if body.get("ResetType") is None:
        raise Refused(400, PARAMETER.missing, "ResetType is missing.", prop="ResetType")
    kind = checked(body, {"ResetType": (str,)}, words=PARAMETER)["ResetType"]
    one_of(kind, power.RESET_TYPES, "ResetType", PARAMETER)
    note(ResetType=kind)
    becomes_event(POWER, f"Reset {kind}")
    domains.reset(uuid, kind)


def show_secure_boot(domains: Machines, uuid: str) -> dict[str, Any]:
    """What is wanted of the next boot, as far as a client has set it, and what is enforced in the present one."""
    root, live = domains.read_both(uuid)
    shown = firmware.shown(root, live)
    _check_uefi(shown)
    wanted = firmware.is_secure(shown)
    present = wanted if live is None else firmware.booted_securely(root, live)
    return {
        "@odata.type": "#SecureBoot.v1_0_3.SecureBoot",
        "@odata.id": f"/redfish/v1/Systems/{uuid}/SecureBoot",
        "Id": "SecureBoot",
        "Name": "UEFI Secure Boot",
        "SecureBootEnable": wanted,
        "SecureBootCurrentBoot": "Enabled" if present else "Disabled",
        "SecureBootMode": "UserMode" if wanted else "SetupMode",
        "Actions": {},
    }


def change_secure_boot(domains: Machines, uuid: str, body: dict[str, Any]) -> None:
    fixed = ("SecureBootCurrentBoot", "SecureBootMode", "Id", "Name")
    wanted = checked(body, {"SecureBootEnable": (bool,)}, read_only=fixed)["SecureBootEnable"]
    note(SecureBootEnable=wanted)
    becomes_event(SETTINGS, f"Secure boot {'enabled' if wanted else 'disabled'} from the next start on")
    domains.set_secure_boot(uuid, wanted)


def _boot(root: etree._Element, mode: str) -> dict[str, Any]:
    override = boot.get(root)
    return {
        "BootSourceOverrideEnabled": override.enabled,
        "BootSourceOverrideEnabled@Redfish.AllowableValues": boot.ENABLED,
        "BootSourceOverrideTarget": override.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": boot.TARGETS[: None if mode == "UEFI" else -1],
        "BootSourceOverrideMode": mode,
        "BootSourceOverrideMode@Redfish.AllowableValues": firmware.MODES,
        "HttpBootUri": override.http_uri,
    }


def _check_uefi(root: etree._Element) -> None:
    if firmware.mode(root) != "UEFI":
        raise not_found(f"Secure boot of {root.findtext('name')}, which boots by BIOS,")


def _gibibytes(kib: str) -> float:
    size = round(int(kib) / KIB_IN_GIB, 3)
    return int(size) if size.is_integer() else size


def add_views(app: flask.Flask, domains: Machines, media: Media, store: Store) -> None:
    """Put ours in place of sushy-tools' views of a system."""

    def system(identity: str) -> flask.Response:
        if flask.request.method == "PATCH":
            change(domains, media, store, app.systems.uuid(identity), flask.request.json)  # type: ignore[attr-defined]
            return _done()
        return flask.jsonify({**show(domains, identity), **bios_views.of_system(store, identity)})

    def reset_action(identity: str) -> flask.Response:
        was_on = domains.active(identity)
        reset(domains, identity, flask.request.json)
        if not was_on or flask.request.json["ResetType"] in RESTARTS:
            bios_views.boot(store, identity, on=domains.active(identity))
        return _done()

    def secure_boot(identity: str) -> flask.Response:
        if flask.request.method == "PATCH":
            change_secure_boot(domains, identity, flask.request.json)
            return _done()
        return flask.jsonify(show_secure_boot(domains, identity))

    app.view_functions.update(system_resource=system, system_reset_action=reset_action, secure_boot=secure_boot)


def _done() -> flask.Response:
    return flask.Response(status=204)
