# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of a lab's faults: a JSON file beside the configuration, which may change while the service runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from nometal_bmc.config.sections import ConfigError, Section, whole

__all__ = ["FILE", "Fault", "Faults", "Rule", "load"]

FILE = "faults.json"
ALWAYS = 100
NUMBERS = ("rate", "after", "times", "status", "milliseconds", "seconds")


class Fault(str, Enum):
    """What goes wrong."""

    LATENCY = "latency"
    STATUS = "status"
    CONNECTION_REFUSED = "connection-refused"
    CONNECTION_RESET = "connection-reset"
    CERTIFICATE_CHANGED = "certificate-changed"
    CREDENTIALS_EXPIRED = "credentials-expired"
    REBOOT = "reboot"
    POWER_STATE_WRONG = "power-state-wrong"
    POWER_IGNORED = "power-ignored"
    BOOT_IGNORED = "boot-ignored"
    MEDIA_FAILED = "media-failed"
    MEDIA_STALLED = "media-stalled"

    def __str__(self) -> str:
        return str(self.value)

    @property
    def of_connections(self) -> bool:
        """Whether it is met before a request says which node it is about."""
        return self in (Fault.CONNECTION_REFUSED, Fault.CERTIFICATE_CHANGED)


@dataclass(frozen=True)
class Rule:
    """One kind of fault, what is to meet it, and how often."""

    fault: Fault
    nodes: frozenset[str] = frozenset()
    """Names of VMs; none: all."""
    methods: frozenset[str] = frozenset()
    path: str = "*"
    rate: int = ALWAYS
    after: int = 0
    times: int | None = None
    status: int = 503
    milliseconds: int = 0
    seconds: int = 0

    def __str__(self) -> str:
        details = {
            Fault.LATENCY: f" of {self.milliseconds} ms",
            Fault.STATUS: f" {self.status}",
            Fault.MEDIA_STALLED: f" for {self.seconds} s",
            Fault.REBOOT: f" of {self.seconds} s",
        }
        return f"{self.fault}{details.get(self.fault, '')}"


@dataclass(frozen=True)
class Faults:
    """All rules of a lab, in the order in which they are met."""

    seed: int = 0
    rules: tuple[Rule, ...] = ()


NONE = Faults()


def load(path: Path) -> Faults:
    """What the file says; without a file there are no faults."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return NONE
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    try:
        return whole(value, "the file", _faults)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _faults(file: Section) -> Faults:
    return Faults(seed=file.take("seed", int), rules=file.each("rules", _rule))


def _rule(entry: Section) -> Rule:
    name = entry.take("fault", str)
    try:
        fault = Fault(name)
    except ValueError as error:
        raise ConfigError(f"{entry.where}: fault must be one of {', '.join(map(str, Fault))} (got {name})") from error
    given: dict[str, Any] = {key: frozenset(entry.texts(key)) for key in ("nodes", "methods") if key in entry.left}
    given.update({key: entry.take(key, int) for key in NUMBERS if key in entry.left})
    if "path" in entry.left:
        given["path"] = entry.take("path", str)
    return Rule(fault, **given)
