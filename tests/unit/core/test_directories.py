from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._core.own_directory import OwnDirectory

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


def test_what_was_made_goes_with_what_was_in_it_and_what_was_there_stays(tmp_path: Path, host_baseline: Path) -> None:
    def own(name: str) -> OwnDirectory:
        return OwnDirectory(tmp_path / name, ".mark", "a_module", "/usual", ("ours",))

    (tmp_path / "there").mkdir()
    one, two, kept = own("opt/nometal/one"), own("opt/nometal/two"), own("there/three")
    for each in (one, two, kept):
        each.make()
        (each.path / "ours").touch()
    assert one.remove() == []
    assert two.path.is_dir()
    assert two.remove() == kept.remove() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]
    assert not host_baseline.exists()
