# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who depends on disks that are to be destroyed: VMs, and images, whether a VM has them or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import POOL_KINDS
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe import open_files, volume_marks
from ansible_collections.nometal.ipi.plugins.module_utils._observe.image_chain import RAW, Chain, Image, chain_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.media_files import is_medium
from ansible_collections.nometal.ipi.plugins.module_utils._observe.open_files import Key, key_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.vm_users import User, users

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

ADVICE = "make it readable, or remove it"


BASE, DISK, OPEN = "the base of", "a disk of", "open in"


@dataclass(frozen=True)
class Use:
    """Of one of the files, by whom: directly, or by an image that is based on it."""

    file: str
    by: str
    vm: str = ""
    """Where it is used directly."""
    kind: str = BASE

    @property
    def how(self) -> str:
        return f"{self.kind} {self.by}"


@dataclass(frozen=True)
class Doubt:
    """About an image of which it cannot be known what it is based on."""

    image: str
    by: str
    reason: str

    def __str__(self) -> str:
        return f"{self.image}, {self.by}, may be based on one of them, for {self.reason} ({ADVICE})"


def volumes_in_use(connection: Any, pool: Any, owner: str | None, is_ours: Callable[[Path], bool]) -> Iterator[str]:
    """Of a pool: by VMs and images of others. And what was made for VMs of others, which can be made again around it.

    Is ours: tells which files go with the pool.
    """
    name, directory = pool.name(), _directory_of(pool)
    direct = {(str(user), used) for user in users(connection, owner) for used in user.has_volumes(name, directory)}
    yield from (f"volume {volume} of pool {name} is a disk of {user}" for user, volume in sorted(direct))
    host = Dependents(connection, lambda user: owner is not None and user.owner == owner)
    files, own = files_in(directory), host.disks_in(name)
    uses, doubts = host.of([str(path) for path in files if is_ours(path) or path.name in own], is_ours)
    for use in uses:
        volume = Path(use.file).name
        if (use.by, volume) not in direct:
            yield f"volume {volume} of pool {name} is {use.how}"
    yield from (f"pool {name} has disks, and {doubt}" for doubt in doubts)
    yield from _made_for_others(name, files, owner, {volume for _user, volume in direct})


def _made_for_others(pool: str, files: list[Path], owner: str | None, used: Collection[str]) -> Iterator[str]:
    for path in files if owner is not None else ():
        maker, uuid = volume_marks.made_by_whom(str(path))
        if path.name not in used and maker not in ("", owner):
            yield f"volume {path.name} of pool {pool} was made for a VM of lab {maker}, {uuid}"


def dependents(connection: Any, files: Collection[str], apart: Collection[str] = ()) -> tuple[list[Use], list[Doubt]]:
    """Who depends on these files, but for VMs that are named."""
    return Dependents(connection, lambda user: user.name in apart).of(files, lambda path: str(path) in files)


def told(connection: Any, files: Collection[str], apart: Collection[str] = ()) -> list[str]:
    uses, doubts = dependents(connection, files, apart)
    return [*(f"{use.file} is {use.how}" for use in uses), *map(str, doubts)]


class Dependents:
    """All VMs and images of this host."""

    def __init__(self, connection: Any, apart: Callable[[User], bool]) -> None:
        """Apart: tells VMs that do not count, nor does what is theirs."""
        self._connection = connection
        self._apart = apart

    def disks_in(self, pool: str) -> set[str]:
        """What was made in a pool for VMs that do not count."""
        marks = [xml.mark_of(user.roots[0]) for user in self._users if self._apart(user)]
        return {disk for mark in marks if mark.pool == pool for disk in mark.disks}

    def of(self, files: Iterable[str], is_ours: Callable[[Path], bool]) -> tuple[list[Use], list[Doubt]]:
        """Is ours: tells images that go, too, so that it does not matter what they are based on."""
        wanted = wanted_of(files)
        if not wanted:
            return [], []
        beside = {str(Path(path).parent) for path in wanted.values()}
        uses: list[Use] = []
        doubts: list[Doubt] = []
        seen: set[Key] = set()
        for user, image in self._images_of_users():
            chain = chain_of(image)
            seen |= {key for path in chain.files if (key := key_of(path))}
            if not self._apart(user):
                by = f"a disk of {user}"
                uses += _uses(chain, wanted, f"{image.path}, {by}", user)
                doubts += _doubts(chain, beside, by, _made_by_us(user))
        based = in_pools(self._directories(), wanted, lambda path: key_of(str(path)) in seen or is_ours(path))
        # The BMC service has media open, which it can download again.
        disks = {key: path for key, path in wanted.items() if not is_medium(Path(path))}
        opened = open_by(disks, [user.name for user in self._users])
        return list(dict.fromkeys([*uses, *based[0], *opened])), list(dict.fromkeys([*doubts, *based[1]]))

    @cached_property
    def _users(self) -> list[User]:
        return users(self._connection, None)

    @cached_property
    def _pools(self) -> dict[str, Any]:
        return {pool.name(): pool for pool in self._connection.listAllStoragePools()}

    def _images_of_users(self) -> Iterator[tuple[User, Image]]:
        return ((user, image) for user in self._users for image in self._images_of(user))

    def _images_of(self, user: User) -> list[Image]:
        sources = [source for root in user.roots for source in root.iterfind("devices/disk//source")]
        found = [Image(self._path_of(source), _format_of(source)) for source in sources]
        return list(dict.fromkeys(image for image in found if image.path))

    def _path_of(self, source: Any) -> str:
        """Empty for what is on no disk of this host."""
        named = source.get("file") or source.get("dev")
        pool = self._pools.get(source.get("pool"))
        if named or pool is None:
            return named or ""
        try:
            return pool.storageVolLookupByName(source.get("volume")).path()
        except libvirt.libvirtError:  # the pool is not started, or does not know the volume yet
            return f"{_directory_of(pool)}/{source.get('volume')}"

    def _directories(self) -> dict[str, str]:
        kinds = {name: xml.parsed(pool.XMLDesc()).get("type") for name, pool in self._pools.items()}
        return {name: _directory_of(pool) for name, pool in self._pools.items() if kinds[name] in POOL_KINDS}


def wanted_of(files: Iterable[str]) -> dict[Key | None, str]:
    """Files that are there, by what tells a file whatever its name is."""
    return {key: path for path in files if (key := key_of(path))}


def in_pools(
    directories: Mapping[str, str], wanted: Mapping[Key | None, str], is_apart: Callable[[Path], bool]
) -> tuple[list[Use], list[Doubt]]:
    """By images in directories of pools, which are named with them.

    Is apart: tells images that go, too, or that VMs have.
    """
    beside = {str(Path(path).parent) for path in wanted.values()}
    uses: list[Use] = []
    doubts: list[Doubt] = []
    for pool, directory in sorted(directories.items()):
        for path in files_in(directory):
            if key_of(str(path)) not in wanted and not is_apart(path):
                chain, by = chain_of(Image(str(path))), f"an image in pool {pool} that no VM has"
                uses += _uses(chain, wanted, f"{path}, {by}")
                doubts += _doubts(chain, beside, by, ())
    return uses, doubts


def open_by(wanted: Mapping[Key | None, str], vms: Collection[str] = ()) -> list[Use]:
    """By processes, such as qemu-nbd, and loop devices. VMs that are named are judged by what they have."""
    return [Use(wanted[key], who, kind=OPEN) for key, who in open_files.holders(wanted.keys(), vms)]


def _uses(chain: Chain, wanted: Mapping[Key | None, str], image: str, user: User | None = None) -> Iterator[Use]:
    """The first in a chain is the image itself."""
    keys = [key_of(path) for path in chain.files]
    if user and keys[0] in wanted:
        yield Use(wanted[keys[0]], str(user), user.name, DISK)
    yield from (Use(wanted[key], image) for key in keys[1:] if key in wanted)


def _doubts(chain: Chain, beside: Collection[str], by: str, made: Collection[str]) -> Iterator[Doubt]:
    """What is missing beside the files themselves is gone, and so is what we made, which was based on nothing."""
    for path, reason in chain.unread.items():
        is_gone = path in chain.missing and (str(Path(path).parent) in beside or Path(path).name in made)
        if not is_gone:
            yield Doubt(path, by if path == chain.files[0] else f"the base of {chain.files[0]}, {by}", reason)


def _made_by_us(user: User) -> Collection[str]:
    return xml.mark_of(user.roots[0]).disks


def _format_of(source: Any) -> str | None:
    """libvirt takes a disk that declares none as raw."""
    above = source.getparent()
    if above.tag != "disk":
        kind = above.find("format")
        return None if kind is None else kind.get("type")
    driver = above.find("driver")
    return RAW if driver is None else driver.get("type", RAW)


def _directory_of(pool: Any) -> str:
    return xml.parsed(pool.XMLDesc()).findtext("target/path", default="")


def files_in(directory: str) -> list[Path]:
    """Without what is mounted there: the server behind it may be gone, and then not even its kind can be asked."""
    mounts = removal.mount_points()
    there = sorted(Path(directory).iterdir()) if Path(directory).is_dir() else []
    return [path for path in there if not removal.is_mounted(path, mounts) and path.is_file()]
