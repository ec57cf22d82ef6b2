"""What the process of an installed cluster keeps on disk, so that it comes back when the host has been switched off."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

STATES = Path("/var/lib/libvirt/stand-in")
UNITS = Path("/etc/systemd/system")
WANTED = UNITS / "multi-user.target.wants"
UNIT = """\
[Unit]
Description=The stand-in cluster {name}
After=libvirtd.service network.target

[Service]
ExecStart={python} -I {program} {command} {name} {file}
"""


class State:
    def __init__(self, name: str) -> None:
        """By the cluster's infrastructure name."""
        self._name = name
        self._directory = STATES / name
        self.told = self._directory / "told.json"
        self._store = self._directory / "store.json"

    @property
    def exists(self) -> bool:
        return self.told.exists()

    def begin(self, told: dict[str, Any], command: str) -> None:
        """What is told is secret."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(self.told, told)
        if Path("/proc/1/comm").read_text() == "systemd\n":
            program = Path(sys.argv[0]).absolute()
            text = UNIT.format(name=self._name, python=sys.executable, program=program, command=command, file=self.told)
            WANTED.mkdir(exist_ok=True)
            self._unit.write_text(text)
            with suppress(FileExistsError):
                (WANTED / self._unit.name).symlink_to(self._unit)

    def note_process(self) -> None:
        (self._directory / "pid").write_text(str(os.getpid()))

    def save(self, content: dict[str, Any]) -> None:
        if self.exists:
            _write(self._store, content)

    def load(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._store.read_text())
        return found

    def end(self) -> None:
        (WANTED / self._unit.name).unlink(missing_ok=True)
        self._unit.unlink(missing_ok=True)
        shutil.rmtree(self._directory, ignore_errors=True)
        with suppress(OSError):
            STATES.rmdir()  # the last one

    @property
    def _unit(self) -> Path:
        return UNITS / f"stand-in-cluster-{self._name}-again.service"


def end_others(macs: Iterable[str], own: str) -> None:
    """Clusters whose machines another one takes; their processes notice."""
    wanted = set(macs)
    for directory in STATES.iterdir() if STATES.exists() else ():
        told = directory / "told.json"
        with suppress(OSError, ValueError):
            if directory.name != own and wanted & set(json.loads(told.read_text())["macs"]):
                State(directory.name).end()


def _write(path: Path, content: dict[str, Any]) -> None:
    """In one go, as the process may be killed."""
    new = path.with_name(f".{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)
    new.replace(path)
