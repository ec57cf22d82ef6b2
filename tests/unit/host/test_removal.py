"""The removal of directories: what is ours goes, and what is not is named. Mounts: tests/integration/modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._host import removal
from ansible_collections.nometal.ipi.plugins.module_utils._host.own_directory import OwnDirectory

if TYPE_CHECKING:
    from pathlib import Path


def tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_text("canary")


def test_a_tree_goes_and_links_in_it_are_not_followed(tmp_path: Path) -> None:
    tree(tmp_path, "ours/deep/file", "ours/empty/", "theirs/file")
    (tmp_path / "ours/deep/link").symlink_to(tmp_path / "theirs")
    assert removal.remove_tree(tmp_path / "ours") == []
    assert removal.remove_tree(tmp_path / "ours") == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "theirs"]


def test_a_link_goes_and_not_what_it_leads_to(tmp_path: Path) -> None:
    tree(tmp_path, "theirs/file")
    (tmp_path / "ours").symlink_to(tmp_path / "theirs")
    assert removal.remove_tree(tmp_path / "ours") == []
    assert (tmp_path / "theirs/file").exists()
    assert not (tmp_path / "ours").is_symlink()


@pytest.mark.parametrize("last", ["", "lab.json"])
def test_known_entries_go_and_the_directory_when_nothing_else_is_in_it(tmp_path: Path, last: str) -> None:
    home = tmp_path / "home"
    tree(home, "lab.json", "run-1/file", "run-2", "notes.txt", "lost+found/")
    known = ["run-*"] if last else ["run-*", "lab.json"]
    stays = [f"{home}/notes.txt (not made by nometal.ipi)"]
    assert removal.foreign(home, [*known, "lab.json"]) == stays
    assert removal.remove_known(home, known, last) == stays
    assert removal.entries(home) == [home / "notes.txt"]
    (home / "notes.txt").unlink()
    (home / "lost+found").rmdir()
    assert removal.remove_known(home, known, last) == []
    assert not home.exists()
    assert removal.remove_known(home, known, last) == []


def test_what_is_a_link_instead_of_a_directory_stays_with_all_that_is_in_it(tmp_path: Path) -> None:
    tree(tmp_path, "theirs/lab.json")
    (tmp_path / "home").symlink_to(tmp_path / "theirs")
    assert removal.remove_known(tmp_path / "home", ["lab.json"]) == [f"{tmp_path}/home (no directory)"]
    assert (tmp_path / "theirs/lab.json").exists()


def test_our_directory_goes_but_for_what_somebody_has_put_there(tmp_path: Path) -> None:
    usual = tmp_path / "nometal/tools"
    own = OwnDirectory(usual, ".mark", "some_module", str(usual), ("ocp-*",))
    tree(usual, "notes.txt")
    assert not own.has_ours
    own.refuse_another("is another's.")
    with own.alone():
        own.make()
        tree(usual, "ocp-4.20.3/bin/oc")
        assert own.has_ours
        assert own.remove() == own.foreign() == [f"{usual}/notes.txt (not made by nometal.ipi)"]
    assert not own.has_ours
    assert [path.name for path in usual.iterdir()] == ["notes.txt"]
    own.refuse_another("is another's.")


def test_paths_of_mounts_are_read_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 0:30 / /srv/my\\040labs rw - tmpfs tmpfs rw\n"
    (tmp_path / "mountinfo").write_text(lines)
    monkeypatch.setattr(removal, "MOUNTS", tmp_path / "mountinfo")
    assert removal.mount_points() == {"/", "/srv/my labs"}
