"""The parts of the guests' image that need neither packages nor a guest."""

from __future__ import annotations

import gzip
import lzma
import stat
import struct
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import build as image_build
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import kernel as image_kernel
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import loaders as image_loaders
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import packages as image_packages
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import python as image_python
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.packages import (
    Apt,
    Dnf,
    NotCarriedError,
)
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.recipe import Recipe
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.store import (
    MARK,
    RECORD,
    Image,
    RehearsalImage,
    plan,
)
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.tree import Tree
from ansible_collections.nometal.ipi.plugins.modules import rehearsal_image

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCES = {"__init__.py": "", "main.py": "import json\n"}
PACKAGES: dict[str, list[str]] = {kind: [] for kind in rehearsal_image.KINDS}
RECIPE = Recipe(Path("/images"), SOURCES, PACKAGES, network_boot=False, sata_disks=False)
NOW = Image("image-1")


@pytest.mark.parametrize(
    ("current", "wanted", "steps"),
    [
        (None, None, []),
        (None, NOW, [Step("build", "image")]),
        (Image(None), NOW, [Step("build", "image")]),
        (Image("image-2", leftovers=True), NOW, [Step("build", "image")]),
        (NOW, NOW, []),
        (Image("image-1", leftovers=True), NOW, [Step("tidy", "images")]),
        (Image(None), None, [Step("remove", "images")]),
        (Image("image-1", leftovers=True), None, [Step("remove", "images")]),
    ],
)
def test_plan(current: Image | None, wanted: Image | None, steps: list[Step]) -> None:
    assert plan(current, wanted) == steps


def test_an_image_is_named_after_what_it_is_made_of() -> None:
    same = replace(RECIPE, path=Path("/elsewhere"), sources=dict(reversed(SOURCES.items())))
    assert same.name == RECIPE.name
    others = [
        replace(RECIPE, sources={**SOURCES, "more.py": ""}),
        replace(RECIPE, packages={**PACKAGES, "kernel": ["linux"]}),
        replace(RECIPE, network_boot=True),
        replace(RECIPE, sata_disks=True),
        replace(RECIPE, network_boot=True, sata_disks=True),
    ]
    assert len({recipe.name for recipe in (RECIPE, *others)}) == 6
    assert {recipe.name for recipe in (RECIPE, *others[2:])} == {*RECIPE.names}


@pytest.mark.parametrize("name", ["../x.py", "/x.py", "x.txt", "a-b.py", "x/../y.py"])
def test_strange_sources_are_refused(name: str) -> None:
    with pytest.raises(OperatorError, match="names must be of Python files"):
        replace(RECIPE, sources={**SOURCES, name: ""}).refuse_bad_sources()


def test_missing_sources_are_refused() -> None:
    for sources, missing in (({"__init__.py": ""}, "main.py"), ({**SOURCES, "sub/x.py": ""}, "sub/__init__.py")):
        with pytest.raises(OperatorError, match=f"sources: {missing} is missing"):
            replace(RECIPE, sources=sources).refuse_bad_sources()


def given(path: Path | str, **changed: Any) -> dict[str, Any]:
    return {
        "path": str(path),
        "sources": SOURCES,
        "packages": PACKAGES,
        "network_boot": False,
        "sata_disks": False,
        **changed,
    }


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    strange = tmp_path / "file"
    strange.touch()
    for path, said in ((tmp_path, "name a directory of its own"), (strange, "no images"), ("images", "absolute")):
        for state in ("present", "absent"):
            with pytest.raises(OperatorError, match=said):
                RehearsalImage.run(given(path, state=state), check_mode=False)
    assert [*tmp_path.iterdir()] == [strange]


def test_an_image_is_whole_or_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def build(recipe: Recipe, iso: Path, scratch: Path) -> bool:
        made.append(recipe.name)
        (scratch / "much").mkdir()
        iso.write_bytes(b"an image")
        return True

    monkeypatch.setattr(image_build, "build", build)

    def steps(*, check_mode: bool = False, **changed: Any) -> list[str]:
        told: list[str] = RehearsalImage.run(given(path, state="present") | changed, check_mode=check_mode)["steps"]
        return told

    path = tmp_path / "nometal" / "rehearsal"
    assert (steps(check_mode=True), path.exists()) == (["build image"], False)
    assert (steps(), steps(), len(made)) == (["build image"], [], 1)
    [image] = path.glob("image-*")
    assert sorted(each.name for each in image.iterdir()) == [RECORD, "node.iso"]
    (image / "node.iso").write_bytes(b"half an")
    assert (steps(), steps(), len(made)) == (["build image"], [], 2)
    (path / "building-xy").mkdir()
    assert (steps(check_mode=True), steps(), steps()) == (["tidy images"], ["tidy images"], [])
    assert steps(network_boot=True) == ["build image"]
    assert steps(sata_disks=True) == ["build image"]
    assert steps() == []  # all are kept, for labs of either kind
    assert steps(sources={**SOURCES, "new.py": ""}) == ["build image"]
    assert sorted(each.name for each in path.iterdir()) == [MARK, f"{made[-1]}"]
    assert (steps(state="absent"), path.parent.exists(), steps(state="absent")) == (["remove images"], False, [])


def test_a_failed_build_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(image_build, "build", fail)
    (tmp_path / MARK).touch()
    (tmp_path / "image-old").mkdir()
    with pytest.raises(OperatorError, match="No space left"):
        RehearsalImage.run(given(tmp_path, state="present"), check_mode=False)
    assert sorted(each.name for each in tmp_path.iterdir()) == [MARK, "image-old"]


def test_the_archive_is_what_a_kernel_unpacks() -> None:
    tree = Tree()
    tree.file("/etc/deep/hosts", b"text\n", 0o600)
    tree.link("/init", "sbin/start")
    tree.character_device("/dev/console", 5, 1)
    found = dict(entries(tree.archive()))
    assert found["etc/deep"] == (stat.S_IFDIR | 0o755, 0, 0, b"")
    assert found["etc/deep/hosts"] == (stat.S_IFREG | 0o600, 0, 0, b"text\n")
    assert found["init"] == (stat.S_IFLNK | 0o777, 0, 0, b"sbin/start")
    assert found["dev/console"] == (stat.S_IFCHR | 0o600, 5, 1, b"")
    names = [*found]
    assert names.index("etc") < names.index("etc/deep") < names.index("etc/deep/hosts")
    assert names[-1] == "TRAILER!!!"


def entries(archive: bytes) -> Iterator[tuple[str, tuple[int, int, int, bytes]]]:
    at = 0
    while at < len(archive):
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        begin = at + 110 + fields[11]
        name = archive[at + 110 : begin - 1].decode()
        begin += -begin % 4
        yield name, (fields[1], fields[9], fields[10], archive[begin : begin + fields[6]])
        at = begin + fields[6] + -fields[6] % 4


def kernel_below(root: Path, version: str, *, signed: bool = False, without: Sequence[str] = ()) -> Path:
    modules = root / "lib/modules" / version
    for name in image_kernel.SATA_DRIVERS:
        if name not in without:
            file = modules / "kernel/drivers" / f"{name.replace('_', '-')}.ko"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"\x7fELF\0depends=\0")
    image = root / "boot" / f"vmlinuz-{version}"
    image.parent.mkdir(exist_ok=True)
    image.write_bytes(program(signed=signed))
    return modules


def program(*, signed: bool) -> bytes:
    header = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 64) + b"PE\0\0".ljust(24, b"\0") + struct.pack("<H", 0x20B)
    tables = b"".join(struct.pack("<II", 0, 8 if signed and number == 4 else 0) for number in range(16))
    return header.ljust(64 + 24 + 112, b"\0") + tables


def test_drivers_come_after_those_that_they_need(tmp_path: Path) -> None:
    modules = kernel_below(tmp_path, "6.1.0")
    (modules / "kernel/virtio.ko.xz").write_bytes(lzma.compress(b"\0depends=\0"))
    (modules / "kernel/virtio_ring.ko.gz").write_bytes(gzip.compress(b"x\0depends=virtio\0intree=Y\0"))
    (modules / "kernel/drivers/virtio-net.ko").write_bytes(b"\0depends=virtio-ring,net_core,virtio\0")
    (modules / "kernel/drivers/nvme.ko").unlink()
    (modules / "modules.builtin").write_text("kernel/drivers/nvme.ko\nkernel/net/net_core.ko\n")
    kernel = image_kernel.newest(tmp_path, image_kernel.DRIVERS)
    assert kernel
    drivers = kernel.drivers(image_kernel.DRIVERS)
    order = [*drivers]
    assert order.index("virtio") < order.index("virtio_ring") < order.index("virtio_net")
    assert drivers["virtio"] == b"\0depends=\0"
    assert {"nvme", "net_core", "ahci"} & {*order} == set()
    assert [*kernel.drivers(image_kernel.SATA_DRIVERS)] == [*order, "ahci"]


def test_the_newest_signed_kernel_with_all_drivers_is_taken(tmp_path: Path) -> None:
    assert version_of(tmp_path) == ""
    kernel_below(tmp_path, "6.1.0-9", without=["virtio_scsi"])
    assert version_of(tmp_path) == ""
    for version in ("6.1.0-8", "6.1.0-10"):
        kernel_below(tmp_path, version, without=image_kernel.DISPENSABLE)
    assert version_of(tmp_path) == "6.1.0-10"
    kernel_below(tmp_path, "6.1.0-7", signed=True)
    assert version_of(tmp_path) == "6.1.0-7"


def test_a_kernel_without_a_driver_for_sata_disks_is_taken_where_there_are_none(tmp_path: Path) -> None:
    kernel_below(tmp_path, "6.1.0-9-cloud", without=["ahci"])
    assert version_of(tmp_path) == "6.1.0-9-cloud"
    assert version_of(tmp_path, image_kernel.SATA_DRIVERS) == ""
    kernel_below(tmp_path, "6.1.0-8")
    assert version_of(tmp_path, image_kernel.SATA_DRIVERS) == "6.1.0-8"


def version_of(root: Path, drivers: Sequence[str] = image_kernel.DRIVERS) -> str:
    kernel = image_kernel.newest(root, drivers)
    return kernel.version if kernel else ""


DEBIAN = (
    "usr/lib/shim/shimx64.efi.signed",
    *(f"usr/lib/grub/x86_64-efi-signed/{name}.efi.signed" for name in ("grubx64", "grubnetx64")),
)
RHEL = ("boot/efi/EFI/redhat/shimx64.efi", "boot/efi/EFI/redhat/grubx64.efi")
FEDORA = ("usr/lib/efi/shim/15.8-3/EFI/fedora/shimx64.efi", "usr/lib/efi/grub2/1:2.12-40/EFI/fedora/grubx64.efi")


@pytest.mark.parametrize(("names", "vendor"), [(DEBIAN, "ubuntu"), (RHEL, "redhat"), (FEDORA, "fedora")])
def test_signed_loaders_are_found_where_distributions_have_them(
    names: tuple[str, ...], vendor: str, tmp_path: Path
) -> None:
    for name in names:
        assert image_loaders.find_signed(tmp_path, "ubuntu") is None
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(program(signed=True))
    signed = image_loaders.find_signed(tmp_path, "ubuntu")
    assert signed
    assert f"EFI/{vendor}/grub.cfg" in signed.files
    assert signed.vendor == vendor
    assert {*signed.network} == {"uefi.efi", "grubx64.efi"}
    (tmp_path / names[1]).write_bytes(program(signed=False))
    assert image_loaders.find_signed(tmp_path, "ubuntu") is None


def test_python_is_compiled_and_the_agent_keeps_its_text(tmp_path: Path) -> None:
    tree = Tree()
    sources = {**SOURCES, "sub/__init__.py": "", "sub/one.py": "from .. import main\n"}
    image_python.put_python(tree, sources, tmp_path)
    found = dict(entries(tree.archive()))
    assert {"init", "usr/bin/python3", "rehearsal/agent/main.pyc", "rehearsal/agent/sub/one.pyc"} <= {*found}
    assert found["rehearsal/sources/agent/main.py"][3] == b"import json\n"
    assert any(name.endswith("/json/decoder.pyc") for name in found)
    assert [name for name in found if name.endswith(".py") and not name.startswith("rehearsal/sources/")] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [("import nonsense\n", "imports nonsense"), ("import (\n", "line 1: "), ("import asyncio\n", "asyncio")],
)
def test_an_agent_that_cannot_run_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=said):
        image_python.put_python(Tree(), {**SOURCES, "main.py": text}, tmp_path)


class Programs:
    """Answers by the first words of a command; a text that begins with ! is a failure."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, command: Sequence[str], _directory: Path | None = None) -> str:
        self.asked.append(" ".join(command))
        for words, answer in self.answers.items():
            if all(word in command for word in words.split("_")):
                if answer.startswith("!"):
                    raise image_packages.CommandError(answer[1:])
                return answer
        return ""


def test_the_parts_of_a_kernel_are_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    depends = ["linux-image-cloud", "  Depends: linux-image-6.1", "  Depends: kmod", "  Depends: linux-modules-6.1"]
    programs = Programs(depends="\n".join(depends))
    monkeypatch.setattr(image_packages, "_run", programs)
    Apt(tmp_path).download(["linux-image-cloud"], tmp_path)
    assert programs.asked[-1].endswith("download linux-image-6.1 linux-image-cloud linux-modules-6.1")


@pytest.mark.parametrize(
    ("update", "error", "said"),
    [("", NotCarriedError, "does not carry"), ("!no route", OperatorError, "(?s)`apt-get update` works.*no route")],
)
def test_apt_tells_a_missing_package_from_a_missing_mirror(
    update: str, error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(update=update, download="!nothing")
    monkeypatch.setattr(image_packages, "_run", programs)
    with pytest.raises(OperatorError, match=said) as caught:
        Apt(tmp_path).download(["shim-signed"], tmp_path)
    assert caught.type is error
    assert [asked.split()[-1] for asked in programs.asked] == ["shim-signed", "update", "shim-signed"]


def test_a_broken_mirror_beside_the_distributions_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(update="!one of many", download="!nothing")
    monkeypatch.setattr(image_packages, "_run", programs)
    apt = Apt(tmp_path)
    monkeypatch.setattr(Path, "glob", lambda *_: iter([Path("mirror_main_binary-amd64_Packages")]))
    with pytest.raises(NotCarriedError):
        apt.download(["shim-signed"], tmp_path)


def test_dnf_downloads_and_checks_signatures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs()
    monkeypatch.setattr(image_packages, "_run", programs)
    monkeypatch.setattr(image_packages, "KEYS", tmp_path / "keys-of-system")
    (tmp_path / "keys-of-system").mkdir()
    (tmp_path / "keys-of-system/RPM-GPG-KEY").touch()
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "shim.rpm").touch()
    Dnf(tmp_path).download(["shim-x64"], packages)
    assert [asked.split()[0] for asked in programs.asked] == ["dnf", "rpmkeys", "rpmkeys"]
    assert programs.asked[-1].endswith(f"--checksig {packages}/shim.rpm")
    programs.answers = {"download": "!nothing"}
    with pytest.raises(NotCarriedError):
        Dnf(tmp_path).download(["shim-x64"], packages)
    programs.answers = {"dnf": "!no route"}
    with pytest.raises(OperatorError, match="dnf makecache"):
        Dnf(tmp_path).download(["shim-x64"], packages)
