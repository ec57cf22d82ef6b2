"""The removal of directories: what is ours goes, and what is not is named. Mounts: tests/integration/modules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.own_directory import OwnDirectory
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import KNOWN_OF_LAB
from ansible_collections.nometal.ipi.plugins.modules import directory_removal

if TYPE_CHECKING:
    from collections.abc import Iterable

ROLES = Path(__file__).resolve().parents[3] / "roles"


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


def removed(path: Path, known: Iterable[str], *, check_mode: bool = False) -> dict[str, Any]:
    return directory_removal.run({"path": str(path), "known": list(known)}, check_mode=check_mode)


def test_directories_in_it_go_when_they_are_empty(tmp_path: Path) -> None:
    home, known = tmp_path / "home", ["host.json", "labs/", "jobs/j*"]
    tree(home, "host.json", "labs/", "jobs/j1", "jobs/notes.txt", "bmc/mine")
    stays = [f"{home}/bmc (not made by nometal.ipi)", f"{home}/jobs/notes.txt (not made by nometal.ipi)"]
    assert removed(home, known, check_mode=True)["steps"] == [f"remove {home}"]
    assert (home / "host.json").exists()
    done = removed(home, known)
    assert (done["steps"], done["kept"]) == ([f"remove {home}"], stays)
    again = removed(home, known)
    assert (again["changed"], again["kept"]) == (False, stays)
    tree(home, "labs/mine")
    assert not removed(home, known)["changed"]
    assert not removed(tmp_path / "none", known)["changed"]


def test_directories_may_be_patterns_and_keep_what_others_have_in_them(tmp_path: Path) -> None:
    tree(tmp_path, "release-1/lib/file", "release-2/lib/file", "release-2/theirs", "release-notes/theirs")
    known = ["release-[0-9]/lib", "release-[0-9]/record"]
    assert removal.found(tmp_path, known) == [tmp_path / "release-1", tmp_path / "release-2"]
    kept = [f"{tmp_path}/{name} (not made by nometal.ipi)" for name in ("release-notes", "release-2/theirs")]
    assert removal.remove_known(tmp_path, known) == kept
    assert removal.found(tmp_path, known) == []
    assert removal.foreign(tmp_path, known) == kept


def test_a_directory_is_replaced_around_what_others_have_in_it(tmp_path: Path) -> None:
    tree(tmp_path, "new/auth/ours", "new/manifests/ours", "old/auth/theirs", "old/theirs")
    files.replace_directory(tmp_path / "new", tmp_path / "old")
    there = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert there == ["old/auth/ours", "old/auth/theirs", "old/manifests/ours", "old/theirs"]
    files.replace_directory(tmp_path / "old", tmp_path / "new")
    assert not (tmp_path / "old").exists()


def test_the_role_and_the_modules_know_the_same_files_of_a_lab() -> None:
    variables = yaml.safe_load((ROLES / "host_prep/vars/main.yml").read_text(encoding="utf-8"))
    assert tuple(variables["host_prep_lab_files"]) == KNOWN_OF_LAB


def test_what_is_a_link_instead_of_a_directory_stays_with_all_that_is_in_it(tmp_path: Path) -> None:
    tree(tmp_path, "theirs/lab.json")
    (tmp_path / "home").symlink_to(tmp_path / "theirs")
    assert removal.remove_known(tmp_path / "home", ["lab.json"]) == [f"{tmp_path}/home (no directory)"]
    assert (tmp_path / "theirs/lab.json").exists()


def is_ours(own: OwnDirectory) -> bool:
    return own.has_ours


def test_our_directory_goes_but_for_what_somebody_has_put_there(tmp_path: Path) -> None:
    usual = tmp_path / "nometal/tools"
    own = OwnDirectory(usual, ".mark", "some_module", str(usual), ("ocp-*",))
    tree(usual, "notes.txt")
    assert [path.name for path in own.entries()] == []
    own.refuse_another("is another's.")
    with own.alone():
        own.make()
        tree(usual, "ocp-4.20.3/bin/oc")
        assert is_ours(own)
        assert own.remove() == own.foreign() == [f"{usual}/notes.txt (not made by nometal.ipi)"]
    assert (own.has_ours, [path.name for path in usual.iterdir()]) == (False, ["notes.txt"])
    own.refuse_another("is another's.")


def test_paths_of_mounts_are_read_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 0:30 / /srv/my\\040labs rw - tmpfs tmpfs rw\n"
    (tmp_path / "mountinfo").write_text(lines)
    monkeypatch.setattr(removal, "MOUNTS", tmp_path / "mountinfo")
    assert removal.mount_points() == {"/", "/srv/my labs"}
