# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import pid_file_of, pid_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.program import RUNNABLE, Program

if TYPE_CHECKING:
    from collections.abc import Iterator

HOOKS = Path("/etc/libvirt/hooks")
RUNNING_NETWORKS = Path("/run/libvirt/network")
DISPATCHER = HOOKS / "network.d/nometal"
ENTRIES = HOOKS / "nometal.d"
DISPATCHER_TEXT = f"""\
#!/bin/sh
# Made by nometal.ipi and removed with the last lab.
# libvirt calls this when one of its networks starts or stops, also at boot, and stops a network for which it fails.
case "$2" in started | stopped) ;; *) exit 0 ;; esac
call() {{
  [ -x "$1" ] || return
  timeout 10 "$1" "$2" "$3" </dev/null 2>&1 | timeout 11 logger --tag "nometal ${{1##*/}}"
}}
# Filters first: they are there before the lab is plugged in anywhere.
for entry in {ENTRIES}/*.firewall; do call "$entry" "$1" "$2"; done
for entry in {ENTRIES}/*; do
  case "$entry" in *.firewall) ;; *) call "$entry" "$1" "$2" ;; esac
done
exit 0
"""
WHOLE = frozenset({"script", "script up to date"})
NETWORK_DAEMONS = ("libvirtd", "virtnetworkd")


@dataclass(frozen=True)
class HookEntry:
    """A script of ours that runs whenever a libvirt network has started or stopped: `<entry> <network> <what>`.

    It brings back what a reboot or the network's stop has lost. It must not call libvirt, which waits for it.
    """

    name: str

    @property
    def path(self) -> Path:
        return ENTRIES / self.name

    def text(self) -> str | None:
        return files.text_of(self.path)

    def read(self) -> str | None:
        """Its text. One that cannot be run, or that others could write, is as good as empty."""
        text = self.text()
        return text if text is None or all(files.has_access(path, RUNNABLE) for path in (self.path, ENTRIES)) else ""

    def write(self, text: str) -> None:
        files.own_directory(ENTRIES)
        Program(self.path, text).install()

    def remove(self) -> None:
        files.remove(self.path)
        files.remove_empty(ENTRIES)


def parts() -> Iterator[str]:
    if DISPATCHER.exists():
        yield "script"
        if Program(DISPATCHER, DISPATCHER_TEXT).is_installed:
            yield "script up to date"


def install() -> None:
    Program(DISPATCHER, DISPATCHER_TEXT).install()


def uninstall() -> None:
    files.remove(DISPATCHER)
    files.remove_empty(ENTRIES)


def deaf_daemons() -> frozenset[str]:
    """Daemons that run networks and will not call the hook: they look for it at their start, and it was not there."""
    return frozenset(daemon for daemon in NETWORK_DAEMONS if pid_of(daemon) and not _was_there_when_it_started(daemon))


def silence() -> str | None:
    """Why libvirt would not call our entries, if so."""
    if WHOLE - set(parts()):
        return f"{DISPATCHER} is missing or was changed"
    deaf = sorted(deaf_daemons())
    return f"{deaf[0]} was started before {DISPATCHER} was there" if deaf else None


def _was_there_when_it_started(daemon: str) -> bool:
    with suppress(FileNotFoundError):
        return DISPATCHER.stat().st_ctime < pid_file_of(daemon).stat().st_mtime
    return False
