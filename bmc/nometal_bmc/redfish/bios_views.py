# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BIOS settings as clients see and change them, with the registry that describes them, and the indicator LED."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import Refused
from nometal_bmc.bios.attributes import ATTRIBUTES, DEFAULTS
from nometal_bmc.events.log import SETTINGS
from nometal_bmc.redfish.list_views import ROOT, collection
from nometal_bmc.redfish.wishes import PARAMETER, PROPERTY, becomes_event, checked

if TYPE_CHECKING:
    from nometal_bmc.bios.attributes import Attribute
    from nometal_bmc.bios.store import Store
    from nometal_bmc.redfish.systems import Systems

REGISTRY = "BiosAttributeRegistry.v1_0_0"
REGISTRY_FILE, REGISTRY_PATH = f"{ROOT}/Registries/{REGISTRY}", f"{ROOT}/Systems/Bios/BiosRegistry"
FIXED = ("Id", "Name", "AttributeRegistry")


def of_system(store: Store, uuid: str) -> dict[str, Any]:
    """What a system shows of it."""
    machine = store.read(uuid)
    return {
        "Bios": {"@odata.id": f"{ROOT}/Systems/{uuid}/BIOS"},
        "BiosVersion": machine.version,
        "IndicatorLED": machine.led,
    }


def set_led(store: Store, uuid: str, led: str) -> None:
    with store.change(uuid) as machine:
        machine.led = led


def boot(store: Store, uuid: str, *, on: bool) -> None:
    """A client has had it booted, if it is on: what was pending is in effect."""
    if on:
        with store.change(uuid) as machine:
            machine.boot()


def show(store: Store, uuid: str) -> dict[str, Any]:
    path = f"{ROOT}/Systems/{uuid}/BIOS"
    return {
        "@odata.type": "#Bios.v1_0_3.Bios",
        "@odata.id": path,
        "Id": "BIOS",
        "Name": "BIOS Settings",
        "AttributeRegistry": REGISTRY,
        "Attributes": store.read(uuid).present,
        "@Redfish.Settings": {
            "@odata.type": "#Settings.v1_2_0.Settings",
            "SettingsObject": {"@odata.id": f"{path}/Settings"},
            "SupportedApplyTimes": ["OnReset"],
        },
        "Actions": {"#Bios.ResetBios": {"target": f"{path}/Actions/Bios.ResetBios"}},
    }


def show_pending(store: Store, uuid: str) -> dict[str, Any]:
    """What the attributes will be after the next boot."""
    return {
        "@odata.type": "#Bios.v1_0_3.Bios",
        "@odata.id": f"{ROOT}/Systems/{uuid}/BIOS/Settings",
        "Id": "Settings",
        "Name": "Pending BIOS Settings",
        "AttributeRegistry": REGISTRY,
        "Attributes": store.read(uuid).coming,
    }


def change(store: Store, uuid: str, body: dict[str, Any]) -> None:
    """All of it or nothing, from the next boot on."""
    wanted = checked(body, {"Attributes": (dict,)}, read_only=FIXED)["Attributes"]
    if not wanted:
        raise Refused(400, PROPERTY.missing, "Attributes names none.", prop="Attributes")
    for name, value in wanted.items():
        _check(name, value)
    becomes_event(SETTINGS, f"BIOS from the next boot on: {_listed(wanted)}")
    with store.change(uuid) as machine:
        machine.pending = {**machine.pending, **wanted}


def reset(store: Store, uuid: str) -> None:
    becomes_event(SETTINGS, "BIOS from the next boot on: defaults")
    with store.change(uuid) as machine:
        machine.pending = dict(DEFAULTS)


def _check(name: str, value: object) -> None:
    if name not in ATTRIBUTES:
        text = f"Attributes/{name} is not known; what can be set is {', '.join(ATTRIBUTES)}."
        raise Refused(400, PROPERTY.unknown, text, prop=f"Attributes/{name}")
    if not ATTRIBUTES[name].takes(value):
        text = f"Attributes/{name} cannot be {value!r:.100}; it can be {ATTRIBUTES[name].range}."
        raise Refused(400, PROPERTY.not_in_list, text, prop=f"Attributes/{name}")


def _listed(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


def show_registry_file() -> dict[str, Any]:
    return {
        "@odata.type": "#MessageRegistryFile.v1_1_0.MessageRegistryFile",
        "@odata.id": REGISTRY_FILE,
        "Id": REGISTRY,
        "Name": "BIOS Attribute Registry File",
        "Registry": REGISTRY,
        "Languages": ["en"],
        "Location": [{"Language": "en", "Uri": REGISTRY_PATH}],
    }


def show_registry() -> dict[str, Any]:
    return {
        "@odata.type": "#AttributeRegistry.v1_2_0.AttributeRegistry",
        "@odata.id": REGISTRY_PATH,
        "Id": REGISTRY,
        "Name": "BIOS Attribute Registry",
        "Language": "en",
        "OwningEntity": "nometal.ipi",
        "RegistryVersion": "1.0.0",
        "RegistryEntries": {"Attributes": [_described(attribute) for attribute in ATTRIBUTES.values()]},
    }


def _described(attribute: Attribute) -> dict[str, Any]:
    described: dict[str, Any] = {
        "AttributeName": attribute.name,
        "DisplayName": attribute.display_name,
        "HelpText": attribute.help_text,
        "Type": attribute.type,
        "DefaultValue": attribute.default,
        "ReadOnly": False,
        "Immutable": False,
        "ResetRequired": True,
    }
    if attribute.values:
        described["Value"] = [{"ValueName": name, "ValueDisplayName": name} for name in attribute.values]
    elif attribute.type == "Integer":
        described |= {"LowerBound": attribute.lowest, "UpperBound": attribute.highest}
    elif attribute.type == "String":
        described |= {"MinLength": attribute.lowest, "MaxLength": attribute.highest}
    return described


def add_views(app: flask.Flask, store: Store, systems: Systems) -> None:
    """Put ours in place of sushy-tools', whose attributes need a VM of its own driver."""

    def bios(identity: str) -> flask.Response:
        return flask.jsonify(show(store, systems.uuid(identity)))

    def settings(identity: str) -> flask.Response:
        uuid = systems.uuid(identity)
        if flask.request.method == "PATCH":
            change(store, uuid, flask.request.json)
            return flask.Response(status=204)
        return flask.jsonify(show_pending(store, uuid))

    def reset_action(identity: str) -> flask.Response:
        uuid = systems.uuid(identity)
        checked(flask.request.json, {}, words=PARAMETER)
        reset(store, uuid)
        return flask.Response(status=204)

    app.view_functions.update(
        bios=bios,
        bios_settings=settings,
        system_reset_bios=reset_action,
        registry_file_collection=lambda: flask.jsonify(
            collection("MessageRegistryFile", f"{ROOT}/Registries", "Registries", [REGISTRY])
        ),
        bios_attribute_registry_file=lambda: flask.jsonify(show_registry_file()),
        bios_registry=lambda: flask.jsonify(show_registry()),
    )
