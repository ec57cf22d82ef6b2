"""Which packages of the labs stay for others; and what dpkg and rpm say of packages."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._observe import package_managers, system
from ansible_collections.nometal.ipi.plugins.module_utils._observe.package_managers import (
    Apt,
    apt_weak,
    by_state,
    dpkg_packages,
    edited_conffiles,
    rpm_packages,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packages import (
    DEPENDS,
    RECOMMENDS,
    SUGGESTS,
    History,
    Package,
    needed,
)
from ansible_collections.nometal.ipi.plugins.modules import brought_packages

if TYPE_CHECKING:
    from pathlib import Path

BOTH = {RECOMMENDS, SUGGESTS}


def package(name: str, *needs: tuple[str, str], provides: str = "") -> Package:
    """Alternatives stand with a bar between them."""
    return Package(name, frozenset(provides.split()), tuple((kind, tuple(names.split("|"))) for kind, names in needs))


LIBVIRT = package("libvirt", (DEPENDS, "qemu"), (RECOMMENDS, "dnsmasq"), (SUGGESTS, "tools"))
OURS = [LIBVIRT, *map(package, ("qemu", "dnsmasq", "tools"))]
LATER, OLD = "theirs", "old"


@pytest.mark.parametrize(
    ("others", "weak", "kept"),
    [
        ([], BOTH, []),
        # What depends on it; and with it comes what an installation would have brought, but not what it suggests.
        ([package(LATER, (DEPENDS, "libvirt"))], BOTH, ["dnsmasq", "libvirt", "qemu"]),
        ([package(LATER, (DEPENDS, "libvirt"))], set(), ["libvirt", "qemu"]),
        ([package(LATER, (RECOMMENDS, "qemu"))], BOTH, ["qemu"]),
        ([package(LATER, (SUGGESTS, "qemu"))], BOTH, ["qemu"]),
        ([package(LATER, (SUGGESTS, "qemu"))], {RECOMMENDS}, []),
        ([package(LATER, (RECOMMENDS, "qemu"))], set(), []),
        ([package(LATER, (DEPENDS, "other|qemu")), package("other")], BOTH, ["qemu"]),
        # What was there before the labs has done without; but it cannot do without what it depends on by now.
        ([package(OLD, (RECOMMENDS, "qemu"), (SUGGESTS, "tools"))], BOTH, []),
        ([package(OLD, (DEPENDS, "qemu"))], BOTH, ["qemu"]),
        ([package(OLD, (DEPENDS, "other|qemu")), package("other")], BOTH, []),
        ([package(OLD, (DEPENDS, "emulator")), package("other", provides="emulator")], BOTH, []),
    ],
)
def test_what_others_need_stays(others: list[Package], weak: set[str], kept: list[str]) -> None:
    installed = {each.name: each for each in [*OURS, *others]}
    history = History(brought=[each.name for each in OURS], before=[OLD])
    assert sorted(needed(installed, history, weak)) == kept


def test_what_somebody_has_asked_for_stays_with_what_it_needs() -> None:
    history = History(brought=[each.name for each in OURS], wanted=["libvirt", "theirs"])
    assert needed({each.name: each for each in OURS}, history, {RECOMMENDS}) == {
        "libvirt": "it was asked for by name",
        "qemu": "libvirt depends on it",
        "dnsmasq": "libvirt recommends it",
    }


def test_a_package_that_provides_what_is_needed_stays() -> None:
    installed = {each.name: each for each in [package("ours", provides="mta"), package(LATER, (DEPENDS, "mta"))]}
    assert needed(installed, History(brought=["ours"]), set()) == {"ours": "theirs depends on it"}


def test_what_was_there_before_is_nobodys_to_remove() -> None:
    installed = {each.name: each for each in OURS}
    assert needed(installed, History(brought=["qemu"], before=["qemu"]), BOTH) == {}


def test_what_dpkg_shows() -> None:
    fields = "dnsmasq (= 2), resolver", "aa (>= 1) | bb:any, cc [amd64]", "dd", "", "ee | ff <!nocheck>"
    rows = [("installed", "one", *fields), ("config-files", "gone", *[""] * len(fields))]
    needs = ((DEPENDS, ("aa", "bb")), (DEPENDS, ("cc",)), (DEPENDS, ("dd",)), (SUGGESTS, ("ee", "ff")))
    found = dpkg_packages("".join("\t".join(row) + "\n" for row in rows))
    assert found == {"one": Package("one", frozenset({"dnsmasq", "resolver"}), needs)}


def test_packages_by_state() -> None:
    listed = "installed zstd\nconfig-files dnsmasq\nhalf-installed qemu\ninstalled xorriso\n"
    told = {"installed": ["zstd", "xorriso"], "config-files": ["dnsmasq"], "half-installed": ["qemu"]}
    assert by_state(listed) == told


def test_every_family_has_its_package_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(system.FAMILIES.values()) == set(package_managers.MANAGERS)
    rocky, arch = system.Distribution("Rocky", "rocky", ("rhel",), (9,)), system.Distribution("Arch", "arch", (), ())
    monkeypatch.setattr(package_managers, "distribution", lambda: rocky)
    assert isinstance(package_managers.of_host(), package_managers.Dnf)
    monkeypatch.setattr(package_managers, "distribution", lambda: arch)
    with pytest.raises(OperatorError, match="package manager of Arch is not known: use a host with Debian 12, "):
        package_managers.of_host()


def test_what_rpm_shows() -> None:
    rows = [
        ("qemu", "PROVIDENAME", "qemu"),
        ("qemu", "PROVIDENAME", "emulator(x86-64)"),
        ("qemu", "FILENAMES", "/usr/bin/qemu"),
        ("qemu", "REQUIRENAME", "(this(64bit) if that)"),
        ("qemu", "RECOMMENDNAME", "edk2"),
        ("tool", "PROVIDENAME", "tool"),
        ("tool", "REQUIRENAME", "/usr/bin/qemu"),
    ]
    found = rpm_packages("".join("\t".join(row) + "\n" for row in rows))
    assert found["qemu"].provides == {"qemu", "emulator(x86-64)", "/usr/bin/qemu"}
    assert found["qemu"].needs == ((DEPENDS, ("this(64bit)", "that")), (RECOMMENDS, ("edk2",)))
    assert needed(found, History(brought=["qemu"]), set()) == {"qemu": "tool depends on it"}


@pytest.mark.parametrize(
    ("dump", "kinds"),
    [
        ("", BOTH),
        ("APT::AutoRemove::SuggestsImportant=0\n", {RECOMMENDS}),
        ("APT::AutoRemove::RecommendsImportant=false\nAPT::AutoRemove::SuggestsImportant=true\n", {SUGGESTS}),
    ],
)
def test_what_apt_keeps_packages_for(dump: str, kinds: set[str]) -> None:
    assert apt_weak(dump) == kinds


def test_which_configuration_was_edited(tmp_path: Path) -> None:
    digest = hashlib.md5(b"as it came").hexdigest()  # noqa: S324 - dpkg's choice
    for name, text in (("same", "as it came"), ("edited", "otherwise")):
        (tmp_path / name).write_text(text)
    lines = [f" {tmp_path / name} {digest}" for name in ("same", "edited", "gone")]
    shown = "\n".join(["one", *lines, "", "two", f" {tmp_path}/same {digest} obsolete", ""])
    assert edited_conffiles(shown) == {"one": [str(tmp_path / "edited")]}


class Host(Apt):
    def __init__(self, installed: dict[str, Package], remains: set[str], edited: dict[str, list[str]]) -> None:
        self._installed, self._remains, self._edited = installed, remains, edited

    def installed(self) -> dict[str, Package]:
        return self._installed

    def remains(self) -> set[str]:
        return self._remains

    def weak(self) -> set[str]:
        return BOTH

    def asked_for(self) -> set[str]:
        return {"libvirt", "old"}

    def edited(self, names: object) -> dict[str, list[str]]:  # noqa: ARG002 - the same for all
        return self._edited


def test_what_goes_and_how(tmp_path: Path) -> None:
    notes = {
        "missing_packages": {"libvirt": True},
        "brought_packages": dict.fromkeys(["libvirt", "qemu", "dnsmasq", "tools", "half-gone", "half-edited"], True),
        "present_packages": {"names": "old", "removed": "dnsmasq"},
    }
    (tmp_path / "host.json").write_text(json.dumps(notes))
    others = {"old": package("old"), "later": package("later", (DEPENDS, "tools"))}
    host = Host(
        installed={**{each.name: each for each in OURS}, **others},
        remains={"half-gone", "half-edited", "somebodys"},
        edited={"qemu": ["/etc/qemu"], "half-edited": ["/etc/half"]},
    )
    found = brought_packages.packages_to_go(host, HostMemory(tmp_path / "host.json"))
    assert found["purge"] == ["half-gone", "libvirt"]
    assert found["remove"] == ["dnsmasq", "qemu"]
    assert found["kept"] == {"tools": "later depends on it"}
    assert found["edited"] == ["/etc/half", "/etc/qemu"]
