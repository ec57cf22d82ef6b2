# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, noting, refuse_all
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab import pool_path
from ansible_collections.nometal.ipi.plugins.module_utils._observe import volume_marks
from ansible_collections.nometal.ipi.plugins.module_utils._observe.disk_users import volumes_in_use
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.directory import PoolDirectory
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.state import StoragePool

try:
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone


class StoragePoolPort:
    """One lab's pool in libvirt. Nothing is done to a pool, a directory or a file that is not the lab's."""

    def __init__(
        self, connection: Any, pool: StoragePool, is_ours: Callable[[Path], bool] = lambda _path: False
    ) -> None:
        """Is ours: tells which files in the directory go with the pool."""
        self._connection = connection
        self._desired = pool
        self._is_ours = is_ours
        self.kept: list[str] = []
        """What was not ours in the directory, and stays, once it was removed."""

    def read(self) -> StoragePool | None:
        pool = self._find()
        if pool is not None:
            return _state_of(pool)
        if not self._directory(None).note:
            return None
        return replace(self._desired, active=False, autostart=False, defined=False)

    def stays(self) -> list[str]:
        """What will stay in the directory when the pool is removed."""
        pool = self._find()
        directory = self._directory(pool)
        return directory.stays(self._is_ours) if pool or directory.note else []

    def refuse_conflicts(self) -> None:
        """Say what stands in the way of the desired pool, before anything is changed."""
        path = self._desired.path
        pool = self._find()
        if pool is None:
            problems: list[str] = []
            for refuse in (
                self._refuse_name_of_others,
                self._refuse_directory_of_system,
                self._refuse_directory_of_others,
            ):
                with noting(problems):
                    refuse()
            refuse_all(problems)
        elif _path_of(pool) != path:
            raise OperatorError(
                f"storage pool {self._desired.name} lies at {_path_of(pool)}, not at {path}: "
                "pools do not move. Set the path back, or tear the lab down first."
            )

    def refuse_users(self, owner: str | None) -> None:
        """Say whose disks would be destroyed with the pool."""
        pool = self._find()
        in_use = list(volumes_in_use(self._connection, pool, owner, self._is_ours)) if pool else []
        if in_use:
            raise OperatorError(
                f"storage pool {self._desired.name} stays as it is, for others depend on it: {'; '.join(in_use)}. "
                "Remove those VMs with their disks first, or have their disks elsewhere."
            )

    def apply(self, step: Step) -> None:
        pool = self._find()
        directory = self._directory(pool)
        actions: dict[str, Callable[[], object]] = {
            "define": lambda: self._define(directory),
            "build": lambda: _build(pool, directory),
            "autostart": lambda: pool.setAutostart(1),
            "delete": lambda: self._delete(directory),
            "undefine": lambda: self._undefine(pool, directory),
        }
        if step.verb in actions:
            actions[step.verb]()
        else:
            {"start": pool.create, "stop": pool.destroy}[step.verb]()

    def _directory(self, pool: Any) -> PoolDirectory:
        path = _path_of(pool) if pool else self._desired.path
        return PoolDirectory(path, self._desired.name, self._desired.uuid)

    def _define(self, directory: PoolDirectory) -> None:
        """What a directory was like that is there already is noted before libvirt knows it."""
        directory.adopt()
        self._connection.storagePoolDefineXML(_xml_of(self._desired))

    def _delete(self, directory: PoolDirectory) -> None:
        self.kept = remove_directory(self._connection, directory, self._is_ours)

    @staticmethod
    def _undefine(pool: Any, directory: PoolDirectory) -> None:
        directory.clear_drafts()
        pool.undefine()

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

    def _refuse_directory_of_system(self) -> None:
        """Also where a symbolic link leads to it."""
        path = Path(self._desired.path)
        objection = pool_path.objection(str(path)) or pool_path.objection(str(path.resolve()))
        if objection:
            raise OperatorError(f"path {objection} (lab_spec.storage_pool.path).")

    def _refuse_directory_of_others(self) -> None:
        path = Path(self._desired.path)
        for pool in self._connection.listAllStoragePools():
            if _path_of(pool) == str(path):
                raise OperatorError(f"{path} belongs to storage pool {pool.name()}: name another directory.")
        if path.is_symlink() or (path.exists() and (not path.is_dir() or self._directory(None).contents())):
            raise OperatorError(
                f"{path} exists and is not an empty directory, so it may hold what is not this lab's: "
                "empty it yourself, or name another directory."
            )


def remove_directory(connection: Any, directory: PoolDirectory, is_ours: Callable[[Path], bool]) -> list[str]:
    """Returns what stays. Directories above that were made for it and that another pool needs go with that one."""
    parents = list(directory.note.parents) if directory.note else []
    kept = directory.remove(is_ours)
    left = [parent for parent in parents if Path(parent).is_dir()]
    for pool in connection.listAllStoragePools() if left else ():
        other = PoolDirectory(_path_of(pool), pool.name(), pool.UUIDString())
        above = [parent for parent in left if Path(parent) in other.path.parents]
        if above:
            other.inherit(above)
    return kept


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


def made_by(owner: str | None) -> Callable[[Path], bool]:
    """Tells the volumes that were made for VMs of an owner; without one, none is known."""
    return lambda path: bool(owner) and volume_marks.maker_of(path) == owner


def _build(pool: Any, directory: PoolDirectory) -> None:
    directory.make()
    if pool.isActive():
        pool.refresh()  # of what was in it, nothing is left
