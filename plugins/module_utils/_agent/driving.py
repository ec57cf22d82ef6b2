# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's way through its BMC: from its medium, over its disk, and off again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Union

from .ipmi import Ipmi
from .redfish import CERTIFICATE, NOTHING_HEARD, BmcFailed, NotNow, Redfish

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .channel import Channel
    from .reports import Reports

    Bmc = Union[Redfish, Ipmi]

THEN = {
    "medium": "looks around",
    "seen": "writes its disk",
    "written": "has written its disk",
    "disk": "has come up from its disk",
}
PAUSE = 2.0


class Driver:
    """What goes wrong with one node is reported, and does not stop the others."""

    def __init__(self, node: Mapping[str, Any], task: Mapping[str, Any], channel: Channel, reports: Reports) -> None:
        self._node = node
        self._task = task
        self._channel = channel
        self._reports = reports

    def play(self, *, only_ask: bool = False) -> None:
        try:
            bmc = self._bmc()
            if bmc and self._meet(bmc) and not only_ask:
                self._drive(bmc)
        finally:
            self._reports.give_up(self._node["uuid"])

    def _drive(self, bmc: Bmc) -> None:
        try:
            if self._from_medium(bmc) and self._from_disk(bmc):
                self._state("is done")
        finally:
            self._leave(bmc)

    def _bmc(self) -> Bmc | None:
        declared = self._node["bmc"]
        if declared["protocol"] == "ipmi":
            return Ipmi(declared)
        try:
            return Redfish(declared, self._task["urls"][0] + self._task["path"])
        except (OSError, ValueError) as error:  # no certificate of a CA, for instance
            self._step("bmc", False, str(error), 0.0, CERTIFICATE)
            return None

    def _meet(self, bmc: Bmc) -> bool:
        self._state("asks the BMC")
        met = self._do("bmc", bmc.answers) and self._do("login", bmc.lets_in)
        if met and self._node["bmc"]["try_strangers"]:
            self._do("wrong password", bmc.refuses_strangers)
        for path in self._node["bmc"]["hidden"] if met else ():
            self._do("confinement", lambda path=path: bmc.hides(path))  # type: ignore[misc]
        return met

    def _from_medium(self, bmc: Bmc) -> bool:
        self._state("inserts the medium")
        began = (
            self._do("power off", bmc.switch_off)
            and self._do("insert", bmc.insert)
            and self._do("boot from medium", bmc.boot_from_medium)
            and self._do("power on", bmc.switch_on)
        )
        if not began:
            return False
        self._state("boots from its medium")
        if not self._comes("medium", "booted from medium") or not self._comes("seen", "looked around"):
            return False
        self._reports.wait_for_lookers()
        written = self._comes("written", "written")
        return bool(written) and not written.get("trouble")

    def _from_disk(self, bmc: Bmc) -> bool:
        self._state("is set to its disk")
        began = (
            self._do("power off again", bmc.switch_off)
            and self._do("eject", bmc.eject)
            and self._do("boot from disk", bmc.boot_from_disk)
            and self._do("power on again", bmc.switch_on)
        )
        if not began:
            return False
        self._state("boots from its disk")
        return bool(self._comes("disk", "booted from disk", instead="medium again"))

    def _leave(self, bmc: Bmc) -> None:
        """As it was found: off, with an empty drive, and with no wishes for its next start."""
        for step in (bmc.switch_off, bmc.eject, bmc.forget_overrides):
            if not _reached(step):  # nor will it do the rest: the host clears up
                return

    def _comes(self, place: str, step: str, instead: str = "") -> dict[str, Any]:
        """What it has reported there; empty if it has not."""
        started = time.monotonic()
        came, report = self._reports.wait(self._node["uuid"], (place, instead), self._task["seconds"])
        self._channel.tell("report", self._node["name"], place=came or place, value=report)
        if came != place:
            nothing = self._reports.why_lost(self._node["uuid"]) or f"nothing heard in {self._task['seconds']:.0f} s"
            trouble = "it started from its medium again" if came else nothing
            self._step(step, False, trouble, started, "" if came else NOTHING_HEARD)
            return {}
        self._state(THEN[place])
        self._step(step, True, "", started)
        return report or {}

    def _do(self, step: str, action: Callable[[], str]) -> bool:
        started = time.monotonic()
        try:
            return self._step(step, True, _insisted(action), started)
        except BmcFailed as error:
            return self._step(step, False, str(error), started, error.failure)

    def _step(self, step: str, ok: bool, said: str, started: float, failure: str = "") -> bool:
        seconds = round(time.monotonic() - started, 2) if started else 0.0
        more = {"failure": failure} if failure else {}
        self._channel.tell("step", self._node["name"], step=step, ok=ok, said=said, seconds=seconds, **more)
        return ok

    def _state(self, state: str) -> None:
        self._channel.tell("state", self._node["name"], state=state)


def _reached(step: Callable[[], str]) -> bool:
    try:
        step()
    except BmcFailed as error:
        return not isinstance(error, NotNow)
    return True


def _insisted(action: Callable[[], str]) -> str:
    try:
        return action()
    except NotNow:
        time.sleep(PAUSE)
        return action()
