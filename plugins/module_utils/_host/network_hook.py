# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

HOOKS = Path("/etc/libvirt/hooks")
DISPATCHER = HOOKS / "network.d/nometal"
ENTRIES = HOOKS / "nometal.d"
DISPATCHER_TEXT = f"""\
#!/bin/sh
# Made by nometal.ipi and removed with the last lab.
# libvirt calls this when one of its networks starts or stops, also at boot, and stops a network for which it fails.
case "$2" in started | stopped) ;; *) exit 0 ;; esac
for entry in {ENTRIES}/*; do
  [ -x "$entry" ] || continue
  timeout 10 "$entry" "$1" "$2" </dev/null 2>&1 | timeout 11 logger --tag "nometal ${{entry##*/}}"
done
exit 0
"""


@dataclass(frozen=True)
class HookEntry:
    """A script of ours that runs whenever a libvirt network has started or stopped: `<entry> <network> <what>`.

    It brings back what a reboot or the network's stop has lost. It must not call libvirt, which waits for it.
    """

    name: str

    def read(self) -> str | None:
        with suppress(FileNotFoundError):
            return self._path.read_text(encoding="utf-8")
        return None

    def write(self, text: str) -> None:
        write_script(self._path, text)

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            self._path.unlink()
        with suppress(OSError):  # others have entries there
            ENTRIES.rmdir()

    @property
    def _path(self) -> Path:
        return ENTRIES / self.name


def write_script(path: Path, text: str) -> None:
    """Never half a script: it is made beside its place, where it also gets the label that SELinux gives files there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o755)
    draft.replace(path)
