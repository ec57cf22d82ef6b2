# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM leaves on its host that libvirt does not remove with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._observe.vm_files import NVRAM, NVRAM_ENDINGS
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import console_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

RUNTIME = (Path("/var/lib/libvirt/qemu"), Path("/var/lib/libvirt/qemu/channel/target"))
TPM_LOGS = Path("/var/log/swtpm/libvirt/qemu")
OLDER = re.compile(r"(\.[0-9]+)?")
SHORT_NAME = 20
KEPT_LOGS = 3
"""As many as virtlogd keeps by default."""


def unlink(paths: Iterable[Path]) -> None:
    for path in list(paths):
        path.unlink(missing_ok=True)


def forget_logs(name: str, consoles: Path | None = None, tpms: Path = TPM_LOGS) -> None:
    """Of its console, its qemu and its TPM."""
    console = Path(console_of(name))
    directory = consoles or console.parent
    for log in (directory / console.name, directory / f"{name}.log", tpms / f"{name}-swtpm.log"):
        # virtlogd keeps older ones beside it, with a number.
        unlink(path for path in log.parent.glob(f"{log.name}*") if OLDER.fullmatch(path.name[len(log.name) :]))


def has_spoken(name: str) -> bool:
    """Whether there is anything in its console's log."""
    log = Path(console_of(name))
    return log.is_file() and log.stat().st_size > 0


def rotate_console(name: str) -> None:
    """As virtlogd does: what was said so far goes beside it, with a number, and the oldest goes."""
    log = Path(console_of(name))
    for number in reversed(range(KEPT_LOGS)):
        older = log.with_name(f"{log.name}.{number - 1}") if number else log
        if older.exists():
            older.replace(log.with_name(f"{log.name}.{number}"))


def forget_nvram(name: str) -> None:
    """Also what a former VM of this name has left: with the keys of another firmware, secure boot is none."""
    unlink(NVRAM / f"{name}_VARS.{ending}" for ending in NVRAM_ENDINGS)


def forget_runs(name: str, running: Callable[[], Collection[int]], where: Iterable[Path] = RUNTIME) -> None:
    """Directories of runs that ended with the host's own: libvirt removes one when it sees its run end."""
    found = [path for directory in where for path in directory.glob(f"domain-*-{name[:SHORT_NAME]}")]
    # Asked only now: a VM that is being started is listed before it has a directory.
    alive = running() if found else ()
    for path in found:
        number = path.name.split("-")[1]
        if number.isdigit() and path.name == f"domain-{number}-{name[:SHORT_NAME]}" and int(number) not in alive:
            removal.discard(path)
