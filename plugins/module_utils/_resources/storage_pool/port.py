# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable
from uuid import UUID

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, refusals_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab import pool_path
from ansible_collections.nometal.ipi.plugins.module_utils._observe import volume_marks
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._observe.disk_users import volumes_in_use
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.directory import (
    PoolDirectory,
    path_of,
    remove_directory,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.state import StoragePool, plan

try:
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone


if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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

    def conflicts(self) -> Iterator[str]:
        """What stands in the way of the desired pool."""
        path = self._desired.path
        pool = self._find()
        if pool is None:
            yield from refusals_of(
                self._refuse_name_of_others, self._refuse_directory_of_system, self._refuse_directory_of_others
            )
        elif path_of(pool) != path:
            yield (
                f"storage pool {self._desired.name} lies at {path_of(pool)}, not at {path}: "
                "pools do not move. Set the path back, or tear the lab down first."
            )

    def users(self, owner: str | None) -> Iterator[str]:
        """Whose disks would be destroyed with the pool."""
        pool = self._find()
        in_use = list(volumes_in_use(self._connection, pool, owner, self._is_ours)) if pool else []
        if in_use:
            yield (
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
        path = path_of(pool) if pool else self._desired.path
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
        """What is said of a pool that only has the name. It is another lab's, or was made by others, and stays."""
        pool = None if self._find() else self._of_that_name()
        return f"storage pool {pool.name()} at {path_of(pool)} is not this lab's" if pool else ""

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
            if path_of(pool) == str(path):
                raise OperatorError(f"{path} belongs to storage pool {pool.name()}: name another directory.")
        if path.is_symlink() or (path.exists() and (not path.is_dir() or self._directory(None).contents())):
            raise OperatorError(
                f"{path} exists and is not an empty directory, so it may hold what is not this lab's: "
                "empty it yourself, or name another directory."
            )


def _state_of(pool: Any) -> StoragePool:
    path = path_of(pool)
    return StoragePool(
        name=pool.name(),
        uuid=pool.UUIDString(),
        path=path,
        directory=Path(path).is_dir(),
        active=bool(pool.isActive()),
        autostart=bool(pool.autostart()),
    )


def _xml_of(pool: StoragePool) -> str:
    root = etree.Element("pool", type="dir")
    etree.SubElement(root, "name").text = pool.name
    etree.SubElement(root, "uuid").text = pool.uuid
    etree.SubElement(etree.SubElement(root, "target"), "path").text = pool.path
    return etree.tostring(root, encoding="unicode")


def _build(pool: Any, directory: PoolDirectory) -> None:
    directory.make()
    if pool.isActive():
        pool.refresh()  # of what was in it, nothing is left


class LabPool(Resource["StoragePool | None", StoragePoolPort]):
    alone = partial(one_at_a_time, "storage_pool")

    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        self._stranger = ""
        self._kept: list[str] = []

    def desired(self) -> StoragePool | None:
        self._pool = pool_from(self.params)
        return self._pool if self.is_wanted else None

    @contextmanager
    def open(self) -> Iterator[StoragePoolPort]:
        with connect(self.params["libvirt_uri"]) as connection:
            port = StoragePoolPort(connection, self._pool, volume_marks.made_by(self.params["lab"]))
            yield port
            self._kept = port.kept or self._kept

    def conflicts(self) -> Iterator[str]:
        if self.is_wanted:
            return self.port.conflicts()
        self._stranger, self._kept = self.port.stranger(), self.port.stays()
        return self.port.users(self.params["lab"])

    def plan(self, current: StoragePool | None, desired: StoragePool | None) -> Sequence[Step]:
        return plan(current, desired)

    def result(self) -> dict[str, Any]:
        return {} if self.is_wanted else {"kept": self._kept}

    def warnings(self) -> list[str]:
        return [*([f"{self._stranger}: it stays."] if self._stranger else []), *removal.warnings(self._kept)]


def pool_from(params: dict[str, Any]) -> StoragePool:
    if not Path(params["path"]).is_absolute():
        raise OperatorError(f"path: must be an absolute path (got {params['path']}).")
    try:
        uuid = str(UUID(params["uuid"]))
    except ValueError as error:
        raise OperatorError(f"uuid: must be a UUID (got {params['uuid']}).") from error
    return StoragePool(name=params["name"], uuid=uuid, path=str(Path(params["path"])))
