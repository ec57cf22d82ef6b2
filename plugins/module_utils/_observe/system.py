# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's distribution and its packages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

OS_RELEASE = Path("/etc/os-release")
FAMILIES = {"debian": "Debian", "ubuntu": "Debian", "fedora": "RedHat", "rhel": "RedHat", "centos": "RedHat"}
"""By a word of os-release's ID or ID_LIKE. Roles have a file of each in their vars."""
PACKAGES = {
    "Debian": ("dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\n"),
    "RedHat": ("rpm", "--query", "--all", "--queryformat", "installed %{NAME}\n"),
}
"""By family: what lists the states and names of its packages."""


@dataclass(frozen=True)
class Distribution:
    name: str
    id: str
    like: tuple[str, ...]
    version: tuple[int, ...]
    """Empty for Debian testing and unstable."""

    @property
    def family(self) -> str:
        """Empty where no role knows the names of packages."""
        return next((FAMILIES[each] for each in (self.id, *self.like) if each in FAMILIES), "")

    @property
    def release(self) -> str:
        """Roles may have a file of it in their vars, beside that of the family: Debian-12."""
        return "-".join([self.id.capitalize(), *map(str, self.version[:1])])


def distribution() -> Distribution:
    lines = (line.split("=", 1) for line in OS_RELEASE.read_text(encoding="utf-8").splitlines() if "=" in line)
    values = {key.strip(): value.strip().strip("\"'") for key, value in lines}
    return Distribution(
        name=values.get("PRETTY_NAME", values.get("ID", "unknown")),
        id=values.get("ID", ""),
        like=tuple(values.get("ID_LIKE", "").split()),
        version=tuple(int(number) for number in re.findall(r"\d+", values.get("VERSION_ID", ""))),
    )


def packages(family: str) -> dict[str, list[str]]:
    """By state: installed, and config-files for what was removed but for its configuration."""
    states: dict[str, list[str]] = {"installed": [], "config-files": []}
    for line in run(*PACKAGES[family]).splitlines() if family else ():
        state, _space, name = line.partition(" ")
        states.setdefault(state, []).append(name)
    return states
