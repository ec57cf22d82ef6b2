"""How the bootstrap VM drives a node through its BMC when something goes wrong: nobody waits for what cannot come."""

from __future__ import annotations

import errno
import http.client
import ssl
import threading
from typing import Any
from unittest.mock import Mock

import pytest
from support.waiting import PATIENCE

from ansible_collections.nometal.ipi.plugins.module_utils._agent import driving, redfish
from ansible_collections.nometal.ipi.plugins.module_utils._agent.driving import Driver
from ansible_collections.nometal.ipi.plugins.module_utils._agent.redfish import BmcFailed, NotNow
from ansible_collections.nometal.ipi.plugins.module_utils._agent.reports import Reports

FIRST, SECOND = "uuid-1", "uuid-2"
LEAVING = ["switch_off", "eject", "forget_overrides"]


class Bmc:
    """Does what it is asked for, but for what it is told to refuse, so often."""

    def __init__(self, **refusals: list[BmcFailed]) -> None:
        self.refusals = refusals
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def do(*_words: str) -> str:
            self.asked.append(name)
            if self.refusals.get(name):
                raise self.refusals[name].pop(0)
            return ""

        return do


class Channel:
    def __init__(self) -> None:
        self.steps: dict[str, bool] = {}
        self.failures: dict[str, str] = {}

    def tell(self, event: str, _who: str, **more: Any) -> None:
        if event == "step":
            self.steps[more["step"]] = more["ok"]
            self.failures[more["step"]] = more.get("failure", "")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driving, "PAUSE", 0)


def play(
    monkeypatch: pytest.MonkeyPatch, bmc: Bmc, reports: Reports | None = None, *, only_ask: bool = False
) -> dict[str, bool]:
    return played(monkeypatch, bmc, reports, only_ask=only_ask).steps


def played(
    monkeypatch: pytest.MonkeyPatch, bmc: Bmc, reports: Reports | None = None, *, only_ask: bool = False
) -> Channel:
    channel, node = Channel(), {"name": "one", "uuid": FIRST, "bmc": {"try_strangers": True, "hidden": []}}
    monkeypatch.setattr(Driver, "_bmc", lambda _self: bmc)
    Driver(node, {"seconds": 0.01}, channel, reports or Reports([FIRST, SECOND])).play(only_ask=only_ask)  # type: ignore[arg-type]
    return channel


def test_who_is_out_of_reach_is_asked_twice_and_then_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = Bmc(answers=[NotNow("timed out"), NotNow("timed out")])
    assert play(monkeypatch, bmc) == {"bmc": False}
    assert bmc.asked == ["answers", "answers"]


def test_what_kind_of_failure_it_was_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = Bmc(insert=[BmcFailed("507 No.", redfish.NO_ROOM)])
    assert played(monkeypatch, bmc).failures["insert"] == "no-room"
    assert played(monkeypatch, Bmc()).failures["booted from medium"] == "nothing-heard"


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (TimeoutError("timed out"), "silent"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "silent"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "silent"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "certificate"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), ""),
        (http.client.BadStatusLine("x"), ""),
    ],
)
def test_failures_to_reach_a_bmc(error: Exception, failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Mock(connect=Mock(side_effect=error))
    monkeypatch.setattr(redfish.Redfish, "_connection", lambda _self: connection)
    with pytest.raises(NotNow) as caught:
        bmc().answers()
    assert caught.value.failure == failure


@pytest.mark.parametrize(("status", "failure"), [(400, ""), (507, "no-room")])
def test_failures_of_a_bmc_that_was_reached(status: int, failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redfish.Redfish, "_ask", lambda *_of: (status, {}))
    with pytest.raises(BmcFailed, match=f"is answered with {status}") as caught:
        bmc().insert()
    assert caught.value.failure == failure


def bmc() -> redfish.Redfish:
    told = {"url": "http://127.0.0.1:1/x", "username": "a", "password": "b", "boot": "Cd", "mode": "uefi"}
    return redfish.Redfish(told, "http://127.0.0.1:1/image.iso")


def test_who_was_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = Bmc(insert=[NotNow("busy")])
    assert play(monkeypatch, bmc)["insert"]


def test_a_refusal_counts_at_once_and_the_node_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = Bmc(insert=[BmcFailed("400")])
    assert not play(monkeypatch, bmc)["insert"]
    assert bmc.asked[-4:] == ["insert", *LEAVING]


def test_who_is_gone_in_the_end_is_not_waited_for_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = Bmc(insert=[BmcFailed("400")], switch_off=[])
    bmc.refusals["eject"] = [NotNow("timed out")]
    play(monkeypatch, bmc)
    assert bmc.asked[-2:] == ["switch_off", "eject"]


def test_where_nothing_can_be_booted_bmcs_are_only_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = Bmc()
    assert play(monkeypatch, bmc, only_ask=True) == {"bmc": True, "login": True, "wrong password": True}
    assert bmc.asked == ["answers", "lets_in", "refuses_strangers"]


def test_a_disk_that_took_no_data_is_not_booted_from(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = Reports([FIRST])
    for place in ("medium", "seen"):
        reports.add(FIRST, place, {"uuid": FIRST})
    reports.add(FIRST, "written", {"device": "/dev/sda", "trouble": "read-only"})
    bmc = Bmc()
    assert list(play(monkeypatch, bmc, reports))[-1] == "written"
    assert "boot_from_disk" not in bmc.asked


def test_nodes_that_are_up_do_not_wait_for_one_that_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = Reports([FIRST, SECOND])
    other = threading.Thread(target=reports.gather, args=[SECOND], daemon=True)
    other.start()
    play(monkeypatch, Bmc(answers=[NotNow("timed out")] * 2), reports)
    other.join(PATIENCE)
    assert not other.is_alive()


def test_a_node_stays_on_until_others_have_looked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, bmc = Reports([FIRST, SECOND]), Bmc()
    reports.up.update({FIRST, SECOND})
    for place in ("medium", "seen", "written"):
        reports.add(FIRST, place, {"uuid": FIRST})
    driver = threading.Thread(target=play, args=[monkeypatch, bmc, reports], daemon=True)
    driver.start()
    driver.join(timeout=0.2)
    assert "boot_from_disk" not in bmc.asked
    reports.add(SECOND, "seen", {})
    driver.join(PATIENCE)
    assert "boot_from_disk" in bmc.asked
