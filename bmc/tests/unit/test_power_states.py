"""Which VMs are switched on after a start of the host: decided by a file; boots and time are given."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from nometal_bmc.answers import Refused
from nometal_bmc.config.settings import ALWAYS_OFF, ALWAYS_ON, LAST_STATE, BrokerConfig, System
from nometal_bmc.vms import connection, power
from nometal_bmc.vms.domains import Domains
from nometal_bmc.vms.power_states import ASKED_SECONDS, SETTLED_SECONDS, PowerStates
from nometal_bmc.vms.restoration import LONGEST_SECONDS, Restoration
from nometal_bmc.vms.starts import Starts

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO, THREE = (f"11111111-1111-4111-8111-00000000000{number}" for number in (1, 2, 3))
OF_TEST_DRIVER = "6695eb01-f6a4-8304-79aa-97f2502e193f"


@dataclass
class Host:
    """Its disk is `directory`; `config` is what the broker is told."""

    directory: Path
    boot: int = 1
    now: float = 1000.0
    config: BrokerConfig = field(init=False)

    def __post_init__(self) -> None:
        systems = tuple(System(uuid, uuid[-1]) for uuid in (ONE, TWO, THREE, OF_TEST_DRIVER))
        self.config = BrokerConfig("ha", "test:///default", self.directory / "broker.sock", None, systems, None)
        self.tell(power_restore=LAST_STATE)

    def tell(self, **changes: Any) -> None:
        self.config = replace(self.config, **changes)

    def broker(self) -> PowerStates:
        """What a broker knows that starts now."""
        return PowerStates(self, lambda: f"boot {self.boot}", lambda: self.now)

    def after_boot(self) -> list[str]:
        """What a broker is to switch on that starts with the host."""
        self.boot += 1
        return self.broker().restoring()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(connection, "WAIT_SECONDS", 0)
    return Host(tmp_path)


def running(host: Host, *uuids: str) -> PowerStates:
    states = host.broker()
    for uuid in uuids:
        states.started(uuid)
    states.save()
    return states


def test_those_that_were_on_are_to_be_on_again_in_the_labs_order(host: Host) -> None:
    running(host, TWO, ONE)
    assert host.after_boot() == [ONE, TWO]


@pytest.mark.parametrize(("policy", "expected"), [(ALWAYS_OFF, []), (ALWAYS_ON, [ONE, TWO, THREE, OF_TEST_DRIVER])])
def test_other_policies_do_not_look_at_what_was(host: Host, policy: str, expected: list[str]) -> None:
    host.tell(power_restore=policy)
    running(host, TWO)
    assert host.after_boot() == expected


def test_a_restart_of_the_broker_switches_nothing_on(host: Host) -> None:
    running(host, ONE)
    assert host.broker().restoring() == []


def test_the_first_broker_of_a_lab_switches_nothing_on(host: Host) -> None:
    host.tell(power_restore=ALWAYS_ON)
    assert host.broker().restoring() == []


def test_one_that_the_bmc_was_asked_to_switch_off_is_off_at_once(host: Host) -> None:
    states = running(host, ONE, TWO)
    states.switched_off(ONE)
    states.save()
    assert host.after_boot() == [TWO]


def test_one_that_ends_by_itself_is_off_unless_the_host_shuts_down_with_it(host: Host) -> None:
    states = running(host, ONE, TWO)
    states.ended(ONE)
    host.now += SETTLED_SECONDS
    states.ended(TWO)
    states.settle()
    assert host.after_boot() == [TWO]


def test_one_that_shuts_down_as_the_bmc_was_asked_to_is_off_at_once(host: Host) -> None:
    states = running(host, ONE, TWO, THREE)
    states.asked_to_end(ONE)
    states.asked_to_end(TWO)
    states.ended(ONE)
    states.settle()
    states.started(ONE)
    states.ended(ONE)  # by itself this time
    host.now += ASKED_SECONDS
    states.ended(TWO)  # which did not hear it then
    states.save()
    assert host.after_boot() == [ONE, TWO, THREE]
    states.asked_to_end(THREE)
    states.ended(THREE)
    states.save()
    assert host.after_boot() == [ONE, TWO]


def test_one_that_has_started_again_is_on(host: Host) -> None:
    states = running(host, ONE)
    states.ended(ONE)
    states.started(ONE)
    host.now += SETTLED_SECONDS
    states.settle()
    assert host.after_boot() == [ONE]


def test_a_power_cut_while_vms_are_switched_on_again_loses_none(host: Host) -> None:
    running(host, ONE, TWO, THREE)
    host.boot += 1
    states = running(host, ONE)
    assert states.restoring() == [TWO, THREE]
    assert host.broker().restoring() == [TWO, THREE]  # the broker has crashed
    states.cancel_restoring(THREE)
    states.save()
    assert host.after_boot() == [ONE, TWO]


def test_a_policy_of_a_client_counts_until_the_configuration_changes(host: Host) -> None:
    states = running(host, ONE, TWO)
    states.set_policy(ONE, ALWAYS_OFF)
    assert [states.policy(ONE), states.policy(TWO)] == [ALWAYS_OFF, LAST_STATE]
    assert host.after_boot() == [TWO]
    host.tell(power_restore=ALWAYS_ON)
    assert host.broker().policy(ONE) == ALWAYS_ON
    host.tell(power_restore=LAST_STATE)
    assert host.broker().policy(ONE) == ALWAYS_OFF


def test_what_the_lab_has_no_longer_is_forgotten(host: Host) -> None:
    states = running(host, ONE, TWO)
    states.set_policy(ONE, ALWAYS_ON)
    host.tell(systems=(System(TWO, "two"),))
    states.set_policy(TWO, ALWAYS_ON)
    assert ONE not in (host.directory / "power.json").read_text()
    assert host.after_boot() == [TWO]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"boot": 1, "on": [], "restoring": [], "policies": []}'])
def test_a_damaged_file_switches_nothing_on(host: Host, text: str) -> None:
    (host.directory / "power.json").write_text(text)
    assert host.broker().restoring() == []
    running(host, ONE)
    assert host.after_boot() == [ONE]


def test_a_policy_of_another_release_is_none(host: Host) -> None:
    running(host).set_policy(ONE, "Delayed")
    assert host.broker().policy(ONE) == LAST_STATE


def test_a_full_disk_keeps_nobody_from_anything(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.tell(socket=host.directory / "missing/broker.sock")
    running(host, ONE)
    assert "Which VMs are on cannot be kept" in caplog.text


def test_only_root_and_the_broker_read_it(host: Host) -> None:
    running(host, ONE)
    file = host.directory / "power.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["on"] == [ONE]


def booted(host: Host) -> tuple[Domains, Restoration]:
    host.boot += 1
    domains = Domains(host)
    domains.power_states = host.broker()
    domains.starts = Starts(lambda: 0, lambda: host.now)
    return domains, Restoration(domains, lambda: host.now)


def test_those_that_are_there_are_switched_on_and_what_fails_is_tried_again(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    running(host, ONE, OF_TEST_DRIVER)
    domain = Domains(host).domain(OF_TEST_DRIVER)
    domain.destroy()
    host.tell(libvirt_uri="test:///nowhere")
    domains, restoration = booted(host)
    restoration.look()
    assert domains.power_states.restoring() == [ONE, OF_TEST_DRIVER]
    host.tell(libvirt_uri="test:///default")
    restoration.look()
    assert domains.power_states.restoring() == []
    assert domain.isActive()
    assert "cannot be switched on yet" in caplog.text
    assert host.after_boot() == [OF_TEST_DRIVER]  # the other one is not there


def test_what_fails_for_long_stays_off(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    running(host, ONE)
    host.tell(libvirt_uri="test:///nowhere")
    domains, restoration = booted(host)
    restoration.look()
    host.now += LONGEST_SECONDS
    restoration.look()
    assert domains.power_states.restoring() == []
    assert "stays off" in caplog.text


def test_one_that_waits_to_be_switched_on_stays_off_when_it_is_asked_to_shut_down(host: Host) -> None:
    running(host, OF_TEST_DRIVER)
    domain = Domains(host).domain(OF_TEST_DRIVER)
    domain.destroy()
    domains, _restoration = booted(host)
    domains.starts = Starts(lambda: 100, lambda: host.now)
    assert domains.starts.take(host.now)  # so that others wait
    outcomes: list[int] = []

    def switch_on() -> None:
        with pytest.raises(Refused) as refused:
            power.power_on(domains, OF_TEST_DRIVER, patiently=True)
        outcomes.append(refused.value.status)

    waiting = threading.Thread(target=switch_on, daemon=True)
    waiting.start()
    for _ask in range(1000):
        power.shut_down(domains, OF_TEST_DRIVER)
        waiting.join(0.01)
        if not waiting.is_alive():
            break
    assert (outcomes, domains.power_states.restoring(), domain.isActive()) == ([409], [], 0)
    domain.create()  # as other tests find it
