"""What Ironic does with a host: it boots its ramdisk, and holds the power to what is wanted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Callable

from support.stand_in.bmc import Bmc, BmcFailed, has_drive
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.metal3_host import POWER, REBOOT, Metal3Host
from support.stand_in.controllers.objects import Object

STEPS, STEADY_STEPS, SHUTDOWN_STEPS = 1, 5, 3


@dataclass
class Memory:
    """Of one host."""

    due: float = 0
    seen: str = ""
    ramdisk: str = ""
    """The state in which it was booted for."""
    shutdown: float | None = None
    """Since when it is being asked to switch itself off."""


class Failed(Exception):  # noqa: N818 - reads as a sentence
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def attempt(kind: str, deed: Callable[[], Object | None], prefix: str = "") -> Object:
    """Whatever the BMC has against it, it fails with an error of this kind."""
    try:
        return deed() or {}
    except BmcFailed as error:
        raise Failed(kind, f"{prefix}{error}") from error


class Ironic:
    def __init__(self, cluster: Cluster, host: Metal3Host, bmc: Bmc, memory: Memory) -> None:
        self._cluster = cluster
        self._host = host
        self.bmc = bmc
        self.memory = memory

    def enforce_power(self) -> float:
        """`online` is what counts; a reboot is asked for by annotations, one with a key keeps the host off."""
        try:
            on = self.bmc.power() == "On"
        except BmcFailed:  # Ironic would go on with what it has last seen
            return STEADY_STEPS
        reboots = [key for key in self._host.annotations if key.partition("/")[0] == REBOOT]
        if self._host.is_free or not on:
            self._host.change_annotations({key: None for key in reboots if key == REBOOT or self._host.is_free})
        wanted = bool(self._host.spec.get("online")) and not (
            reboots and not self._host.is_free and (on or _keyed(reboots))
        )
        if self._host.status.get("poweredOn") != on:
            self._host.update(poweredOn=on)
        if on == wanted:
            self.memory.shutdown = None
            self._host.succeed()
            return STEADY_STEPS
        if wanted:
            attempt(POWER, lambda: self.bmc.switch("On"), "PowerOn operation failed: ")
            self._host.tell("PowerOn", "Host powered on")
        elif not self._is_shut_down(hard=_hard(self._host, reboots)):
            return STEPS
        self._host.update(poweredOn=wanted)
        self._host.succeed()
        return 0

    def _is_shut_down(self, *, hard: bool) -> bool:
        """Softly at first, which its system may not heed."""
        now = self._cluster.clock()
        if hard or (
            self.memory.shutdown is not None and now - self.memory.shutdown >= SHUTDOWN_STEPS * self._cluster.step()
        ):
            self.memory.shutdown = None
            attempt(POWER, lambda: self.bmc.switch("Off"), "PowerOff operation failed: ")
            return True
        if self.memory.shutdown is None:
            self.memory.shutdown = now
            attempt(POWER, self.bmc.shut_down, "PowerOff operation failed: ")
        return False

    def boot_ramdisk(self, kind: str) -> None:
        def boot() -> None:
            self.bmc.switch("Off")
            if has_drive(self._host.spec):
                self.bmc.insert(self._cluster.machinery.medium(self._host.name))
            self.bmc.boot("Cd" if has_drive(self._host.spec) else "Pxe", "Once")
            self.bmc.switch("On")

        attempt(kind, boot)
        self._host.update(poweredOn=True)
        self.memory.ramdisk = self._host.state

    def end_ramdisk(self, kind: str) -> None:
        def end() -> None:
            self.bmc.switch("Off")
            if has_drive(self._host.spec):
                self.bmc.eject()

        attempt(kind, end)
        self.memory.ramdisk = ""


def _keyed(reboots: list[str]) -> list[str]:
    return [key for key in reboots if key != REBOOT]


def _hard(host: Metal3Host, reboots: list[str]) -> bool:
    return any(_mode(host.annotations.get(key, "")) == "hard" for key in reboots)


def _mode(told: str) -> str:
    try:
        return str(json.loads(told or "{}").get("mode", ""))
    except ValueError:
        return ""
