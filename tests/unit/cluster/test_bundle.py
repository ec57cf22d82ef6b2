"""A bundle is made whatever happens to its pieces."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import archive as bundle
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import gather as bundle_gather
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import pieces as bundle_pieces
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.archive import Piece
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.gather import Budget, Gathering, texts_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping


def texts(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        found = {member.name.partition("/")[2]: archive.extractfile(member) for member in archive}
        return {name: file.read().decode() for name, file in found.items() if file}


def failing() -> Mapping[str, str]:
    raise OperatorError("planted is not there")


def test_a_piece_that_fails_or_hangs_is_told_and_the_others_are_there(tmp_path: Path) -> None:
    forever = threading.Event()
    pieces = [
        Piece("bad", failing),
        Piece("slow", lambda: {"x": str(forever.wait())}, seconds=0.05),
        Piece("good", lambda: {"good/planted.txt": "has planted in it", "screen.ppm": b"P6 planted"}),
    ]
    path, contents = bundle.make(tmp_path / "bundles", "demo", pieces, lambda text: text.replace("planted", "-"))
    forever.set()
    assert contents == ["README.txt", "good/-.txt", "screen.ppm"]
    found = texts(path)
    assert found["good/-.txt"] == "has - in it"
    assert found["screen.ppm"] == "P6 planted"
    assert "  bad: - is not there\n  slow: it took longer than 0 s\n" in found["README.txt"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_newest_three_stay_and_what_one_that_was_killed_has_left_goes(tmp_path: Path) -> None:
    (tmp_path / ".demo-1.tar.gz.new").write_text("half")
    made = [bundle.make(tmp_path, "demo", [], str)[0] for _number in range(5)]
    for age, path in enumerate(reversed(made[2:])):
        os.utime(path, ns=(10**18 - age, 10**18 - age))
    newest, _contents = bundle.make(tmp_path, "demo", [], str)
    assert set(tmp_path.iterdir()) == {*made[3:], newest}


def test_of_a_long_file_whole_lines_at_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first secret\nsecond\nthird\n")
    assert bundle.tail(log) == "first secret\nsecond\nthird\n"
    assert bundle.tail(log, 17) == "second\nthird\n"
    assert bundle.tail(log, 3) == ""


def tar(members: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def test_what_is_packed_is_unpacked_and_what_is_no_text_left_out() -> None:
    inner = tar({"journal.log": b"planted"})
    data = tar(
        {
            "log-bundle/a.log": b"text",
            "../../etc/passwd": b"strange",
            "log-bundle/b.log.gz": gzip.compress(b"packed"),
            "log-bundle/c.tar.gz": inner,
            "log-bundle/d.bin": b"\0\1",
            "log-bundle/e.gz": b"no gzip",
            "x/f.log": b"of the same name",
        }
    )
    assert texts_of("x.tar.gz", data, Budget(10**6)) == {
        "x/log-bundle/a.log": "text",
        "x/etc/passwd": "strange",
        "x/log-bundle/b.log": "packed",
        "x/log-bundle/c/journal.log": "planted",
        "x/f.log": "of the same name",
    }
    assert texts_of("x.tar.gz", b"damaged", Budget(10**6)) == {}
    assert texts_of("x.tar.gz", data[:200], Budget(10**6)).keys() <= {"x/log-bundle/a.log", "x/etc/passwd"}


def test_no_more_is_unpacked_than_is_left() -> None:
    data = tar({"a": b"one\n" * 100, "b": b"two\n" * 100})
    found = texts_of("x.tgz", data, Budget(450))
    assert (len(found["x/a"]), found["x/b"]) == (400, "two\n" * 12)


PROGRAM = """#!/bin/sh
echo "$@"; test -e "$4"/.openshift_install.log || echo no log
touch "$4/empty"; {command}
"""


def gathering(tmp_path: Path, command: str, seconds: float = 20) -> dict[str, str]:
    tools, assets = tmp_path / "tools", tmp_path / "cluster"
    tools.mkdir()
    assets.mkdir()
    (assets / ".openshift_install.log").write_text("of the installation")
    program = tools / "openshift-baremetal-install"
    program.write_text(PROGRAM.format(command=command))
    program.chmod(0o755)
    wanted = Gathering(assets, tmp_path / "scratch", tools, "192.0.2.9", ["192.0.2.20", "192.0.2.21"], seconds)
    try:
        return bundle_gather.gather(wanted)
    finally:
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster", "tools"]
        assert [path.name for path in assets.iterdir()] == [".openshift_install.log"]


def test_gathering_names_addresses_and_leaves_the_installers_directory_alone(tmp_path: Path) -> None:
    found = gathering(tmp_path, 'mkdir b; echo text >b/a.log; tar -czf "$4/log-bundle-1.tar.gz" b; exit 5')
    directory = tmp_path / "scratch/cluster"
    masters = "--master 192.0.2.20 --master 192.0.2.21"
    said = f"gather bootstrap --dir {directory} --bootstrap 192.0.2.9 {masters}\nno log\nexit code 5\n"
    assert found == {"output.txt": said, "log-bundle-1/b/a.log": "text\n"}


def test_gathering_that_does_not_end_is_ended(tmp_path: Path) -> None:
    assert "ended, for it took longer than 0 s" in gathering(tmp_path, "exec sleep 60", seconds=0.2)["output.txt"]


def test_without_the_installer_nothing_is_gathered(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="has no openshift-install"):
        bundle_gather.gather(Gathering(tmp_path, tmp_path / "scratch", tmp_path, "192.0.2.9", [], 1))


@pytest.mark.parametrize(
    ("node", "is_master"),
    [
        ({"role": "control-plane", "ips": ["192.0.2.20"]}, True),
        ({"role": "control-plane", "ips": ["192.0.2.20"], "installer": False}, False),
        ({"role": "control-plane", "ips": []}, False),
        ({"role": "worker", "ips": ["192.0.2.20"]}, False),
    ],
)
def test_masters(node: dict[str, object], is_master: bool) -> None:
    assert bundle_pieces.is_master(node) == is_master
