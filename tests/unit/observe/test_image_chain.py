"""What images are based on, from their headers. Real images: tests/integration/modules/test_storage_pool.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._observe import volume_marks
from ansible_collections.nometal.ipi.plugins.module_utils._observe.image_chain import Image, chain_of


def qcow2(path: Path, backing: str = "", kind: str = "", data_file: str = "", version: int = 3) -> Path:
    extensions = b"".join(
        number.to_bytes(4, "big") + len(text).to_bytes(4, "big") + text.encode().ljust((len(text) + 7) // 8 * 8, b"\0")
        for number, text in ((0xE2792ACA, kind), (0x44415441, data_file))
        if text
    )
    header_length = 104 if version == 3 else 72
    at = header_length + len(extensions) + 8
    head = b"QFI\xfb" + version.to_bytes(4, "big") + at.to_bytes(8, "big") * bool(backing)
    head = head.ljust(16, b"\0") + len(backing).to_bytes(4, "big")
    head = head.ljust(100, b"\0")[: min(header_length, 100)] + (
        header_length.to_bytes(4, "big") if version == 3 else b""
    )
    path.write_bytes(head + extensions + bytes(8) + backing.encode())
    return path


def test_a_chain_is_followed_to_its_end(tmp_path: Path) -> None:
    base = tmp_path / "base.raw"
    base.write_bytes(bytes(512))
    (tmp_path / "below").mkdir()
    qcow2(tmp_path / "one", "base.raw", "raw")
    qcow2(tmp_path / "below/two", "../one", "qcow2", version=2)
    top = qcow2(tmp_path / "below/top", f"file:{tmp_path}/below/two")
    chain = chain_of(Image(str(top), "qcow2"))
    assert chain.files == [
        str(top),
        f"{tmp_path}/below/two",
        f"{tmp_path}/below/../one",
        str(tmp_path / "below/../base.raw"),
    ]
    assert chain.unread == {}


@pytest.mark.parametrize(
    ("image", "files"),
    [
        ({"data_file": "base.raw"}, ["base.raw"]),
        ({"backing": 'json:{"driver":"raw","file":{"filename":"base.raw"}}'}, ["base.raw"]),
        ({"backing": 'json:{"file.filename":"base.raw"}'}, ["base.raw"]),
        ({"backing": "nbd://192.0.2.1/disk"}, []),
        ({"backing": "nbd+unix:///disk?socket=/run/s"}, []),
        ({"backing": 'json:{"driver":"rbd","pool":"p","image":"i"}'}, []),
    ],
)
def test_names_are_understood_as_qemu_does(tmp_path: Path, image: dict[str, Any], files: list[str]) -> None:
    (tmp_path / "base.raw").write_bytes(b"")
    chain = chain_of(Image(str(qcow2(tmp_path / "top", **image))))
    assert chain.files[1:] == [f"{tmp_path}/{name}" for name in files]
    assert chain.unread == {}


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ({"backing": "vfat:/dir"}, "it is based on vfat:/dir, which is of no known protocol"),
        ({"backing": "json:{}"}, "it is based on json:{}, which names no file"),
        ({"backing": "json:{"}, "it is based on json:{, which is invalid JSON"),
    ],
)
def test_what_cannot_be_known_is_named(tmp_path: Path, image: dict[str, Any], reason: str) -> None:
    top = str(qcow2(tmp_path / "top", **image))
    assert chain_of(Image(top)).unread == {top: reason}


def test_missing_damaged_and_odd_files_cannot_be_judged_unless_they_are_raw(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(b"QFI\xfb\0\0\0\3")
    os.mkfifo(tmp_path / "fifo")
    for name, reason in {
        "cut": "its header is cut off",
        "none": "it is missing",
        "fifo": "it is neither a file nor a block device",
    }.items():
        path = str(tmp_path / name)
        assert chain_of(Image(path, "qcow2")).unread == {path: reason}
        assert chain_of(Image(path, "raw")).unread == {}


def test_an_image_that_is_based_on_itself_has_an_end(tmp_path: Path) -> None:
    top = qcow2(tmp_path / "top", f"{tmp_path}/top")
    assert chain_of(Image(str(top))).files == [str(top)]


@pytest.mark.parametrize("has_attributes", [True, False])
def test_a_volume_has_its_mark_on_any_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_attributes: bool
) -> None:
    attributes: dict[str, bytes] = {}

    def write(path: str, _name: str, value: bytes) -> None:
        if not has_attributes:
            raise OSError(95, "Operation not supported")
        attributes[str(path)] = value

    def read(path: str, _name: str) -> bytes:
        if str(path) not in attributes:
            raise OSError(61, "No data available")
        return attributes[str(path)]

    monkeypatch.setattr(os, "setxattr", write)
    monkeypatch.setattr(os, "getxattr", read)
    volume, foreign = tmp_path / "disk.qcow2", tmp_path / "notes.txt"
    for path in (volume, foreign):
        path.touch()
    volume_marks.note_made_for(str(volume), "demo 1-2")
    assert volume_marks.made_for(str(volume)) == "demo 1-2"
    beside = [path for path in tmp_path.iterdir() if volume_marks.is_beside(path)]
    assert len(beside) == (0 if has_attributes else 1)
    assert [volume_marks.maker_of(path) for path in (volume, *beside)] == ["demo"] * (1 + len(beside))
    assert volume_marks.maker_of(foreign) == ""
    volume_marks.forget(str(volume))
    assert {path.name for path in tmp_path.iterdir()} == {"disk.qcow2", "notes.txt"}
