# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices that go on listening to router advertisements although the host forwards IPv6, now and after a reboot."""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, files
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._observe.routes import advertising_devices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

TOPIC = "accept_ra"
LISTENS_ALTHOUGH_FORWARDING = "2"
SWITCHES = Path("/proc/sys/net/ipv6/conf")
HEAD = "# Made by nometal.ipi and removed with the last lab.\n"
LINE = "net/ipv6/conf/{}/accept_ra = 2\n"
FILE_MODE = 0o644


@dataclass(frozen=True)
class Listening:
    """By device the value that holds now; and the devices that the file names for the next boot, if it is in order."""

    now: Mapping[str, str] = field(default_factory=dict)
    next_boot: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class Setting:
    device: str
    value: str

    def __str__(self) -> str:
        return f"{self.device}={self.value}"


def plan(current: Listening, desired: Listening) -> Sequence[Step]:
    differing = {name: value for name, value in desired.now.items() if current.now[name] != value}
    return [
        *([] if current.next_boot == desired.next_boot else [Step("write" if desired.next_boot else "remove", "file")]),
        *(Step("set", Setting(name, value)) for name, value in differing.items()),
    ]


class ListeningPort:
    def __init__(self, file: Path, memory: HostMemory) -> None:
        self._file = file
        self._memory = memory
        self._noted: dict[str, str] = memory.recall().get(TOPIC, {})

    @cached_property
    def wanted(self) -> Listening:
        """Once noted, a device is looked after also while it has no route of that kind."""
        there = {*advertising_devices(), *self._noted} & set(_values())
        deaf = [name for name in sorted(there) if name in self._noted or _values()[name] != LISTENS_ALTHOUGH_FORWARDING]
        return Listening(dict.fromkeys(deaf, LISTENS_ALTHOUGH_FORWARDING), tuple(deaf))

    @cached_property
    def former(self) -> Listening:
        return Listening({name: value for name, value in sorted(self._noted.items()) if name in _values()})

    def read(self) -> Listening:
        devices = {*self.wanted.now, *self.former.now}
        return Listening({name: _values()[name] for name in devices}, self._in_file())

    def apply(self, step: Step) -> None:
        if step.verb == "write":
            self._note()
            directories.note([self._file.parent], self._memory)
            files.write_whole(self._file, _text(self.wanted.next_boot or ()), FILE_MODE)
        elif step.verb == "remove":
            files.remove(self._file)
        else:
            if step.target.value == LISTENS_ALTHOUGH_FORWARDING:
                self._note()
            (SWITCHES / step.target.device / "accept_ra").write_text(step.target.value, encoding="ascii")

    def _note(self) -> None:
        self._memory.note({TOPIC: {name: _values()[name] for name in self.wanted.now if name not in self._noted}})

    def _in_file(self) -> tuple[str, ...] | None:
        with suppress(FileNotFoundError):
            text = self._file.read_text(encoding="utf-8")
            devices = tuple(re.findall(r"^net/ipv6/conf/(.+)/accept_ra = 2$", text, re.MULTILINE))
            in_order = text == _text(devices) and files.has_access(self._file, FILE_MODE)
            return devices if in_order else None
        return ()


def _text(devices: Sequence[str]) -> str:
    return HEAD + "".join(LINE.format(name) for name in devices)


def _values() -> dict[str, str]:
    found = {}
    for switch in SWITCHES.glob("*/accept_ra"):
        with suppress(OSError):  # the device has gone
            found[switch.parent.name] = switch.read_text(encoding="ascii").strip()
    return found


class HostListening(Resource[Listening, ListeningPort]):
    def desired(self) -> Listening:
        self.port = ListeningPort(Path(self.params["file"]), HostMemory(Path(self.params["memory"])))
        return self.port.wanted if self.is_wanted else self.port.former

    def open(self) -> AbstractContextManager[ListeningPort]:
        return nullcontext(self.port)

    def plan(self, current: Listening, desired: Listening) -> Sequence[Step]:
        return plan(current, desired)
