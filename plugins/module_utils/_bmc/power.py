# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power of a lab's VMs, read and changed through their BMCs, from nothing but the files of the lab."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials, info, layout
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import UMASK
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.client import Client

SOFTWARE = "/opt/nometal/bmc"
SYSTEMS = "/redfish/v1/Systems"
STATES = "broker/state/power.json"
"""Where the broker of a lab keeps which VMs are on."""
IPMI_CLIENT = "nometal_bmc.ipmi.client"
GONE = ("404:", "There is no such VM.")
"""As the BMC of a VM that is not there begins its answer, by Redfish and by IPMI."""
IPMI_SECONDS = 60
"""For each BMC: one that does not answer is asked several times."""


class Power(Word):
    ON = "On"
    OFF = "Off"
    PAUSED = "Paused"


class Reset(Word):
    """As Redfish calls them."""

    ON = "On"
    SHUT_DOWN = "GracefulShutdown"
    OFF = "ForceOff"


IPMI_STATUS = "status"
IPMI_RESETS = {Reset.ON: "on", Reset.SHUT_DOWN: "soft", Reset.OFF: "off"}
IPMI_POWER = {"on": Power.ON, "off": Power.OFF}


@dataclass(frozen=True)
class Said:
    """What the BMC of a VM says to a question or a wish."""

    power: str = ""
    trouble: str = ""

    @property
    def is_gone(self) -> bool:
        """Whether the BMC has no such VM."""
        return self.trouble.startswith(GONE)


class Bmcs:
    """By Redfish as the lab's operator; by IPMI with each VM's own account."""

    def __init__(self, home: str, lab: str, software: str = SOFTWARE) -> None:
        directory = layout.directory_of(home, lab)
        self._logins = credentials.file_of(home, lab)
        self._states = directory / STATES
        self._python = f"{software}/bin/python"
        config = info.read_config(directory / "config.json")
        try:
            self._uuids = {str(system["name"]): str(system["uuid"]) for system in config["systems"]}
            self._ipmi = {str(bmc["name"]): _ipmi_place(bmc) for bmc in config.get("ipmi", [])}
            self._client = self._redfish_client(config, credentials.ca_of(home, lab))
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise OperatorError(f"{directory}/config.json or {self._logins} has been damaged. {info.REMEDY}") from error

    @property
    def names(self) -> tuple[str, ...]:
        """Of the VMs that have a BMC."""
        return tuple(self._uuids)

    def awaited(self) -> list[str]:
        """VMs that were on before the host started, and that their BMCs have not switched on again yet."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            left = json.loads(self._states.read_text(encoding="utf-8"))["restoring"]
            return [name for name, uuid in self._uuids.items() if uuid in left]
        return []

    def power(self, names: Iterable[str]) -> dict[str, Said]:
        by_redfish, by_ipmi = self._parted(names)
        paths = [f"{SYSTEMS}/{self._uuids[name]}" for name in by_redfish]
        answers = self._client.get_all(paths) if self._client and paths else []
        said = [Said(str(answer.body.get("PowerState", "")), answer.trouble) for answer in answers]
        return {**dict(zip(by_redfish, said)), **self._ask_by_ipmi(IPMI_STATUS, by_ipmi)}

    def reset(self, kind: Reset, names: Iterable[str]) -> dict[str, str]:
        """Those that did not take it, and why."""
        by_redfish, by_ipmi = self._parted(names)
        paths = [f"{SYSTEMS}/{self._uuids[name]}/Actions/ComputerSystem.Reset" for name in by_redfish]
        answers = self._client.post_all(paths, {"ResetType": str(kind)}) if self._client and paths else []
        said = {name: answer.trouble for name, answer in zip(by_redfish, answers)}
        said.update((name, each.trouble) for name, each in self._ask_by_ipmi(IPMI_RESETS[kind], by_ipmi).items())
        return {name: trouble for name, trouble in said.items() if trouble}

    def _redfish_client(self, config: dict[str, Any], ca: Path) -> Client | None:
        return info.operator_client(config, ca, self._logins) if config["listen"] else None

    def _parted(self, names: Iterable[str]) -> tuple[list[str], list[str]]:
        known = [name for name in names if name in self._uuids]
        return [name for name in known if name not in self._ipmi], [name for name in known if name in self._ipmi]

    def _ask_by_ipmi(self, wish: str, names: Sequence[str]) -> dict[str, Said]:
        """By the BMC software's own client, as hosts need no ipmitool. Passwords are in no argument."""
        if not names:
            return {}
        logins = credentials.read(self._logins)
        bmcs = [
            {**self._ipmi[name], "username": logins[name].username, "password": logins[name].password} for name in names
        ]
        return dict(zip(names, map(_said_by_ipmi, self._run_ipmi_client(wish, bmcs))))

    def _run_ipmi_client(self, wish: str, bmcs: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
        command, limit = [self._python, "-m", IPMI_CLIENT, wish], IPMI_SECONDS * len(bmcs)
        try:
            done = subprocess.run(
                command,
                input=json.dumps(bmcs),
                check=True,
                capture_output=True,
                text=True,
                timeout=limit,
                umask=UMASK,
            )
            return list(json.loads(done.stdout))
        except subprocess.TimeoutExpired:
            return [{"trouble": f"no answer in {limit} s"}] * len(bmcs)
        except subprocess.CalledProcessError as error:
            said = (error.stderr.strip() or f"it ended with {error.returncode}").splitlines()[-1]
        except (OSError, ValueError) as error:
            said = str(error)
        raise OperatorError(f"{self._python} cannot ask the BMCs by IPMI: {said}. {info.REMEDY}")


def _ipmi_place(bmc: Mapping[str, Any]) -> dict[str, Any]:
    return {"address": bmc["addresses"][0], "port": bmc["port"]}


def _said_by_ipmi(told: Mapping[str, str]) -> Said:
    return Said(IPMI_POWER.get(told.get("power", ""), ""), told.get("trouble", ""))
