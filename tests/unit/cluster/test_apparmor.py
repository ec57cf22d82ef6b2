"""The line by which AppArmor lets the installer's bootstrap VM read what is its own."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from fcntl import LOCK_EX, flock
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import apparmor
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

if TYPE_CHECKING:
    from pathlib import Path

DEMO, OTHER = Paths("demo"), Paths("demo2")
MUST_BE_THERE = "  #include <local/abstractions/libvirt-qemu>\n"
MAY_BE_MISSING = "  include if exists <local/abstractions/libvirt-qemu>\n"
RULE = '  "/var/lib/libvirt/openshift-images/demo-?????-bootstrap/*" rwk,  # nometal.ipi, lab demo.\n'


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(apparmor, "OF_VMS", tmp_path / "abstractions/libvirt-qemu")
    monkeypatch.setattr(apparmor, "LOCAL", tmp_path / "local/abstractions/libvirt-qemu")
    apparmor.OF_VMS.parent.mkdir()
    apparmor.OF_VMS.write_text(MUST_BE_THERE)
    return apparmor.LOCAL


def test_the_line_is_there_once_and_goes_with_its_lab(local: Path) -> None:
    local.parent.mkdir(parents=True)
    local.write_text("  /srv/** r,\n")
    for place in (DEMO, OTHER, DEMO):
        apparmor.allow(place)
    assert local.read_text().count(RULE) == 1
    assert apparmor.is_allowed(DEMO)
    assert local.stat().st_mode & 0o777 == 0o644
    apparmor.withdraw(DEMO)
    assert not apparmor.is_allowed(DEMO)
    assert apparmor.is_allowed(OTHER)
    apparmor.withdraw(OTHER)
    assert local.read_text() == "  /srv/** r,\n"


@pytest.mark.parametrize(("rules", "stays"), [(MUST_BE_THERE, True), (MAY_BE_MISSING, False)])
def test_a_file_that_has_to_be_there_stays(local: Path, rules: str, stays: bool) -> None:
    apparmor.OF_VMS.write_text(rules)
    apparmor.allow(DEMO)
    apparmor.withdraw(DEMO)
    assert (local.exists(), local.parent.exists()) == (stays, stays)


def test_labs_wait_for_each_other(local: Path) -> None:
    third = os.open(local.parents[2], os.O_RDONLY)
    flock(third, LOCK_EX)
    with ThreadPoolExecutor() as pool:
        changes = [pool.submit(apparmor.allow, DEMO), pool.submit(apparmor.withdraw, OTHER)]
        assert not wait(changes, 0.2).done
        local.parent.mkdir(parents=True)
        local.write_text("  /srv/** r,\n")
        os.close(third)
        for change in changes:
            change.result(10)
    assert local.read_text() == f"  /srv/** r,\n{RULE}"


def test_without_rules_for_vms_there_is_none(local: Path) -> None:
    apparmor.OF_VMS.unlink()
    apparmor.allow(DEMO)
    assert not local.parent.exists()
    assert not apparmor.is_allowed(DEMO)
