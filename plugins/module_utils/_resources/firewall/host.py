# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of this host's firewall."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import UMASK
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_links

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, order=True)
class Chain:
    """A chain of the lab's own, which a chain of others calls. Rules are as the firewall shows them."""

    means: str
    table: str
    name: str
    caller: str
    called: bool
    rules: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.means} {self.table} {self.name}"


def no_bridges(names: Iterable[str]) -> list[str]:
    """Those that are links of another kind. A bridge that is yet to come is none of them."""
    links = read_links()
    return [name for name in names if name in links and links[name].kind != "bridge"]


def program(name: str) -> str:
    """Where it is installed, also where PATH lacks sbin; empty when it is not."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
    return shutil.which(name, path=path) or ""


def succeeds(*command: str) -> bool:
    return _done(command, "").returncode == 0


def run(*command: str, given: str = "") -> str:
    done = _done(command, given)
    if done.returncode:
        complaint = done.stderr.strip() or done.stdout.strip() or f"it ended with {done.returncode}"
        raise OperatorError(f"`{' '.join(command)}` failed: {complaint}")
    return done.stdout


def _done(command: tuple[str, ...], given: str) -> subprocess.CompletedProcess[str]:
    found = program(command[0])
    if not found:
        raise OperatorError(f"{command[0]} is not installed any more: install it, and run this again.")
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        [found, *command[1:]],
        input=given,
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        umask=UMASK,  # firewall-offline-cmd writes files
    )
