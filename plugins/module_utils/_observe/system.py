# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's distribution."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

OS_RELEASE = Path("/etc/os-release")
FAMILIES = {"debian": "Debian", "ubuntu": "Debian", "fedora": "RedHat", "rhel": "RedHat", "centos": "RedHat"}
"""By a word of os-release's ID or ID_LIKE. Roles have a file of each in their vars."""
TESTED = {
    "debian": "Debian 12",
    "ubuntu": "Ubuntu 22.04",
    "rhel": "RHEL 9",
    "centos": "CentOS Stream 9",
    "rocky": "Rocky Linux 9",
    "almalinux": "AlmaLinux 9",
    "fedora": "Fedora",
}
"""By os-release's ID the first release that was tested; without a number, every release."""


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
        version=numbers(values.get("VERSION_ID", "")),
    )


def supported() -> str:
    return f"{', '.join(TESTED.values())}, or later"


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))
