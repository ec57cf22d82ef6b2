# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt with dpkg, and dnf with rpm, say of the packages that are installed."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packages import (
    DEPENDS,
    RECOMMENDS,
    SUGGESTS,
    Package,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.system import distribution, supported

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ansible_collections.nometal.ipi.plugins.module_utils._observe.packages import Alternatives

DPKG_FIELDS = ("Provides", "Depends", "Pre-Depends", "Recommends", "Suggests")
DPKG_KINDS = {"Depends": DEPENDS, "Pre-Depends": DEPENDS, "Recommends": RECOMMENDS, "Suggests": SUGGESTS}
DPKG_FORMAT = "\t".join(["${db:Status-Status}", "${Package}", *(f"${{{field}}}" for field in DPKG_FIELDS)]) + "\n"
RPM_FORMAT = "".join(
    f"[%{{=NAME}}\t{tag}\t%{{{tag}}}\n]"
    for tag in ("PROVIDENAME", "FILENAMES", "REQUIRENAME", "RECOMMENDNAME", "SUGGESTNAME")
)
RPM_KINDS = {"REQUIRENAME": DEPENDS, "RECOMMENDNAME": RECOMMENDS, "SUGGESTNAME": SUGGESTS}


class Apt:
    def listed(self) -> str:
        """A line for each package: its state and its name."""
        return run("dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\n")

    def installed(self) -> dict[str, Package]:
        return dpkg_packages(run("dpkg-query", "--show", f"--showformat={DPKG_FORMAT}"))

    def remains(self) -> set[str]:
        """Packages that were removed with their configuration left."""
        return set(by_state(self.listed())["config-files"])

    def weak(self) -> set[str]:
        return apt_weak(run("apt-config", "dump", "--format", "%f=%v%n"))

    def asked_for(self) -> set[str]:
        return set(run("apt-mark", "showmanual").split())

    def edited(self, names: Collection[str]) -> dict[str, list[str]]:
        """Of each package its configuration files that are no longer as they came."""
        shown = run("dpkg-query", "--show", "--showformat=${Package}\n${Conffiles}\n", *names) if names else ""
        return edited_conffiles(shown)


class Dnf:
    def listed(self) -> str:
        return run("rpm", "--query", "--all", "--queryformat", "installed %{NAME}\n")

    def installed(self) -> dict[str, Package]:
        return rpm_packages(run("rpm", "--query", "--all", "--queryformat", RPM_FORMAT))

    def remains(self) -> set[str]:
        return set()

    def weak(self) -> set[str]:
        return {RECOMMENDS}

    def asked_for(self) -> set[str]:
        return set(run("dnf", "--quiet", "repoquery", "--userinstalled", "--queryformat", "%{name}\n").split())

    def edited(self, _names: Collection[str]) -> dict[str, list[str]]:
        """rpm sets them aside by itself."""
        return {}


MANAGERS: dict[str, type[Apt | Dnf]] = {"Debian": Apt, "RedHat": Dnf}
"""By the distribution's family."""


def of_host() -> Apt | Dnf:
    found = distribution()
    if not found.family:
        raise OperatorError(f"The package manager of {found.name} is not known: use a host with {supported()}.")
    return MANAGERS[found.family]()


def packages(family: str) -> dict[str, list[str]]:
    return by_state(MANAGERS[family]().listed() if family else "")


def by_state(listed: str) -> dict[str, list[str]]:
    """Installed, and config-files for what was removed but for its configuration."""
    states: dict[str, list[str]] = {"installed": [], "config-files": []}
    for line in listed.splitlines():
        state, _space, name = line.partition(" ")
        states.setdefault(state, []).append(name)
    return states


def dpkg_packages(shown: str) -> dict[str, Package]:
    rows = [line.split("\t") for line in shown.splitlines()]
    found = {}
    for status, name, *values in rows:
        if status == "installed":
            fields = dict(zip(DPKG_FIELDS, values))
            provides = frozenset(each for group in _dpkg_groups(fields.pop("Provides")) for each in group)
            needs = [(DPKG_KINDS[field], group) for field, text in fields.items() for group in _dpkg_groups(text)]
            found[name] = Package(name, provides, tuple(needs))
    return found


def _dpkg_groups(text: str) -> list[Alternatives]:
    """Versions and architectures aside: `a (>= 2) | b:any, c`."""
    groups = (re.findall(r"(?:^|\|)\s*([a-z0-9][a-z0-9+.-]+)", group) for group in text.split(","))
    return [tuple(group) for group in groups if group]


def apt_weak(dump: str) -> set[str]:
    """What apt itself takes for granted where nothing is set."""
    settings = dict(line.split("=", 1) for line in dump.splitlines() if "=" in line)
    names = {RECOMMENDS: "RecommendsImportant", SUGGESTS: "SuggestsImportant"}
    off = {"false", "no", "off", "without", "0", "disable"}
    return {kind for kind, name in names.items() if settings.get(f"APT::AutoRemove::{name}", "").lower() not in off}


def edited_conffiles(shown: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    name = ""
    for line in shown.splitlines():
        if not line.startswith(" "):
            name = line or name
            continue
        path, digest, *_flags = line.split()
        if _digest(Path(path)) not in (digest, None):
            found[name].append(path)
    return dict(found)


def _digest(path: Path) -> str | None:
    with suppress(OSError):
        return hashlib.md5(path.read_bytes()).hexdigest()  # noqa: S324 - dpkg's choice
    return None


def rpm_packages(shown: str) -> dict[str, Package]:
    provides: dict[str, set[str]] = defaultdict(set)
    needs: dict[str, list[tuple[str, Alternatives]]] = defaultdict(list)
    for name, tag, value in (line.split("\t", 2) for line in shown.splitlines()):
        if tag in RPM_KINDS:
            needs[name] += [(RPM_KINDS[tag], group) for group in _rpm_groups(value)]
        else:
            provides[name].add(value)
    return {name: Package(name, frozenset(found), tuple(needs[name])) for name, found in provides.items()}


def _rpm_groups(text: str) -> Iterable[Alternatives]:
    """Of `(a or b)`, `(a if b)` all that are named count as alternatives: rather too much stays than too little."""
    if not text.startswith("("):
        return [(text,)]
    words = re.findall(r"[^\s()]+(?:\([^\s()]*\))*", text)
    return [tuple(word for word in words if word not in ("or", "and", "if", "unless", "else", "with", "without"))]
