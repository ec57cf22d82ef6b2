from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._host import directories
from ansible_collections.nometal.ipi.plugins.module_utils._host.memory import HostMemory

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_directories_that_were_missing_go_unless_others_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = HostMemory(tmp_path / "host.json")
    monkeypatch.setattr(directories, "MEMORY", memory)
    (tmp_path / "theirs").mkdir()
    for directory in ("theirs/ours", "a/b/c", "x/y"):
        directories.make(tmp_path / directory)
    directories.make(tmp_path / "a/b/c")
    (tmp_path / "x/file").touch()
    directories.remove(memory)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["host.json", "theirs", "x"]
    assert list((tmp_path / "theirs").iterdir()) == []
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["file"]
