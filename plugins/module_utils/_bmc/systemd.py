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
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

UNIT = """\
# Made by nometal.ipi for lab {name} and removed with it.
[Unit]
Description=BMCs of lab {name} (nometal.ipi)
Wants=nometal-libvirt.target
After=network.target libvirtd.service virtnetworkd.service virtqemud.service virtstoraged.service
# However long libvirt is missing: it is never given up.
StartLimitIntervalSec=0

[Service]
ExecStart={command}
User={user}
SupplementaryGroups=libvirt
WorkingDirectory={state}
Environment=HOME={state} LANG=C.UTF-8
Restart=always
RestartSec=200ms
TimeoutStopSec=40
LimitNOFILE=8192
UMask=0022

ReadWritePaths={writable}
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=pid
CapabilityBoundingSet=
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""


# What drop-ins may not change. systemd shows others of the kind in words of its own.
GUARDED = (
    "User",
    "NoNewPrivileges",
    "CapabilityBoundingSet",
    "ProtectSystem",
    "ProtectHome",
    "PrivateTmp",
    "PrivateDevices",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectProc",
    "ProcSubset",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "RemoveIPC",
    "RestrictRealtime",
    "RestrictSUIDSGID",
)


def guarded(text: str) -> dict[str, str]:
    """The values that a unit gives to these."""
    entries = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name: entries[name] for name in GUARDED}


def writable(lab: Lab) -> list[str]:
    return [str(lab.state), *([lab.pool.path] if lab.listen else [])]


def unit_text(lab: Lab) -> str:
    return UNIT.format(
        name=lab.name, command=" ".join(lab.command), user=lab.user, state=lab.state, writable=" ".join(writable(lab))
    )


LAST_LINES = 15
# systemd's MESSAGE_IDs.
PROCESS_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
SPAWN_FAILED = "641257651c1b4ec9a8624d7a40a9e1e7"
ASKED = ["ActiveState", "DropInPaths", "InvocationID", "LoadState", "MainPID", "NeedDaemonReload", "NRestarts"]
ASKED += ["UnitFileState"]


class Systemd:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._unit = f"{lab.unit}.service"
        self._file = Path("/etc/systemd/system") / self._unit
        self._serving = Serving(lab)
        self._guarded = guarded(self.definition())

    @property
    def name(self) -> str:
        return self._unit

    def definition(self) -> str:
        return unit_text(self._lab)

    def is_there(self) -> bool:
        return files.is_marked(self._file)

    def read(self) -> Service:
        if not self.is_there():
            return Service()
        shown = self._found
        as_it_is_now = shown["NeedDaemonReload"] == "no" and not self._deviations(shown)
        return Service(
            there=True,
            installed=shown["UnitFileState"] == "enabled" and as_it_is_now and files_say(self._file, self.definition()),
            running=shown["ActiveState"] in ("active", "activating", "reloading"),
            serving=self._serving.digest if self._lives_as_configured(shown["MainPID"]) else None,
        )

    def refuse_conflicts(self) -> None:
        if self._file.exists() and not self.is_there():
            raise OperatorError(
                f"{self._file} was not made by nometal.ipi: give the lab another name, or remove that unit yourself."
            )
        self._refuse_deviations(self._found)

    def install(self) -> None:
        files.write_whole(self._file, self.definition(), 0o644)
        run("systemctl", "enable", "--quiet", self._unit)  # has systemd read the file, too
        self._refuse_deviations(self._show())

    def restart(self) -> None:
        if self._show()["NeedDaemonReload"] == "yes":  # a run killed just before may have written the file
            run("systemctl", "daemon-reload")
        self._refuse_deviations(self._show())
        self._serving.begin()
        with suppress(OperatorError):  # if there is nothing to be forgotten
            run("systemctl", "reset-failed", self._unit)  # the count of restarts, too
        run("systemctl", "restart", self._unit)

    def give_up(self) -> None:
        run("systemctl", "disable", "--quiet", "--now", self._unit)

    def remove(self) -> None:
        self.give_up()
        files.remove(self._file)
        run("systemctl", "daemon-reload")

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

    def _lives_as_configured(self, pid: str) -> bool:
        """Whether it runs as its user, and what it writes to is still what it was given when it started.

        A directory that was removed takes its mount with it; the next one of that name is read-only for the service.
        """
        with suppress(OSError, KeyError):
            is_user = Path(f"/proc/{pid}").stat().st_uid == pwd.getpwnam(self._lab.user).pw_uid
            lines = Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8").splitlines()
            mounted = {line.split()[4] for line in lines}
            return is_user and set(map(os.path.realpath, writable(self._lab))) <= mounted
        return False


def _journal(form: str, lines: int, *matches: str) -> str:
    return run("journalctl", "--quiet", "--no-pager", f"--output={form}", f"--lines={lines}", *matches)
