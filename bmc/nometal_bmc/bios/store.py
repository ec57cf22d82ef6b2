# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of each machine's firmware: a file for each, which survives restarts."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from nometal_bmc.bios.attributes import ATTRIBUTES, DEFAULTS
from nometal_bmc.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["FIRST_VERSION", "LEDS", "Machine", "Store"]

LOG = logging.getLogger(__name__)
FIRST_VERSION = "1.0.0"
LEDS = ("Off", "Lit", "Blinking")


@dataclass
class Machine:
    """Attributes are those that differ from the defaults; those pending take effect when it boots."""

    attributes: dict[str, Any] = field(default_factory=dict)
    pending: dict[str, Any] = field(default_factory=dict)
    version: str = FIRST_VERSION
    led: str = LEDS[0]

    @property
    def present(self) -> dict[str, Any]:
        return {**DEFAULTS, **self.attributes}

    @property
    def coming(self) -> dict[str, Any]:
        """What there will be after the next boot."""
        return {**self.present, **self.pending}

    def boot(self) -> None:
        """What is pending takes effect."""
        self.attributes = {name: value for name, value in self.coming.items() if value != DEFAULTS[name]}
        self.pending = {}


class Store:
    """All machines, by the UUIDs of their VMs."""

    def __init__(self, directory: Callable[[], Path]) -> None:
        self._directory = directory
        self._lock = threading.Lock()

    def read(self, uuid: str) -> Machine:
        try:
            found = json.loads(self._file(uuid).read_text(encoding="utf-8"))
            return _sound(Machine(**{each.name: found[each.name] for each in fields(Machine)}))
        except FileNotFoundError:
            return Machine()
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOG.warning("The firmware settings of %s cannot be read, so they are the defaults: %r", uuid, error)
            return Machine()

    @contextmanager
    def change(self, uuid: str) -> Iterator[Machine]:
        """An exception leaves it as it was."""
        with self._lock:
            machine = self.read(uuid)
            before = asdict(machine)
            yield machine
            if asdict(machine) != before:
                self._write(uuid, machine)

    def _write(self, uuid: str, machine: Machine) -> None:
        file = self._file(uuid)
        file.parent.mkdir(mode=0o750, exist_ok=True)
        write_whole(file, json.dumps(asdict(machine), indent=2).encode())

    def _file(self, uuid: str) -> Path:
        return self._directory() / f"{uuid}.json"


def _sound(machine: Machine) -> Machine:
    """Without attributes of another release of this service."""
    for known in (machine.attributes, machine.pending):
        for name, value in list(known.items()):
            if name not in ATTRIBUTES or not ATTRIBUTES[name].takes(value):
                del known[name]
    if machine.led not in LEDS or not isinstance(machine.version, str):
        raise ValueError(f"{machine.led}, {machine.version}")
    return machine
