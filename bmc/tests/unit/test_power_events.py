"""What happens to VMs, from the watch in the broker to the event log of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libvirt
import pytest

from nometal_bmc.events.log import EventLog
from nometal_bmc.redfish.power_events import TEXTS, PowerEvents
from nometal_bmc.vms.happenings import STOPPED, Happenings, of_lifecycle

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = "0b3f8f4e-8c1d-4f5e-9d5a-000000000001", "0b3f8f4e-8c1d-4f5e-9d5a-000000000002"


class Machines:
    """The broker's, of one VM, without a broker."""

    def __init__(self) -> None:
        self.names = {ONE: "one"}
        self.kept = Happenings()

    def happenings(self, epoch: str | None, after: int) -> dict[str, Any]:
        return self.kept.after(epoch, after, 0)


def test_who_asks_first_hears_all_since_the_broker_began_and_who_asks_anew_what_comes() -> None:
    kept = Happenings()
    kept.add(ONE, "restored")
    assert kept.after(None, 0, 0)["events"] == [(ONE, "restored")]
    assert kept.after(None, 0, 0)["events"] == []


def test_who_knows_where_it_is_hears_what_comes_after() -> None:
    kept = Happenings()
    kept.add(ONE, "on")
    kept.after(None, 0, 0)
    begun = kept.after(None, 0, 0)
    assert (begun["last"], begun["events"]) == (1, [])
    assert kept.after(begun["epoch"], 1, 0)["events"] == []
    kept.add(TWO, "on")
    kept.add(ONE, "off")
    later = kept.after(begun["epoch"], 1, 0)
    assert (later["last"], later["events"]) == (3, [(TWO, "on"), (ONE, "off")])


def test_who_has_heard_of_another_process_hears_all_of_this_one() -> None:
    kept = Happenings()
    kept.add(ONE, "on")
    assert kept.after("0" * 16, 700, 0)["events"] == [(ONE, "on")]


def test_events_are_of_own_vms_and_a_row_of_resets_is_one(tmp_path: Path) -> None:
    machines, log = Machines(), EventLog(lambda: tmp_path / "events")
    events = PowerEvents(machines, log)  # type: ignore[arg-type]
    machines.happenings(None, 0)
    machines.kept.add(ONE, "on")  # a service from before may have noted it
    events.look()
    for uuid, what in ((ONE, "reset"), (ONE, "reset"), (TWO, "on"), (ONE, "crashed"), (ONE, "reset"), (ONE, "unknown")):
        machines.kept.add(uuid, what)
    events.look()
    events.look()
    assert [(event.text, event.failed) for event in log.events(ONE)] == [
        ("Reset, by the guest or for it", False),
        ("Power is off, after a crash", True),
        ("Reset, by the guest or for it", False),
    ]
    assert log.events(TWO) == []


def test_a_new_broker_is_heard_from_its_beginning(tmp_path: Path) -> None:
    machines, log = Machines(), EventLog(lambda: tmp_path / "events")
    events = PowerEvents(machines, log)  # type: ignore[arg-type]
    events.look()
    machines.kept = Happenings()
    machines.kept.add(ONE, "off by guest")
    events.look()
    assert [event.text for event in log.events(ONE)] == ["Power is off, by the guest"]


@pytest.mark.parametrize(
    ("event", "detail", "what"),
    [
        (libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_STARTED_BOOTED, "on"),
        (libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN, "off by guest"),
        (libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_STOPPED_DESTROYED, "off"),
        (libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_SUSPENDED_IOERROR, "paused by disk"),
        (libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED, None),
        (libvirt.VIR_DOMAIN_EVENT_RESUMED, libvirt.VIR_DOMAIN_EVENT_RESUMED_UNPAUSED, "resumed"),
        (libvirt.VIR_DOMAIN_EVENT_DEFINED, 0, None),
    ],
)
def test_libvirts_events_are_a_few_words(event: int, detail: int, what: str | None) -> None:
    assert of_lifecycle(event, detail) == what
    assert what is None or what in TEXTS
    assert set(STOPPED.values()) <= set(TEXTS)
