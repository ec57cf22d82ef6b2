"""Whose a volume is: copies and links bear the same mark, and are not the lab's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._observe import volume_marks

if TYPE_CHECKING:
    from pathlib import Path


def test_a_copy_and_a_link_under_another_name_are_not_ours(tmp_path: Path) -> None:
    disk, copy, link = (tmp_path / name for name in ("demo-0.qcow2", "backup.qcow2", "link.qcow2"))
    disk.touch()
    volume_marks.note_made_for(str(disk), "demo 1-2")
    os.link(disk, link)
    copy.touch()
    os.setxattr(copy, volume_marks.MARK, os.getxattr(disk, volume_marks.MARK))
    assert [volume_marks.maker_of(path) for path in (disk, copy, link)] == ["demo", "", ""]
    assert volume_marks.made_for(str(disk)) == "demo 1-2"


def test_a_mark_without_a_name_is_one_of_an_earlier_version(tmp_path: Path) -> None:
    disk = tmp_path / "demo-0.qcow2"
    disk.touch()
    os.setxattr(disk, volume_marks.MARK, b"demo 1-2")
    assert (volume_marks.maker_of(disk), volume_marks.made_for(str(disk))) == ("demo", "demo 1-2")
