# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, files, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import (
    Settings,
    dnsmasq_domains,
    dnsmasq_lines,
    read_lines,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Lab

FILES = Path("/etc/NetworkManager/dnsmasq.d")
PREFIX = "nometal-"
PID = Path("/run/NetworkManager/dnsmasq.pid")
PATIENCE = 10.0


class NetworkManager:
    """A file for the dnsmasq that NetworkManager runs for the host, which reads it when it starts."""

    name = "NetworkManager"

    @staticmethod
    def dnsmasq() -> Path | None:
        """The running process, in /proc."""
        with suppress(OSError, ValueError):
            process = Path("/proc") / str(int(PID.read_text(encoding="ascii")))
            if process.joinpath("comm").read_text(encoding="utf-8").strip() == "dnsmasq":
                return process
        return None

    def wanted(self, lab: Lab) -> Settings:
        if _file(lab).exists() and not files.is_marked(_file(lab)):
            raise OperatorError(
                f"{_file(lab)} was not made by nometal.ipi: give the lab another name, or remove that file yourself."
            )
        return Settings(lines=_lines(lab))

    def read(self, lab: Lab) -> Settings | None:
        lines = read_lines(_file(lab)) if files.is_marked(_file(lab)) else None
        return None if lines is None else Settings(lines, in_force=_has_been_read(_file(lab)))

    def write(self, lab: Lab) -> None:
        directories.make(FILES)
        files.write_whole(_file(lab), text_of(_lines(lab)), 0o644)

    def evidence(self, lab: Lab) -> str:
        return f"the dnsmasq of NetworkManager goes by {_file(lab)}, and `journalctl -u NetworkManager` shows its log"

    def apply(self, lab: Lab, *, anew: bool) -> None:  # noqa: ARG002 - it is always started anew
        run("nmcli", "general", "reload", "dns-full")
        has_not = "NetworkManager was told to start its dnsmasq anew, but has not: see its log."
        wait.require(lambda: _has_been_read(_file(lab)), PATIENCE, lambda: has_not, 0.05)

    def remove(self, lab: Lab) -> None:
        # The file goes last: as long as it is there, the next run can tell that dnsmasq may still go by it.
        files.write_whole(_file(lab), text_of(_lines(lab)[:1]), 0o644)
        if self.dnsmasq():
            self.apply(lab, anew=False)
        files.remove(_file(lab))

    def held(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        found = FILES.glob(f"{PREFIX}*.conf")
        return ((file.stem[len(PREFIX) :], dnsmasq_domains(file)) for file in found)


def _file(lab: Lab) -> Path:
    return FILES / f"{PREFIX}{lab.owner}.conf"


def _lines(lab: Lab) -> tuple[str, ...]:
    return (f"# Made by nometal.ipi for lab {lab.owner} and removed with it.", *dnsmasq_lines(lab))


def _has_been_read(file: Path) -> bool:
    process = NetworkManager.dnsmasq()
    return process is not None and _started_at(process) > file.stat().st_mtime


def _started_at(process: Path) -> float:
    since_boot = int(process.joinpath("stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return time.time() - uptime + since_boot / os.sysconf("SC_CLK_TCK")
