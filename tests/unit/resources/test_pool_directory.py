"""The directory of a pool: in one piece wherever its making or its removal is killed."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._observe import disk_users, volume_marks
from ansible_collections.nometal.ipi.plugins.module_utils._observe.volume_marks import made_by
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.directory import MARK, PoolDirectory

UUID = "0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e70"


class Killed(BaseException):
    pass


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """At the call of this number of what changes anything."""
    left = [number]

    def limited(target: object, name: str) -> None:
        real = getattr(target, name)

        def call(*arguments: object, **options: object) -> object:
            if not left[0]:
                raise Killed
            left[0] -= 1
            return real(*arguments, **options)

        monkeypatch.setattr(target, name, call)

    for name in ("mkdir", "chmod", "rename", "rmdir", "unlink"):
        limited(Path, name)
    for name in ("write_whole", "remove", "remove_empty"):
        limited(files, name)
    limited(removal, "remove_tree")


def is_ours(path: Path) -> bool:
    return path.name == "ours"


@pytest.mark.parametrize("number", range(16))
def test_its_making_is_completed_or_undone(tmp_path: Path, number: int) -> None:
    for undo in (False, True):
        home = tmp_path / f"{undo}"
        home.mkdir()
        pool = PoolDirectory(str(home / "labs/deep/demo"), "nometal-demo", UUID)
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, number)
            with suppress(Killed):
                pool.make()
        if undo:
            assert pool.remove(is_ours) == []
            assert list(home.iterdir()) == []
        else:
            pool.make()
            assert [path.relative_to(home).as_posix() for path in sorted(home.rglob("*"))] == [
                "labs",
                "labs/deep",
                "labs/deep/demo",
                f"labs/deep/demo/{MARK}",
            ]


@pytest.mark.parametrize("number", range(16))
def test_its_removal_is_completed(tmp_path: Path, number: int) -> None:
    pool = PoolDirectory(str(tmp_path / "labs/deep/demo"), "nometal-demo", UUID)
    pool.make()
    (pool.path / "ours").touch()
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, number)
        with suppress(Killed):
            pool.remove(is_ours)
    pool.remove(is_ours)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", range(8))
def test_a_directory_that_was_there_is_put_back_wherever_it_is_killed(tmp_path: Path, number: int) -> None:
    path = tmp_path / "theirs"
    path.mkdir(mode=0o750)
    before = path.stat().st_mode
    pool = PoolDirectory(str(path), "nometal-demo", UUID)
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, number)
        with suppress(Killed):
            pool.adopt()
            pool.remove(is_ours)
    pool.adopt()
    path.chmod(0o711)
    assert pool.remove(is_ours) == []
    assert list(path.iterdir()) == []
    assert path.stat().st_mode == before


def test_what_was_moved_elsewhere_stays_there(tmp_path: Path) -> None:
    pool = PoolDirectory(str(tmp_path / "demo"), "nometal-demo", UUID)
    pool.make()
    (pool.path / "ours").touch()
    pool.path.rename(tmp_path / "larger")
    pool.path.symlink_to(tmp_path / "larger")
    assert pool.remove(is_ours) == [f"{pool.path} (no directory)"]
    assert (tmp_path / "larger/ours").exists()


def test_the_word_of_another_pool_or_of_nothing_does_not_count(tmp_path: Path) -> None:
    pool = PoolDirectory(str(tmp_path / "demo"), "nometal-demo", UUID)
    pool.make()
    other = PoolDirectory(str(tmp_path / "demo"), "nometal-other", UUID[::-1])
    assert other.note is None
    assert other.contents() == [tmp_path / "demo" / MARK]
    for text in ("", "{}", "[]", '{"pool": 1}'):
        pool.mark.write_text(text)
        assert pool.note is None
    assert pool.remove(is_ours) != []
    assert pool.path.is_dir()


def test_a_mount_whose_server_is_gone_is_named_and_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever asks for its kind fails, or waits for ever."""
    pool = PoolDirectory(str(tmp_path / "demo"), "nometal-demo", UUID)
    pool.make()
    volume_marks.note_made_for(str(made_file(pool.path / "disk")), "demo 4f6e70")
    stale = pool.path / "stale"
    stale.mkdir()
    monkeypatch.setattr(removal, "mount_points", lambda: {str(stale)})
    leave(monkeypatch, stale)

    kept = [f"{stale} (a mount point, with what lies under it)"]
    assert disk_users.files_in(str(pool.path)) == [pool.path / MARK, pool.path / "disk"]
    assert pool.stays(made_by("demo")) == kept
    assert pool.remove(made_by("demo")) == kept
    assert list(pool.path.iterdir()) == [stale]
    assert removal.remove_tree(pool.path) == kept


def made_file(path: Path) -> Path:
    path.touch()
    return path


def leave(monkeypatch: pytest.MonkeyPatch, mounted: Path) -> None:
    """As an NFS mount does when its server has gone: no question about it is answered."""

    def limited(target: Any, name: str) -> None:
        real = getattr(target, name)

        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            if Path(str(path)).name == mounted.name:
                raise OSError(errno.ESTALE, "Stale file handle", str(path))
            return real(path, *arguments, **options)

        monkeypatch.setattr(target, name, call)

    for name in ("stat", "lstat"):
        limited(Path, name)
    for name in ("open", "getxattr"):
        limited(os, name)
