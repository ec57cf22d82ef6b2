# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node learns what it was started from, and which rehearsal that belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._agent import disks, letter, machine, node, reports
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import build

if TYPE_CHECKING:
    from pathlib import Path

TOLD = {"play": "p1", "urls": ["http://192.0.2.5:6180"]}


def medium(path: Path) -> Path:
    """As an ISO has it: a label at its place, and behind that the archive that is to hold the letter."""
    content = bytes(letter.LABEL_AT) + letter.LABEL
    path.write_bytes(content.ljust(200 * 2048, b"\0") + build.letter().archive() + bytes(reports.BLOCK))
    return path


@pytest.fixture
def nodes_disks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The first is empty, the second holds the image, the third is read only by nobody."""
    (tmp_path / "sda").write_bytes(bytes(40_000))
    found = [str(tmp_path / "sda"), str(medium(tmp_path / "sdb")), str(tmp_path / "sdc")]
    monkeypatch.setattr(disks, "all_disks", lambda: [{"device": device} for device in found])
    monkeypatch.setattr(disks, "DEVICE_SECONDS", 0.1)
    return found


def started(monkeypatch: pytest.MonkeyPatch, words: dict[str, str]) -> tuple[dict[str, object], str]:
    monkeypatch.setattr(machine, "command_line", lambda: words)
    return node.started_with()


def test_the_letter_is_served_where_the_image_has_its_place(tmp_path: Path) -> None:
    path = medium(tmp_path / "iso")
    image = reports.Image(str(path), TOLD)
    served = b"".join(image.blocks())
    before = path.read_bytes()
    place = before.index(letter.LETTER_MARK)
    assert served == before[:place] + letter.packed(TOLD) + before[place + letter.LETTER_BYTES :]
    assert b"".join(image.blocks(place + 7)) == served[place + 7 :]


def test_a_medium_without_such_a_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "iso"
    path.write_bytes(bytes(3 * reports.BLOCK))
    with pytest.raises(ValueError, match="no place for a letter"):
        reports.Image(str(path), TOLD)


@pytest.mark.parametrize(("root", "at"), [("cd0", None), ("hd96", None), ("hd0", 1), ("hd12", 1)])
def test_disks_and_cds_are_told_apart_by_what_the_boot_loader_calls_them(
    root: str, at: int | None, nodes_disks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letter").write_bytes(letter.packed(TOLD))
    monkeypatch.setattr(letter, "LETTER", str(tmp_path / "letter"))
    expected = "cd" if at is None else nodes_disks[at]
    assert started(monkeypatch, {"rehearsal.medium": root}) == (TOLD, expected)


def test_a_disk_that_is_not_seen_has_no_name(nodes_disks: list[str]) -> None:
    del nodes_disks[1]
    assert disks.started_from("hd0") == ""


def test_from_the_network_the_letter_comes_with_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"rehearsal.medium": "network", "rehearsal.letter": b'{"play": "p1"}'.hex()}
    assert started(monkeypatch, words) == ({"play": "p1"}, "network")


def test_a_medium_that_nobody_has_written_into_is_of_no_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter, "LETTER", str(tmp_path / "letter"))
    assert started(monkeypatch, {"rehearsal.medium": "cd0"}) == ({}, "")
    (tmp_path / "letter").write_bytes(letter.LETTER_MARK.ljust(letter.LETTER_BYTES, b"\n"))
    assert started(monkeypatch, {"rehearsal.medium": "cd0"}) == ({}, "")
