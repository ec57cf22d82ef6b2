"""Who has a file open: any process but those of VMs that are judged otherwise, and loop devices."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._observe import open_files


def process(root: Path, pid: int, comm: str, file: Path, *words: str) -> None:
    directory = root / "proc" / str(pid)
    (directory / "fd").mkdir(parents=True)
    (directory / "comm").write_text(f"{comm}\n")
    (directory / "cmdline").write_bytes(b"\0".join(map(os.fsencode, (comm, *words))))
    (directory / "fd/3").symlink_to(file)


def test_those_that_have_it_open_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "PROCESSES", tmp_path / "proc")
    monkeypatch.setattr(open_files, "LOOPS", tmp_path / "block")
    disk, other = tmp_path / "disk", tmp_path / "other"
    disk.touch()
    other.touch()
    (tmp_path / "hard link").hardlink_to(disk)
    process(tmp_path, 21, "qemu-nbd", tmp_path / "hard link", "--connect=/dev/nbd0", str(disk))
    process(tmp_path, 22, "qemu-system-x86", disk, "-name", "guest=demo-0,debug-threads=on")
    process(tmp_path, 23, "libvirtd", disk)
    process(tmp_path, 24, "cat", other)
    (tmp_path / "block/loop7/loop").mkdir(parents=True)
    (tmp_path / "block/loop7/loop/backing_file").write_text(f"{disk}\n")
    key = open_files.key_of(disk)

    expected = [(key, "process qemu-nbd (21)"), (key, "device /dev/loop7")]
    assert list(open_files.holders({key}, ["demo-0"])) == expected
    assert (key, "process qemu-system-x86 (22)") in list(open_files.holders({key}, ["demo-01"]))
