# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes on inside of the bootstrap VM, asked by SSH."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import ssh
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.log import masked
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

UNITS = ("release-image", "bootkube", "crio", "kubelet")
"""In the order in which they need each other."""
BORDER = "--nometal--"
LAST_LINES, LONGEST = 15, 300
COMMAND = f"""
for unit in {" ".join(UNITS)}; do
  echo "$unit" $(systemctl show --property=ActiveState,NRestarts --value "$unit")
done
echo {BORDER}
sudo crictl ps --all --output=json 2>/dev/null
for unit in {" ".join(UNITS)}; do
  echo {BORDER}
  sudo journalctl --boot --no-pager --output=cat --lines={LAST_LINES} --unit="$unit"
done
"""


@dataclass(frozen=True)
class Unit:
    name: str
    state: str = ""
    restarts: int = 0
    said: Sequence[str] = ()
    """The last lines of its journal."""

    @property
    def is_up(self) -> bool:
        """A service that is done stays active."""
        return self.state == "active"

    @property
    def has_failed(self) -> bool:
        """Those that are started again and again are hardly ever found in the state `failed`."""
        return self.state == "failed" or (self.restarts > 0 and not self.is_up)


@dataclass(frozen=True)
class Services:
    units: Sequence[Unit] = ()
    exited: Sequence[str] = ()
    """Containers that have ended, and that nothing has started again."""


def look(address: str, key: str | None) -> Services:
    """Nothing if it refuses the login: a key is optional."""
    try:
        return read(ssh.run(address, COMMAND, key))
    except OperatorError:
        return Services()


def read(text: str) -> Services:
    states, containers, *journals = [part.strip() for part in f"{text}{BORDER}".split(BORDER)]
    words = [line.split() for line in states.splitlines()]
    return Services(
        units=[_unit(*line, journal=journal) for line, journal in zip(words, journals)],
        exited=_exited(containers),
    )


def _unit(name: str, *shown: str, journal: str) -> Unit:
    numbers = [int(word) for word in shown if word.isdigit()]
    state = next((word for word in shown if not word.isdigit()), "")
    lines = [masked(line)[:LONGEST] for line in journal.splitlines() if line.strip()]
    return Unit(name, state, numbers[0] if numbers else 0, lines)


def _exited(text: str) -> list[str]:
    try:
        found = [(each["metadata"]["name"], each["state"]) for each in json.loads(text)["containers"]]
    except (ValueError, KeyError, TypeError):
        return []
    running = {name for name, state in found if state == "CONTAINER_RUNNING"}
    return sorted({name for name, state in found if state == "CONTAINER_EXITED"} - running)
