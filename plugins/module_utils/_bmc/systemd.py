# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service, kept running by systemd."""

from __future__ import annotations

import json
import os
import pwd
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.serving import Service, Serving, files_say
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.units import Unit, guarded, units
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

LAST_LINES = 15
# systemd's MESSAGE_IDs.
PROCESS_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
SPAWN_FAILED = "641257651c1b4ec9a8624d7a40a9e1e7"
ASKED = ["ActiveState", "DropInPaths", "InvocationID", "LoadState", "MainPID", "NeedDaemonReload", "NRestarts"]
ASKED += ["UnitFileState"]


class Systemd:
    """Both of its units."""

    def __init__(self, lab: Lab) -> None:
        self._broker, self._service = self._kept = [KeptUnit(unit) for unit in units(lab)]
        self._serving = Serving(lab)

    @property
    def name(self) -> str:
        return self._service.name

    def definition(self) -> str:
        return "".join(kept.definition for kept in self._kept)

    def is_there(self) -> bool:
        return any(kept.is_there() for kept in self._kept)

    def read(self) -> Service:
        return Service(
            there=self.is_there(),
            installed=all(kept.is_installed() for kept in self._kept),
            running=self._service.is_running(),
            serving=self._serving.digest if all(kept.lives_as_configured() for kept in self._kept) else None,
        )

    def refuse_conflicts(self) -> None:
        for kept in self._kept:
            kept.refuse_conflicts()

    def install(self) -> None:
        for kept in self._kept:
            kept.install()

    def restart(self) -> None:
        for kept in self._kept:
            kept.prepare()
        self._serving.begin()
        run("systemctl", "restart", self._broker.name, self._service.name)  # in their order

    def give_up(self) -> None:
        names = [kept.name for kept in reversed(self._kept) if kept.is_there()]
        run("systemctl", "disable", "--quiet", "--now", *(names or [self.name]))

    def remove(self) -> None:
        self.give_up()
        for kept in self._kept:
            kept.remove()
        run("systemctl", "daemon-reload")

    def deaths(self) -> int:
        return sum(kept.deaths() for kept in self._kept)

    def last_words(self) -> str:
        of_broker = self._broker.last_words() if self._broker.deaths() else ""
        return of_broker + self._service.last_words()


class KeptUnit:
    """One of them."""

    def __init__(self, unit: Unit) -> None:
        self._wanted = unit
        self.name = self._unit = unit.name
        self.definition = unit.text
        self._file = Path("/etc/systemd/system") / unit.name
        self._guarded = guarded(unit.text)

    def is_there(self) -> bool:
        return files.is_marked(self._file)

    def is_installed(self) -> bool:
        shown = self._found
        as_it_is_now = shown["NeedDaemonReload"] == "no" and not self._deviations(shown)
        return shown["UnitFileState"] == "enabled" and as_it_is_now and files_say(self._file, self.definition)

    def is_running(self) -> bool:
        return self._found["ActiveState"] in ("active", "activating", "reloading")

    def refuse_conflicts(self) -> None:
        if self._file.exists() and not self.is_there():
            raise OperatorError(
                f"{self._file} was not made by nometal.ipi: give the lab another name, or remove that unit yourself."
            )
        self._refuse_deviations(self._found)

    def install(self) -> None:
        files.write_whole(self._file, self.definition, 0o644)
        run("systemctl", "enable", "--quiet", self._unit)  # has systemd read the file, too
        self._refuse_deviations(self._show())

    def prepare(self) -> None:
        if self._show()["NeedDaemonReload"] == "yes":  # a run killed just before may have written the file
            run("systemctl", "daemon-reload")
        self._refuse_deviations(self._show())
        with suppress(OperatorError):  # if there is nothing to be forgotten
            run("systemctl", "reset-failed", self._unit)  # the count of restarts, too

    def remove(self) -> None:
        files.remove(self._file)

    def deaths(self) -> int:
        return int(self._show()["NRestarts"])

    def last_words(self) -> str:
        shown = self._show()
        invocation = self._last_ended() if shown["NRestarts"] != "0" else shown["InvocationID"]
        said = f"_SYSTEMD_INVOCATION_ID={invocation}"
        ended = f"INVOCATION_ID={invocation}", f"MESSAGE_ID={PROCESS_EXIT}", f"MESSAGE_ID={SPAWN_FAILED}"
        words = _journal("cat", LAST_LINES, said, "+", *ended)
        drop_ins = shown["DropInPaths"]
        return words + (f"Drop-ins that count as well: {drop_ins}\n" if drop_ins else "")

    def _last_ended(self) -> str:
        """What was started again meanwhile may have said nothing yet."""
        entry = _journal("json", 1, f"UNIT={self._unit}", f"MESSAGE_ID={PROCESS_EXIT}")
        return str(json.loads(entry or "{}").get("INVOCATION_ID", ""))

    @cached_property
    def _found(self) -> dict[str, str]:
        """As it was before anything was done here."""
        return self._show()

    def _show(self) -> dict[str, str]:
        names = ",".join([*ASKED, *self._guarded])
        lines = run("systemctl", "show", f"--property={names}", self._unit).splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def _deviations(self, shown: dict[str, str]) -> list[str]:
        """In what systemd holds the service to be another one. Old ones do not know all that ours say."""
        return [
            f"{name} is {shown[name] or 'empty'} instead of {value or 'empty'}"
            for name, value in self._guarded.items()
            if shown["LoadState"] == "loaded" and shown.get(name, value) != value
        ]

    def _refuse_deviations(self, shown: dict[str, str]) -> None:
        deviations = self._deviations(shown)
        if deviations and shown["DropInPaths"]:
            raise OperatorError(
                f"{self._unit}: {', '.join(deviations)}, by {shown['DropInPaths']}. The service of the BMCs keeps its "
                "user and its confinement: remove these lines, then `systemctl daemon-reload`."
            )

    def lives_as_configured(self) -> bool:
        """Whether it runs as its user, and what it writes to is still what it was given when it started.

        A directory that was removed takes its mount with it; the next one of that name is read-only for the service.
        """
        pid = self._found["MainPID"]
        with suppress(OSError, KeyError):
            is_user = Path(f"/proc/{pid}").stat().st_uid == pwd.getpwnam(self._wanted.user).pw_uid
            lines = Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8").splitlines()
            mounted = {line.split()[4] for line in lines}
            return is_user and set(map(os.path.realpath, self._wanted.writable)) <= mounted
        return False


def _journal(form: str, lines: int, *matches: str) -> str:
    return run("journalctl", "--quiet", "--no-pager", f"--output={form}", f"--lines={lines}", *matches)
