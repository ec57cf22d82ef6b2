# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import blocker, listed, ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB, gib
from ansible_collections.nometal.ipi.plugins.module_utils._lab import pool_path
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import REHEARSAL_LEAST, Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe import libvirt_files
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import names_in, nearest_existing
from ansible_collections.nometal.ipi.plugins.module_utils._observe.labs import HOME
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.store import Store
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.directory import PoolDirectory

INSTALLER_IMAGES = "/var/lib/libvirt/openshift-images"  # hard-coded in the installer
# Least and full size of the bootstrap VM's image and overlay.
INSTALLER_LEAST = 25 * GIB
INSTALLER_FULL = 35 * GIB
# Disks are thin: a new cluster writes about a third of them, a rehearsal very little.
INSTALL_SHARE = 0.3

# fio's recipe for etcd: its write-ahead log is written in pieces of this size, each synced before the next.
RECORD = bytes(2300)
RECORDS = 400
SECONDS = 1.5
ETCD_P99_MS = 10.0


MOST_NAMED = 3
ABSENT, DIRECTORY, LINK, OTHER = "absent", "directory", "link", "other"


@dataclass(frozen=True)
class FoundDirectory:
    """Contents of the pool's path, and the UUIDs of libvirt's pools."""

    kind: str
    entries: tuple[str, ...]
    """Names of entries that do not belong to this lab."""
    pools: tuple[str, ...]
    leads_to: str = ""
    """The path without symbolic links."""


def measure_pool_directory(needs: Needs) -> FoundDirectory:
    path = Path(needs.pool_path)
    contents = PoolDirectory(str(path), needs.pool.name, needs.pool.uuid).contents()
    return FoundDirectory(
        kind=_kind_of(path),
        entries=tuple(entry.name for entry in contents),
        pools=tuple(thing.uuid for thing in libvirt_files.objects() if thing.kind == "pool"),
        leads_to=str(path.resolve()),
    )


def _kind_of(path: Path) -> str:
    if path.is_symlink():
        return LINK
    if not path.exists():
        return ABSENT
    return DIRECTORY if path.is_dir() else OTHER


def judge_pool_directory(found: FoundDirectory, needs: Needs) -> Finding:
    path, elsewhere = needs.pool_path, "or set lab_spec.storage_pool.path to another directory."
    if not needs.pool.name:
        return ok("pool_directory.no-pool", "no pool requested")
    if needs.pool.uuid in found.pools:
        return ok("pool_directory.own", f"{path} belongs to this lab", path=path)
    objection = pool_path.objection(path) or pool_path.objection(found.leads_to)
    if objection:
        advice = "Set it to a directory for this lab alone."
        return blocker("pool_directory.refused", f"lab_spec.storage_pool.path {objection}", advice, path=path)
    if found.kind in (LINK, OTHER):
        what = "a symbolic link" if found.kind == LINK else "a file of another type"
        other = f"{path} must be a directory (found {what})"
        return blocker("pool_directory.not-a-directory", other, f"Remove it, {elsewhere}", path=path, found=found.kind)
    if found.entries:
        named = listed(found.entries, MOST_NAMED, ", ")
        message, entries = f"{path} has files of others: {named}", list(found.entries)
        return blocker("pool_directory.not-empty", message, f"Empty it, {elsewhere}", path=path, entries=entries)
    return ok(
        "pool_directory.free", f"{path} {'does not exist yet' if found.kind == ABSENT else 'is empty'}", path=path
    )


@dataclass(frozen=True)
class Space:
    """`used`: bytes of this lab there. `device`: the file system, which two directories may share."""

    directory: str
    device: int
    free: int
    used: int


@dataclass(frozen=True)
class Storage:
    """`held`: bytes that checkpoints hold in the pool at most, once all that they keep is overwritten."""

    pool: Space
    installer: Space
    held: int = 0

    @property
    def shared(self) -> bool:
        return self.pool.device == self.installer.device


def measure_storage(needs: Needs) -> Storage:
    own = [Path(INSTALLER_IMAGES) / name for name in names_in(INSTALLER_IMAGES) if needs.is_bootstrap(name)]
    return Storage(
        pool=_space(needs.pool_path, [Path(needs.pool_path)]),
        installer=_space(INSTALLER_IMAGES, own),
        held=_held_by_checkpoints(needs.name),
    )


def _held_by_checkpoints(lab: str) -> int:
    """Of one that is damaged it is not known."""
    with suppress(OperatorError, OSError):
        return sum(checkpoint.held_bytes for checkpoint in Store(HOME, lab).checkpoints().values())
    return 0


def _space(path: str, own: list[Path]) -> Space:
    directory = nearest_existing(path)
    state = os.statvfs(directory)
    return Space(
        directory=str(directory),
        device=directory.stat().st_dev,
        free=state.f_bavail * state.f_frsize,
        used=sum(_blocks_under(place) for place in own),
    )


def _blocks_under(place: Path) -> int:
    total = 0
    for directory, _directories, names in os.walk(place):
        for name in names:
            with suppress(FileNotFoundError):  # gone since it was listed
                total += (Path(directory) / name).lstat().st_blocks * 512
    return total


def judge_pool_space(storage: Storage, needs: Needs) -> Finding:
    pool, others = storage.pool, 0
    if needs.awaits_bootstrap and storage.shared:
        others = max(0, INSTALLER_LEAST - storage.installer.used)
    full = max(0, needs.disk_bytes + storage.held - pool.used) + others
    least = max(0, _least_in_pool(needs) - pool.used) + others
    bootstrap = " (with the installer's bootstrap VM)" if others else ""
    checkpoints = f", {gib(storage.held)} of it for checkpoints" if storage.held else ""
    needed = f"{gib(least)} needed now, {gib(full)} in full{bootstrap}{checkpoints}"
    measured = f"{gib(pool.free)} free in {pool.directory}; {needed}"
    facts = {"directory": pool.directory, "free_bytes": pool.free, "needed_bytes": least, "full_bytes": full}
    facts.update({"held_bytes": storage.held} if storage.held else {})
    if pool.free < least:
        advice = "Free some space, or mount a larger file system at the pool's path."
        return blocker("pool_space.too-little", measured, advice, **facts)
    if pool.free < full:
        less = "make the disks smaller, or remove checkpoints" if storage.held else "or make the disks smaller"
        advice = f"The thin disks may outgrow the file system: watch it, {less}."
        return warning("pool_space.less-than-full", measured, advice, **facts)
    return ok("pool_space.enough", measured, **facts)


def _least_in_pool(needs: Needs) -> int:
    if needs.install:
        return int(needs.disk_bytes * INSTALL_SHARE)
    return min(needs.disk_bytes, REHEARSAL_LEAST)


def judge_installer_space(storage: Storage, needs: Needs) -> Finding:
    place = storage.installer
    if not needs.install:
        return ok("installer_space.no-installation", "no installation is configured")
    if needs.installed:
        return ok("installer_space.installed", "the cluster is installed: no bootstrap VM comes")
    free = place.free + place.used
    measured = f"{gib(free)} free for {INSTALLER_IMAGES} in {place.directory}"
    advice = f"The installer stores its bootstrap VM there only: mount or free {gib(INSTALLER_FULL)}."
    facts = {"directory": place.directory, "free_bytes": free, "full_bytes": INSTALLER_FULL}
    if free < INSTALLER_LEAST:
        return blocker("installer_space.too-little", measured, advice, **facts)
    if free < INSTALLER_FULL:
        return warning("installer_space.less-than-full", measured, advice, **facts)
    shared = ", the pool's file system" if storage.shared else ""
    return ok("installer_space.enough", f"{measured}{shared}", **facts)


@dataclass(frozen=True)
class SyncLatency:
    directory: str
    milliseconds: tuple[float, ...]

    @property
    def p99(self) -> float:
        return sorted(self.milliseconds)[int(len(self.milliseconds) * 0.99)]


def measure_sync_latency(needs: Needs) -> SyncLatency:
    directory = nearest_existing(needs.pool_path)
    # O_TMPFILE where the file system supports it, so that a killed process leaves nothing.
    with tempfile.TemporaryFile(dir=directory) as file:
        return SyncLatency(str(directory), tuple(_synced_writes(file.fileno())))


def _synced_writes(descriptor: int) -> list[float]:
    os.posix_fallocate(descriptor, 0, len(RECORD) * RECORDS)
    os.fsync(descriptor)
    durations: list[float] = []
    end = time.monotonic() + SECONDS
    while len(durations) < RECORDS and (not durations or time.monotonic() < end):
        start = time.monotonic()
        os.write(descriptor, RECORD)
        os.fdatasync(descriptor)
        durations.append((time.monotonic() - start) * 1000)
    return durations


def judge_sync_latency(latency: SyncLatency, _needs: Needs) -> Finding:
    measured = f"p99 {latency.p99:.2f} ms over {len(latency.milliseconds)} synced writes in {latency.directory}"
    facts = {"directory": latency.directory, "p99_ms": round(latency.p99, 2)}
    if latency.p99 > ETCD_P99_MS:
        return warning(
            "fsync.slow",
            measured,
            f"etcd needs less than {ETCD_P99_MS:g} ms: put the pool on an SSD, keep other writers off that disk, "
            "or set etcd's slow-disk profile.",
            **facts,
        )
    return ok("fsync.fast", measured, **facts)
