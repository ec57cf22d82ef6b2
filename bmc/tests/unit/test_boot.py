"""The boot override in a VM's definition: who comes first, and that everything returns to its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from nometal_bmc.answers import Refused
from nometal_bmc.machine import boot
from nometal_bmc.machine.boot import NONE, Override
from nometal_bmc.machine.definition import part, values

if TYPE_CHECKING:
    from collections.abc import Sequence

DEVICES = {
    "disk": "<disk device='disk'><target dev='{name}'/>{boot}</disk>",
    "cdrom": "<disk device='cdrom'><target dev='{name}'/>{boot}</disk>",
    "nic": "<interface><mac address='{name}'/>{boot}</interface>",
}
BOOTABLE = "devices/*[boot]"
NAMES = "target/@dev | mac/@address"
OVERRIDES = st.builds(Override, st.sampled_from(["Pxe", "Cd", "Hdd"]), st.sampled_from(["Once", "Continuous"]))


def definition(*devices: tuple[str, int | None]) -> etree._Element:
    """A VM with such devices, each with its place in the boot order; named by their number."""
    made = [
        DEVICES[kind].format(name=f"{kind}{number}", boot="" if place is None else f"<boot order='{place}'/>")
        for number, (kind, place) in enumerate(devices)
    ]
    return etree.fromstring(f"<domain><name>vm</name><devices>{''.join(made)}</devices></domain>")


@st.composite
def machines(draw: st.DrawFn) -> etree._Element:
    kinds = ["disk", "cdrom", "nic", *draw(st.lists(st.sampled_from(sorted(DEVICES)), max_size=4))]
    bootable = draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds)))
    places = iter(draw(st.permutations(range(1, sum(bootable) + 1))))
    return definition(*[(kind, next(places) if yes else None) for kind, yes in zip(kinds, bootable)])


def order(root: etree._Element) -> list[str]:
    """The devices that take part in booting, the first first."""
    places = {int(values(device, "boot/@order")[0]): values(device, NAMES)[0] for device in root.iterfind(BOOTABLE)}
    return [places[place] for place in sorted(places)]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("Pxe", ["nic3", "nic1", "disk0", "disk2", "cdrom4"]),
        ("Cd", ["cdrom4", "disk0", "disk2", "nic3", "nic1"]),
        ("Hdd", ["disk0", "disk2", "nic3", "nic1", "cdrom4"]),
    ],
)
def test_the_devices_of_one_kind_come_first(target: str, expected: Sequence[str]) -> None:
    root = definition(("disk", 1), ("nic", 4), ("disk", 2), ("nic", 3), ("cdrom", 5))
    boot.put(root, Override(target, "Once"))
    assert order(root) == expected


def test_if_none_of_them_takes_part_in_booting_all_of_them_do_meanwhile() -> None:
    root = definition(("disk", 1), ("nic", None), ("nic", None))
    boot.put(root, Override("Pxe", "Once"))
    assert order(root) == ["nic1", "nic2", "disk0"]
    boot.put(root, NONE)
    assert order(root) == ["disk0"]


def test_a_machine_without_such_a_device_refuses() -> None:
    with pytest.raises(Refused, match="nothing to boot from that is Cd"):
        boot.put(definition(("disk", 1)), Override("Cd", "Once"))


@given(machines(), st.lists(OVERRIDES, min_size=1, max_size=4))
def test_whatever_came_first_meanwhile_the_order_from_before_returns(
    root: etree._Element, overrides: list[Override]
) -> None:
    before = order(root)
    for override in overrides:
        boot.put(root, override)
        assert boot.get(root) == override
        assert len(set(order(root))) == len(order(root))
    boot.put(root, NONE)
    assert order(root) == before
    assert boot.get(root) == NONE


def test_a_disk_that_was_added_meanwhile_stays_behind_the_others() -> None:
    root = definition(("disk", 1), ("cdrom", 2))
    boot.put(root, Override("Cd", "Continuous"))
    part(root, "devices").append(etree.fromstring(DEVICES["disk"].format(name="new", boot="<boot order='3'/>")))
    boot.put(root, NONE)
    assert order(root) == ["disk0", "cdrom1", "new"]


@given(machines(), st.lists(OVERRIDES, max_size=3))
def test_the_options_have_the_order_that_there_is_without_an_override(
    root: etree._Element, overrides: list[Override]
) -> None:
    before, names = order(root), boot.options(root)
    assert [option.device for option in names if option.place is not None] == before
    assert len(names) == len(root.findall("devices/*"))
    for override in overrides:
        boot.put(root, override)
        assert boot.options(root) == names


@given(machines(), st.lists(OVERRIDES, max_size=2), st.data())
def test_another_order_counts_when_no_override_is_in_effect(
    root: etree._Element, overrides: list[Override], data: st.DataObject
) -> None:
    for override in overrides:
        boot.put(root, override)
    mark = boot.mark_for_once(root)
    names = data.draw(st.permutations([option.reference for option in boot.options(root)]))
    chosen = names[: data.draw(st.integers(1, len(names)))]
    boot.put_order(root, chosen)
    assert [option.reference for option in boot.options(root) if option.place is not None] == chosen
    assert (boot.get(root), boot.mark_for_once(root)) == (overrides[-1] if overrides else NONE, mark)
    if overrides:
        first = next(option.target for option in boot.options(root) if option.device == order(root)[0])
        assert first == overrides[-1].target
    boot.put(root, NONE)
    assert order(root) == [name.partition("-")[2] for name in chosen]


@pytest.mark.parametrize("names", [["Hdd-disk0", "Hdd-disk0"], ["Cd-disk0"], ["Hdd-disk0", "Pxe-none"]])
def test_an_order_has_each_option_of_the_machine_once(names: list[str]) -> None:
    root = definition(("disk", 1), ("nic", 2))
    with pytest.raises(Refused, match="Boot/BootOrder"):
        boot.put_order(root, names)
    assert order(root) == ["disk0", "nic1"]


def test_an_option_has_a_name_that_fits_into_a_path() -> None:
    root = definition(("disk", 2), ("cdrom", None), ("nic", 1))
    part(root, "devices/interface/mac").set("address", "52:54:00:00:00:01")
    assert [option.reference for option in boot.options(root)] == ["Pxe-525400000001", "Hdd-disk0", "Cd-cdrom1"]
