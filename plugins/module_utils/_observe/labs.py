# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which labs have something on this host, as its files say: no libvirt, no bindings and no lab_spec are needed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import ENTRIES
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import is_lab_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import owner_of_pool
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import INSTALLS, Paths
from ansible_collections.nometal.ipi.plugins.module_utils._observe import infra, libvirt_files
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import UnmeasurableError
from ansible_collections.nometal.ipi.plugins.module_utils._observe.veth_entries import owners_of_pairs

HOME = Path("/var/lib/nometal")
KEPT = {
    "labs": paths.KNOWN_OF_LAB,
    "bmc": paths.KNOWN_OF_BMC,
    "install": paths.KNOWN_OF_INSTALL,
    "rehearsal": ("journal.json", "nvram", ".*.new"),
}
"""Directories with one of each lab that has something there, and what that is. The rest in them is not the lab's."""
FILES = (
    (ENTRIES, "", ".bmc"),
    (ENTRIES, "", ".firewall"),
    (ENTRIES, "", ".resolver"),
    (Path("/etc/systemd/system"), "nometal-bmc-", ".service"),
    (Path("/etc/systemd/system"), "nometal-broker-", ".service"),
    (Path("/etc/NetworkManager/dnsmasq.d"), "nometal-", ".conf"),
)
RESOLVER = "resolver"
KIND_WORDS = {"domain": "VM"}


@dataclass(frozen=True)
class Record:
    """What role host_prep has recorded of a lab. It says where to look and what to report, and proves nothing."""

    path: Path
    recorded: str = ""
    """When, in UTC."""
    model: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def domain(self) -> str:
        return str(self.model.get("domain") or "")

    @property
    def pool_path(self) -> str:
        pool = self.model.get("storage_pool")
        path = pool.get("path") if isinstance(pool, Mapping) else None
        return path if isinstance(path, str) and path.startswith("/") else ""


def registered(home: Path) -> list[str]:
    return [path.name for path in _of_labs(home, "labs")]


def record_of(home: Path, lab: str) -> Record:
    path = home / "labs" / lab / "lab.json"
    try:
        written = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
        model = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Record(path, problem="none")
    except (OSError, ValueError) as error:
        return Record(path, problem=f"cannot be read: {error}")
    if not isinstance(model, dict) or model.get("name") != lab:
        return Record(path, problem=f"is not that of lab {lab}")
    return Record(path, recorded=f"{written:%Y-%m-%d %H:%M} UTC", model=model)


def in_files(home: Path) -> dict[str, list[str]]:
    """By lab: its directories, and its files in the directories of other programs."""
    found: dict[str, list[str]] = defaultdict(list)
    for kept in KEPT:
        for path in _of_labs(home, kept):
            found[path.name].append(str(path))
    for directory, before, behind in (*FILES, (home / RESOLVER, "", ".lab")):
        for path in filter(files.is_marked, sorted(directory.glob(f"{before}*{behind}"))):
            found[path.name[len(before) : len(path.name) - len(behind)]].append(str(path))
    for pair, owner in owners_of_pairs().items():
        found[owner].append(f"veth pair {pair}")
    return {lab: things for lab, things in found.items() if is_lab_name(lab)}


def in_definitions() -> dict[str, list[str]]:
    """By lab: what libvirt has defined, by its own files, where it cannot be asked."""
    found: dict[str, list[str]] = defaultdict(list)
    for thing in _objects():
        owner = owner_of_pool(thing.name, thing.uuid) if thing.kind == "pool" else thing.owner
        if owner:
            found[owner].append(f"{KIND_WORDS.get(thing.kind, thing.kind)} {thing.name}")
    for path in _directories(INSTALLS):
        found[path.name] += [f"bootstrap VM {name}" for name in bootstraps_left(path.name)]
    return {lab: sorted(things) for lab, things in found.items() if things}


def defined(*kinds: str) -> list[str]:
    """Names of VMs (domain), pools, networks of anybody, by libvirt's files."""
    return sorted(thing.name for thing in _objects() if thing.kind in kinds)


def bootstraps_left(lab: str) -> list[str]:
    """What libvirt still has of the bootstrap VM that the installer has noted for the lab, by libvirt's files."""
    noted = {infra.bootstrap_of(known) for known in infra.ids_of(Paths(lab))}
    return sorted(noted & set(defined("domain", "pool")))


def merged(*parts: Mapping[str, list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        for lab, things in part.items():
            found[lab] += things
    return dict(found)


def _objects() -> tuple[libvirt_files.LibvirtObject, ...]:
    try:
        return libvirt_files.objects()
    except (UnmeasurableError, OSError):
        return ()


def _of_labs(home: Path, kept: str) -> Iterator[Path]:
    return (path for path in _directories(home / kept) if removal.has_known(path, KEPT[kept]))


def _directories(parent: Path) -> Iterator[Path]:
    found = sorted(parent.iterdir()) if parent.is_dir() else []
    return (path for path in found if path.is_dir() and not path.is_symlink())
