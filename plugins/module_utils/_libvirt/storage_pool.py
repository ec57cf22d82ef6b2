# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host import files
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm_users import volumes_in_use
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import Step

try:
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Sequence

BUILT_MODE = 0o711
"""As libvirt makes a pool's directory."""


@dataclass(frozen=True)
class StoragePool:
    """A libvirt pool of type dir. Pools carry no metadata, so the UUID, derived from the lab, is the owner's mark."""

    name: str
    uuid: str
    path: str
    directory: bool = True
    active: bool = True
    autostart: bool = True


def plan(current: StoragePool | None, desired: StoragePool | None) -> Sequence[Step]:
    if desired is not None:
        return _plan_presence(current, desired)
    return [] if current is None else _plan_removal(current)


def _plan_presence(current: StoragePool | None, desired: StoragePool) -> Sequence[Step]:
    steps = {
        "define": current is None,
        "build": current is None or not current.directory,
        "start": current is None or not current.active,
        "autostart": current is None or not current.autostart,
    }
    return [Step(verb, desired.name) for verb, needed in steps.items() if needed]


def _plan_removal(current: StoragePool) -> Sequence[Step]:
    # The definition goes last: as long as it is there, the next run can tell what is still to be removed.
    steps = {"stop": current.active, "delete": current.directory, "undefine": True}
    return [Step(verb, current.name) for verb, needed in steps.items() if needed]


class StoragePoolPort:
    """One lab's pool in libvirt. Nothing is done to a pool or a directory that is not the lab's."""

    def __init__(self, connection: Any, pool: StoragePool) -> None:
        self._connection = connection
        self._desired = pool

    def read(self) -> StoragePool | None:
        pool = self._find()
        return None if pool is None else _state_of(pool)

    def refuse_conflicts(self) -> None:
        """Say what stands in the way of the desired pool, before anything is changed."""
        path = self._desired.path
        pool = self._find()
        if pool is None:
            self._refuse_name_of_others()
            self._refuse_directory_of_others()
        elif _path_of(pool) != path:
            raise OperatorError(
                f"storage pool {self._desired.name} lies at {_path_of(pool)}, not at {path}: "
                "pools do not move. Set the path back, or tear the lab down first."
            )

    def refuse_users(self, owner: str | None) -> None:
        """Say whose disks would be destroyed with the pool."""
        pool = self._find()
        in_use = list(volumes_in_use(self._connection, pool, owner)) if pool else []
        if in_use:
            raise OperatorError(
                f"storage pool {self._desired.name} stays as it is, for it holds disks of others: {'; '.join(in_use)}. "
                "Remove those VMs with their disks first, or have their disks elsewhere."
            )

    def apply(self, step: Step) -> None:
        if step.verb == "define":
            self._connection.storagePoolDefineXML(_xml_of(self._desired))
            return
        pool = self._connection.storagePoolLookupByUUIDString(self._desired.uuid)
        {
            "build": lambda: _build(pool),
            "start": pool.create,
            "autostart": lambda: pool.setAutostart(1),
            "stop": pool.destroy,
            "delete": lambda: _delete(_path_of(pool)),
            "undefine": pool.undefine,
        }[step.verb]()

    def stranger(self) -> str:
        """What is said of a pool that only has the name. It is another lab's, or was made by somebody, and stays."""
        pool = None if self._find() else self._of_that_name()
        return f"storage pool {pool.name()} at {_path_of(pool)} is not this lab's" if pool else ""

    def _find(self) -> Any:
        """By the mark alone: two labs may have come to one name."""
        pools = self._connection.listAllStoragePools()
        return next((pool for pool in pools if pool.UUIDString() == self._desired.uuid), None)

    def _of_that_name(self) -> Any:
        pools = self._connection.listAllStoragePools()
        return next((pool for pool in pools if pool.name() == self._desired.name), None)

    def _refuse_name_of_others(self) -> None:
        if told := self.stranger():
            raise OperatorError(f"{told}: give the lab another name, or remove that pool yourself.")

    def _refuse_directory_of_others(self) -> None:
        path = Path(self._desired.path)
        for pool in self._connection.listAllStoragePools():
            if _path_of(pool) == str(path):
                raise OperatorError(f"{path} belongs to storage pool {pool.name()}: name another directory.")
        if path.is_symlink() or (path.exists() and (not path.is_dir() or _contents(path))):
            raise OperatorError(
                f"{path} exists and is not an empty directory, so it may hold what is not this lab's: "
                "empty it yourself, or name another directory."
            )


def _state_of(pool: Any) -> StoragePool:
    path = _path_of(pool)
    return StoragePool(
        name=pool.name(),
        uuid=pool.UUIDString(),
        path=path,
        directory=Path(path).is_dir(),
        active=bool(pool.isActive()),
        autostart=bool(pool.autostart()),
    )


def _path_of(pool: Any) -> str:
    return etree.fromstring(pool.XMLDesc()).findtext("target/path", default="")


def _xml_of(pool: StoragePool) -> str:
    root = etree.Element("pool", type="dir")
    etree.SubElement(root, "name").text = pool.name
    etree.SubElement(root, "uuid").text = pool.uuid
    etree.SubElement(etree.SubElement(root, "target"), "path").text = pool.path
    return etree.tostring(root, encoding="unicode")


def _contents(directory: Path) -> list[Path]:
    # A file system that is mounted there has this from the start.
    return [entry for entry in directory.iterdir() if entry.name != "lost+found"]


def _build(pool: Any) -> None:
    """The directory; libvirt makes that of an idle pool only."""
    directory = Path(_path_of(pool))
    files.make_directory(directory.parent)
    if not pool.isActive():
        pool.build()
        return
    files.own_directory(directory, BUILT_MODE)
    pool.refresh()  # of what was in it, nothing is left


def _delete(path: str) -> None:
    """All of it, for it was new or empty when it became this lab's. A mount point itself stays."""
    directory = Path(path)
    try:
        for entry in _contents(directory):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        if not directory.is_mount():
            directory.rmdir()
    except OSError as error:
        raise OperatorError(f"{path} cannot be removed: {error}.") from error
