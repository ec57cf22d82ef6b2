"""Calls about a VM whose QEMU has stopped: how many there may be, and what is answered without asking libvirt."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nometal_bmc.answers import Refused, unavailable
from nometal_bmc.broker.places import MOST_CALLS, Places
from nometal_bmc.config.settings import BrokerConfig, System
from nometal_bmc.vms.domains import ENDING_SECONDS, INACTIVE, PATIENCE_SECONDS, Domains

VM, OTHER = "6695eb01-f6a4-8304-79aa-97f2502e193f", "11111111-1111-4111-8111-000000000001"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def places(clock: Clock) -> Places:
    return Places(lambda uuid: unavailable(f"VM {uuid} does not answer"), clock)


def test_there_are_few_calls_about_one_vm_and_others_are_refused_at_once(places: Places) -> None:
    with ExitStack() as calls:
        for _call in range(MOST_CALLS):
            calls.enter_context(places.take(VM, long=False))
        with pytest.raises(Refused, match=f"VM {VM} does not answer") as refused, places.take(VM, long=False):
            pass
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "3"})
        with places.take(OTHER, long=False):
            pass
    with places.take(VM, long=False):
        pass


def test_none_is_let_in_behind_one_that_hangs_but_behind_one_that_may_take_its_time(
    places: Places, clock: Clock
) -> None:
    with places.take(VM, long=True):
        clock.now += 2 * PATIENCE_SECONDS
        with places.take(VM, long=False):
            clock.now += PATIENCE_SECONDS
            with places.take(VM, long=False):
                pass
            clock.now += 1
            with pytest.raises(Refused), places.take(VM, long=False):
                pass
        with places.take(VM, long=False):
            pass


@pytest.fixture
def current() -> SimpleNamespace:
    systems = (System(VM, "test"), System(OTHER, "other"))
    return SimpleNamespace(config=BrokerConfig("ha", "test:///default", Path("/broker.sock"), None, systems, None))


def test_of_a_vm_that_takes_long_to_end_what_was_read_last_is_shown(current: Any, clock: Clock) -> None:
    domains = Domains(current, clock)
    assert domains.existing() == [VM]
    before = domains.texts(VM, INACTIVE)
    with domains.ending(VM):
        assert domains.slow_endings() == set()
        clock.now += 2 * ENDING_SECONDS
        assert domains.slow_endings() == {VM}
        current.config = replace(current.config, libvirt_uri="test:///nowhere")  # whoever asks libvirt fails
        assert domains.texts(VM, INACTIVE) == before
        assert domains.active(VM)
        with pytest.raises(Refused, match="VM test does not answer"):
            domains.texts(VM, INACTIVE, 0)  # this was never read
    assert domains.slow_endings() == set()
    current.config = replace(current.config, libvirt_uri="test:///default")
    assert domains.texts(VM, INACTIVE) == before


def test_of_a_vm_that_is_being_switched_on_what_it_was_before_is_shown(current: Any, clock: Clock) -> None:
    domains = Domains(current, clock)
    before = domains.shown(VM)
    with domains.starting(VM) as root:
        assert root.findtext("uuid") == VM
        current.config = replace(current.config, libvirt_uri="test:///nowhere")  # whoever asks libvirt fails
        assert domains.shown(VM) == before
        assert not domains.active(VM)
    current.config = replace(current.config, libvirt_uri="test:///default")
    assert domains.active(VM)
