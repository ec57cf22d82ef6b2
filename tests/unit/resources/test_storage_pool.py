"""The storage pool: the decision by tables, the port against libvirt's own test driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    NotThereYetError,
    OperatorError,
    refuse_all,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.port import (
    LabPool,
    StoragePoolPort,
    pool_from,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.state import StoragePool, plan

if TYPE_CHECKING:
    from collections.abc import Iterator

POOL = StoragePool(name="nometal-demo", uuid="0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e70", path="/var/lib/libvirt/images/x")


@pytest.mark.parametrize(
    ("current", "verbs"),
    [
        (None, ["define", "build", "start", "autostart"]),
        (POOL, []),
        (replace(POOL, autostart=False), ["autostart"]),
        (replace(POOL, active=False), ["start"]),
        (replace(POOL, active=False, directory=False), ["build", "start"]),
        (replace(POOL, active=False, directory=False, autostart=False), ["build", "start", "autostart"]),
    ],
)
def test_what_is_missing_is_made(current: StoragePool | None, verbs: list[str]) -> None:
    assert [step.verb for step in plan(current, POOL)] == verbs


@pytest.mark.parametrize(
    ("current", "verbs"),
    [
        (None, []),
        (POOL, ["stop", "delete", "undefine"]),
        (replace(POOL, active=False), ["delete", "undefine"]),
        (replace(POOL, active=False, directory=False), ["undefine"]),
    ],
)
def test_what_is_there_is_removed_and_the_definition_last(current: StoragePool | None, verbs: list[str]) -> None:
    assert [step.verb for step in plan(current, None)] == verbs


@pytest.fixture
def connection() -> Iterator[Any]:
    # The test driver's state is one for the whole process, so each test cleans up.
    with connect("test:///default") as opened:
        yield opened
        for pool in opened.listAllStoragePools():
            if pool.name() != "default-pool":
                if pool.isActive():
                    pool.destroy()
                pool.undefine()


def test_the_port_makes_and_removes_it(connection: Any, tmp_path: Path) -> None:
    wanted = replace(POOL, path=str(tmp_path / "pool"))
    port = StoragePoolPort(connection, wanted, lambda path: path.name == "ours")
    for step in plan(port.read(), wanted):
        port.apply(step)
    assert port.read() == wanted
    assert plan(port.read(), wanted) == []

    (Path(wanted.path) / "media").mkdir()
    (Path(wanted.path) / "media" / "disk.qcow2").touch()
    (Path(wanted.path) / "ours").touch()
    stays = [f"{wanted.path}/media (not made by nometal.ipi)"]
    assert port.stays() == stays
    for step in plan(port.read(), None):
        port.apply(step)
    assert port.kept == stays
    assert port.read() is None
    assert [path.name for path in Path(wanted.path).rglob("*")] == ["media", "disk.qcow2"]


def test_a_pool_of_the_same_name_is_not_ours_without_our_uuid(connection: Any, tmp_path: Path) -> None:
    connection.storagePoolDefineXML(
        f"<pool type='dir'><name>{POOL.name}</name><target><path>{tmp_path}</path></target></pool>"
    )
    with pytest.raises(OperatorError, match=f"storage pool nometal-demo at {tmp_path} is not this lab's"):
        refuse_all(list(StoragePoolPort(connection, POOL).conflicts()))
    assert StoragePoolPort(connection, POOL).read() is None


def test_all_that_stands_in_the_way_is_refused_at_once(connection: Any) -> None:
    connection.storagePoolDefineXML(
        f"<pool type='dir'><name>{POOL.name}</name><target><path>/srv/theirs</path></target></pool>"
    )
    with pytest.raises(OperatorError) as refused:
        refuse_all(list(StoragePoolPort(connection, replace(POOL, path="/etc/passwd")).conflicts()))
    said = str(refused.value).splitlines()
    assert len(said) == 3
    for part, line in zip(("is not this lab's", "(lab_spec.storage_pool.path)", "is not an empty directory"), said):
        assert part in line


def test_our_pool_does_not_move(connection: Any, tmp_path: Path) -> None:
    before = replace(POOL, path=str(tmp_path / "before"))
    port = StoragePoolPort(connection, before)
    port.apply(plan(None, before)[0])
    with pytest.raises(OperatorError, match=f"lies at {tmp_path}/before, not at {tmp_path}/after"):
        refuse_all(list(StoragePoolPort(connection, replace(POOL, path=str(tmp_path / "after"))).conflicts()))


def test_a_directory_of_others_is_refused(connection: Any, tmp_path: Path) -> None:
    (tmp_path / "somebody's").touch()
    with pytest.raises(OperatorError, match="exists and is not an empty directory"):
        refuse_all(list(StoragePoolPort(connection, replace(POOL, path=str(tmp_path))).conflicts()))
    with pytest.raises(OperatorError, match="belongs to storage pool default-pool"):
        refuse_all(list(StoragePoolPort(connection, replace(POOL, path="/default-pool")).conflicts()))


def test_an_empty_directory_will_do(connection: Any, tmp_path: Path) -> None:
    refuse_all(list(StoragePoolPort(connection, replace(POOL, path=str(tmp_path))).conflicts()))


def test_check_mode_on_a_host_without_libvirt_foresees_all_steps(tmp_path: Path) -> None:
    params = {
        "name": POOL.name,
        "uuid": POOL.uuid,
        "path": str(tmp_path / "pool"),
        "lab": None,
        "state": "present",
        "libvirt_uri": f"qemu+unix:///system?socket={tmp_path}/none",
    }
    result = LabPool.run(params, check_mode=True)
    assert result["changed"]
    assert result["steps"][0] == "define nometal-demo"
    assert result["diff"]["before"] == ""
    with pytest.raises(NotThereYetError, match="Nothing answers for qemu"):
        LabPool.run(params, check_mode=False)


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [("path", "images/pool", "path: must be an absolute path"), ("uuid", "demo", "uuid: must be a UUID")],
)
def test_bad_arguments_are_named(key: str, value: str, complaint: str) -> None:
    params = {"name": POOL.name, "uuid": POOL.uuid, "path": POOL.path, key: value}
    with pytest.raises(OperatorError, match=complaint):
        pool_from(params)


def test_what_libvirt_refuses_is_told_in_its_words() -> None:
    with pytest.raises(OperatorError, match="libvirt at test:///default refused: "), connect("test:///default") as it:
        it.storagePoolLookupByName("none")
