"""BIOS attributes, what is kept of machines, and versions of firmware."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nometal_bmc.bios.attributes import ATTRIBUTES, DEFAULTS
from nometal_bmc.bios.store import Machine, Store
from nometal_bmc.redfish.bios_views import show_registry
from nometal_bmc.redfish.update_views import version_after

if TYPE_CHECKING:
    from pathlib import Path

VM = "0b3f8f4e-8c1d-4f5e-9d5a-000000000001"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(lambda: tmp_path / "machines")


def test_every_default_is_a_value_that_its_attribute_takes() -> None:
    assert [name for name, attribute in ATTRIBUTES.items() if not attribute.takes(attribute.default)] == []


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("ProcTurboMode", ["Enabled", "Disabled"], ["enabled", "", True, None, 1]),
        ("QuietBoot", [True, False], ["true", 0, 1, None]),
        ("BootRetryCount", [0, 10], [-1, 11, True, "3", 3.0, None]),
        ("AssetTag", ["", "x" * 32], ["x" * 33, "a\nb", 5, None]),
    ],
)
def test_an_attribute_takes_what_its_kind_allows(name: str, good: list[object], bad: list[object]) -> None:
    assert [value for value in good if not ATTRIBUTES[name].takes(value)] == []
    assert [value for value in bad if ATTRIBUTES[name].takes(value)] == []


def test_the_registry_describes_each_attribute() -> None:
    described = {entry["AttributeName"]: entry for entry in show_registry()["RegistryEntries"]["Attributes"]}
    assert {name: entry["DefaultValue"] for name, entry in described.items()} == DEFAULTS
    assert {entry["Type"] for entry in described.values()} == {"Boolean", "Enumeration", "Integer", "String"}
    assert [value["ValueName"] for value in described["EmbeddedSata"]["Value"]] == ["Ata", "Ahci", "Raid", "Off"]
    assert (described["BootRetryCount"]["LowerBound"], described["BootRetryCount"]["UpperBound"]) == (0, 10)
    assert described["AssetTag"]["MaxLength"] == 32


def test_what_is_pending_takes_effect_at_the_boot_and_is_kept(store: Store, tmp_path: Path) -> None:
    with store.change(VM) as machine:
        machine.pending = {"QuietBoot": False, "AssetTag": "7"}
    assert store.read(VM).present == DEFAULTS
    assert store.read(VM).coming == {**DEFAULTS, "QuietBoot": False, "AssetTag": "7"}
    with store.change(VM) as machine:
        machine.boot()
    again = Store(lambda: tmp_path / "machines").read(VM)
    assert again.present == again.coming == {**DEFAULTS, "QuietBoot": False, "AssetTag": "7"}
    with store.change(VM) as machine:
        machine.pending = dict(DEFAULTS)
        machine.boot()
    assert store.read(VM) == Machine()


def test_an_exception_changes_nothing(store: Store) -> None:
    def fail() -> None:
        with store.change(VM) as machine:
            machine.led = "Lit"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.read(VM).led == "Off"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"attributes": {}, "pending": {}, "version": 5, "led": "Off"}'])
def test_a_damaged_file_is_the_defaults(store: Store, tmp_path: Path, text: str) -> None:
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / f"{VM}.json").write_text(text)
    assert store.read(VM) == Machine()


def test_attributes_of_another_release_are_left_out(store: Store, tmp_path: Path) -> None:
    kept = {
        "attributes": {"Former": 1, "QuietBoot": False},
        "pending": {"QuietBoot": 7},
        "version": "2.0",
        "led": "Lit",
    }
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / f"{VM}.json").write_text(json.dumps(kept))
    assert store.read(VM) == Machine({"QuietBoot": False}, {}, "2.0", "Lit")


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("http://web/bios-2.4.1.bin", "2.4.1"),
        ("http://web/1.1.1/bios-2.5.bin?v=9.9.9", "2.5"),
        ("http://web/firmware.bin", "1.1.0"),
        ("http://web/", "1.1.0"),
    ],
)
def test_an_update_has_the_version_that_its_image_names_or_the_next_one(image: str, version: str) -> None:
    assert version_after("1.0.0", image) == version
