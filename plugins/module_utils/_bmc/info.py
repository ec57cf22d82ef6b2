# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a running service says, from nothing but the files of its lab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials, faults, layout
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.client import SECONDS, Answer, Client
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import OPERATOR, Endpoint
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import to_dict


def information(home: str, lab: str, seconds: float = SECONDS) -> dict[str, Any]:
    """Seconds: of one request."""
    directory = layout.directory_of(home, lab)
    logins = credentials.file_of(home, lab)
    config = read_config(directory / "config.json")
    try:
        nodes = _information(config, credentials.ca_of(home, lab), logins, seconds)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise OperatorError(f"{directory}/config.json or {logins} has been damaged. {REMEDY}") from error
    return {"nodes": nodes, "faults": to_dict(faults.of_lab(directory))}


def _information(config: dict[str, Any], ca: Path, logins: Path, seconds: float) -> list[dict[str, Any]]:
    systems = config["systems"]
    by_ipmi = {bmc["uuid"]: Endpoint(bmc["addresses"][0], bmc["port"]) for bmc in config.get("ipmi", [])}
    by_redfish = [system["uuid"] for system in systems if system["uuid"] not in by_ipmi]
    said = _ask(config, ca, logins, by_redfish, seconds) if by_redfish else {}
    return [
        {
            "name": system["name"],
            "uuid": system["uuid"],
            "address": _address(config, system["uuid"], by_ipmi.get(system["uuid"])),
            "credentials": {"file": str(logins), "key": system["name"]},
            **said.get(system["uuid"], NOTHING),
        }
        for system in systems
    ]


REMEDY = "Run playbooks/bmc.yml."
NOTHING = {"power": None, "power_restore": None, "boot": None, "media": None, "trouble": "", "failure": ""}


def read_config(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise OperatorError(f"Lab {path.parent.name} has no BMCs on this host. {REMEDY}") from error
    except (OSError, ValueError) as error:
        raise OperatorError(f"{path} cannot be read: {error}. {REMEDY}") from error


def _address(config: dict[str, Any], uuid: str, ipmi: Endpoint | None) -> str:
    if ipmi:
        return f"ipmi://{ipmi}"
    return f"{'https' if config['tls'] else 'http'}://{Endpoint(**config['listen'][0])}/redfish/v1/Systems/{uuid}"


def _ask(config: dict[str, Any], ca: Path, logins: Path, uuids: list[str], seconds: float) -> dict[str, dict[str, Any]]:
    client = operator_client(config, ca, logins, seconds)
    paths = [f"/redfish/v1/Systems/{uuid}" for uuid in uuids]
    answers = client.get_all([*paths, *(f"{path}/VirtualMedia/Cd" for path in paths)])
    return {
        uuid: _told(system, media) for uuid, system, media in zip(uuids, answers[: len(uuids)], answers[len(uuids) :])
    }


def operator_client(config: dict[str, Any], ca: Path, logins: Path, seconds: float = SECONDS) -> Client:
    """By Redfish."""
    login = credentials.read(logins)[OPERATOR]
    try:
        return Client(Endpoint(**config["listen"][0]), ca if config["tls"] else None, login, seconds)
    except OSError as error:
        raise OperatorError(f"{ca} cannot be used: {error}. {REMEDY}") from error


def _told(system: Answer, media: Answer) -> dict[str, Any]:
    boot = system.body.get("Boot", {})
    failed = system if system.trouble else media
    if failed.trouble:
        return {**NOTHING, "trouble": failed.trouble, "failure": failed.failure}
    return {
        "power": system.body.get("PowerState"),
        "power_restore": system.body.get("PowerRestorePolicy"),
        "boot": {
            "target": boot.get("BootSourceOverrideTarget"),
            "enabled": boot.get("BootSourceOverrideEnabled"),
            "mode": boot.get("BootSourceOverrideMode"),
        },
        "media": media.body.get("Image") or None,
        "trouble": "",
        "failure": "",
    }
