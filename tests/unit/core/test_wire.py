"""Declared dataclasses are read with all that is wrong at once, and written as they were read."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import InvalidDataError, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Section, called, key
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec, from_dict, to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Firmware


@dataclass(frozen=True)
class Nic:
    mac: str = key(types.MAC, "Its address.", required=True)
    order: int | None = called("boot_order", key(Whole(1, 9), "When it is tried."))


@dataclass(frozen=True)
class Vm:
    name: str = called("vm_name", key(types.WORDS, "Its name.", required=True))
    firmware: Firmware = key(Choice(tuple(Firmware)), "Its firmware.", default="uefi")
    nics: tuple[Nic, ...] = key(ListOf(Section(Nic)), "Its network cards.", default=[])
    tpm: bool = key(YesNo(), "Whether it has a TPM.", default=False)


@dataclass(frozen=True)
class Given:
    vms: tuple[Vm, ...] = key(ListOf(Section(Vm, ignores_others=True)), "The VMs.", default=[])


MAC = "52:54:00:00:00:01"
GIVEN: dict[str, Any] = {
    "vms": [{"vm_name": "one", "firmware": "bios", "nics": [{"mac": MAC, "boot_order": 1}], "tpm": None, "role": "x"}],
    "state": "present",
}


def test_nested_lists_are_read_with_defaults_and_other_names() -> None:
    read = from_dict(Given, GIVEN)
    assert read == Given((Vm("one", Firmware.BIOS, (Nic(MAC, 1),), tpm=False),))
    assert read.vms[0].firmware is Firmware.BIOS
    assert from_dict(Given, {}) == Given()


def test_what_was_read_is_written_with_the_names_of_its_keys() -> None:
    written = to_dict(from_dict(Given, GIVEN))
    assert written == {
        "vms": [{"vm_name": "one", "firmware": "bios", "nics": [{"mac": MAC, "boot_order": 1}], "tpm": False}]
    }
    assert type(written["vms"][0]["firmware"]) is str
    assert from_dict(Given, written) == from_dict(Given, GIVEN)


def test_a_module_takes_what_is_declared() -> None:
    assert argument_spec(Given) == {"vms": {"type": "list", "elements": "dict", "default": []}}
    nics = {"mac": {"type": "str", "required": True}, "boot_order": {"type": "int"}}
    firmware = {"type": "str", "choices": ["uefi", "uefi-secure", "bios"], "default": "uefi"}
    spec = argument_spec(Vm)
    assert spec == {
        "vm_name": {"type": "str", "required": True},
        "firmware": firmware,
        "nics": {"type": "list", "elements": "dict", "options": nics, "default": []},
        "tpm": {"type": "bool", "default": False},
    }
    assert type(spec["firmware"]["choices"][0]) is str
    assert argument_spec(Vm, needed=())["vm_name"] == {"type": "str"}


@dataclass(frozen=True)
class Pair:
    low: int = key(Whole(0, 9), "The lower.", default=1)
    high: int = key(Whole(0, 9), "The higher.", default=3)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise InvalidDataError("high", must_be(f"at least {self.low}", self.high))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"low": 5, "high": 4}, "high: must be at least 5 (got 4)"),
        ({"low": 5, "high": "x"}, "high: must be a whole number from 0 to 9 (got 'x')"),
    ],
)
def test_a_contradiction_is_named_once_its_values_can_be_read(given: dict[str, Any], told: str) -> None:
    with pytest.raises(OperatorError) as caught:
        from_dict(Pair, given)
    assert str(caught.value) == told


def test_all_that_is_wrong_is_named_at_once_with_its_path() -> None:
    wrong = {"vms": [{"firmware": "efi", "nics": [{"mac": MAC}, {"mac": "52", "boot_ordr": 0}]}, 7]}
    with pytest.raises(OperatorError) as caught:
        from_dict(Given, wrong)
    assert str(caught.value).splitlines() == [
        "vms[0].vm_name: missing; must be a text, such as some text",
        "vms[0].firmware: must be one of uefi, uefi-secure, bios (got 'efi'); did you mean uefi?",
        "vms[0].nics[1].boot_ordr: unknown key; did you mean boot_order?",
        "vms[0].nics[1].mac: must be six pairs of hex digits, such as 52:54:00:12:34:56 (got '52')",
        "vms[1]: must be a mapping with keys such as vm_name, firmware, nics (got 7)",
    ]


def test_what_is_no_mapping_is_named_by_where_it_is() -> None:
    with pytest.raises(OperatorError, match=re.escape("lab: must be a mapping with keys such as vms (got 'x')")):
        from_dict(Given, "x", "lab")
