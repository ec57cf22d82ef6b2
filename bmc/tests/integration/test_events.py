"""The event log and the event stream: who has done what, for clients of the standard."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import requests
from support import bmc_lab, image_server
from support.bmc_lab import PASSWORD, USER
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.bmc_lab import BmcLab, Vm

OWN, OTHER = ("owner", "of-its-own"), ("stranger", "of-another")
STREAM = "/redfish/v1/EventService/SSE"


@pytest.fixture
def vm(machine: Vm, neighbour: Vm, lab: BmcLab) -> Iterator[Vm]:
    """Its log has only the line of its clearing. It has an account of its own, and so has its neighbour."""
    before = list(lab.accounts)
    lab.accounts += [bmc_lab.account(*OWN, [machine.uuid]), bmc_lab.account(*OTHER, [neighbour.uuid])]
    lab.configure()
    wait_until("the accounts are known", lambda: ask(lab, OWN, machine.path).ok and ask(lab, OTHER, neighbour.path).ok)
    machine.destroy()
    assert lab.post(f"{machine.path}/LogServices/EventLog/Actions/LogService.ClearLog").status_code == 204
    yield machine
    machine.destroy()
    lab.accounts[:] = before
    lab.configure()


def ask(lab: BmcLab, login: tuple[str, str], path: str, method: str = "GET", body: Any = None) -> requests.Response:
    return requests.request(method, lab.url + path, json=body, auth=login, timeout=PATIENCE)


def entries(lab: BmcLab, owner: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lab.get(f"{owner}/LogServices/EventLog/Entries")["Members"]
    return found


def messages(lab: BmcLab, owner: str, kind: str) -> list[str]:
    return [entry["Message"] for entry in entries(lab, owner) if entry["MessageArgs"][0] == kind]


def test_one_page_answers_who_has_switched_this_off(lab: BmcLab, vm: Vm) -> None:
    lab.reset(vm, "On")
    off = f"{vm.path}/Actions/ComputerSystem.Reset"
    assert ask(lab, OWN, off, "POST", {"ResetType": "ForceOff"}).status_code == 204
    told = messages(lab, vm.path, "power")
    assert [text for text in told if text.startswith("Reset")] == [
        f"Reset On by {USER} from 127.0.0.1",
        f"Reset ForceOff by {OWN[0]} from 127.0.0.1",
    ]
    assert messages(lab, f"/redfish/v1/Managers/{vm.uuid}", "power") == told


def test_boot_media_and_settings_are_in_the_log_and_so_is_what_failed(lab: BmcLab, vm: Vm, tmp_path: Path) -> None:
    lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Cd"}})
    lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Floppy"}})
    lab.patch(f"/redfish/v1/Managers/{vm.uuid}", {"DateTimeLocalOffset": "+02:00"})
    insert = f"{vm.media}/Actions/VirtualMedia.InsertMedia"
    image_server.write_iso(tmp_path / "one.iso")
    with image_server.start(lab.libvirtd, tmp_path) as server:
        assert lab.post(insert, {"Image": server.url("/one.iso")}).status_code == 204
    lab.post(insert, {"Image": "http://127.0.0.1:1/none.iso", "UserName": "me", "Password": "s3cret"})
    lab.post(f"{vm.media}/Actions/VirtualMedia.EjectMedia")
    by = f" by {USER} from 127.0.0.1"
    assert messages(lab, vm.path, "boot") == [f"Boot settings changed: Target=Cd{by}"]
    assert messages(lab, vm.path, "settings") == [f"Clock set: DateTimeLocalOffset=+02:00{by}"]
    inserted, failed, ejected = messages(lab, vm.path, "media")
    assert inserted.startswith("Medium inserted: ")
    assert "failed (" in failed
    assert ejected == f"Medium ejected{by}"
    assert [entry["Severity"] for entry in entries(lab, vm.path)].count("Warning") == 1
    assert "s3cret" not in json.dumps(entries(lab, vm.path))


def test_entries_are_resources_and_survive_a_restart(lab: BmcLab, vm: Vm) -> None:
    lab.reset(vm, "On")
    before = entries(lab, vm.path)
    lab.stop_service()
    lab.start_service()
    assert entries(lab, vm.path)[: len(before)] == before
    last = before[-1]
    assert lab.get(last["@odata.id"]) == last
    assert last["Links"]["OriginOfCondition"] == {"@odata.id": vm.path}
    path = f"{vm.path}/LogServices/EventLog/Entries"
    for nothing in (f"{path}/999999", f"{path}/x", f"{vm.path}/LogServices/Sel"):
        assert lab.request("GET", nothing).status_code == 404
    [cleared] = [entry for entry in before if entry["MessageArgs"][0] == "log"]
    assert cleared["Message"] == f"Event log cleared by {USER} from 127.0.0.1"


def test_logins_are_in_the_log_of_whom_they_concern(lab: BmcLab, vm: Vm, neighbour: Vm) -> None:
    sessions = "/redfish/v1/SessionService/Sessions"
    requests.post(lab.url + sessions, json={"UserName": OWN[0], "Password": "wrong"}, timeout=PATIENCE)
    requests.post(lab.url + sessions, json={"UserName": "nobody", "Password": "wrong"}, timeout=PATIENCE)
    assert messages(lab, vm.path, "login") == [f"Login refused by {OWN[0]} from 127.0.0.1"]
    assert f"Login by {OTHER[0]} from 127.0.0.1" in messages(lab, neighbour.path, "login")
    of_service = messages(lab, "/redfish/v1/Chassis/Enclosure", "login")
    assert f"Login by {USER} from 127.0.0.1" in of_service
    assert "Login refused by an unknown account from 127.0.0.1" in of_service


def test_an_account_sees_and_clears_its_own_log_only(lab: BmcLab, vm: Vm, neighbour: Vm) -> None:
    log = "LogServices/EventLog"
    lab.reset(neighbour, "ForceOff")
    kept = entries(lab, neighbour.path)
    for owner in (neighbour.path, f"/redfish/v1/Managers/{neighbour.uuid}", "/redfish/v1/Chassis/Enclosure"):
        assert ask(lab, OWN, f"{owner}/{log}/Entries").status_code == 404
        assert ask(lab, OWN, f"{owner}/{log}/Actions/LogService.ClearLog", "POST").status_code == 404
    assert entries(lab, neighbour.path) == kept
    assert ask(lab, OWN, f"{vm.path}/{log}/Actions/LogService.ClearLog", "POST").status_code == 204
    assert "LogServices" not in ask(lab, OWN, "/redfish/v1/Chassis/Enclosure").json()


class Listener:
    """A client of the event stream."""

    def __init__(self, lab: BmcLab, login: tuple[str, str]) -> None:
        self.response = requests.get(lab.url + STREAM, auth=login, stream=True, timeout=PATIENCE)
        assert self.response.status_code == 200
        assert self.response.headers["Content-Type"] == "text/event-stream"
        self._lines = self.response.iter_lines(chunk_size=1)
        next(self._lines)  # it has begun: what happens from now on is heard

    def hears(self, text: str) -> dict[str, Any]:
        """The next event whose message begins with this; VMs of former tests may still have something to tell."""
        for line in self._lines:
            if line.startswith(b"data: "):
                [record] = json.loads(line[6:])["Events"]
                found: dict[str, Any] = record
                if found["Message"].startswith(text):
                    return found
        raise AssertionError("the stream has ended")

    def ends(self) -> bool:
        return all(not line.startswith(b"data: ") for line in self._lines)

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()


def test_the_stream_tells_what_happens_to_the_systems_of_the_account(lab: BmcLab, vm: Vm, neighbour: Vm) -> None:
    with Listener(lab, OWN) as owner, Listener(lab, (USER, PASSWORD)) as operator:
        lab.reset(neighbour, "ForceOff")
        lab.reset(vm, "ForceOff")
        by = f" by {USER} from 127.0.0.1"
        assert owner.hears("Reset")["OriginOfCondition"] == {"@odata.id": vm.path}
        assert operator.hears("Reset")["OriginOfCondition"] == {"@odata.id": neighbour.path}
        heard = operator.hears("Reset")
        assert (heard["EventType"], heard["Message"]) == ("StatusChange", f"Reset ForceOff{by}")
        lab.post(f"{vm.media}/Actions/VirtualMedia.EjectMedia")
        assert owner.hears("Medium")["Message"] == operator.hears("Medium")["Message"] == f"Medium ejected{by}"


def test_what_happens_without_a_client_is_told_too(lab: BmcLab, vm: Vm) -> None:
    with Listener(lab, OWN) as owner:
        vm.domain.create()
        assert owner.hears("Power is on")["EventType"] == "StatusChange"
        vm.domain.suspend()
        owner.hears("Paused on the host")
        vm.domain.resume()
        owner.hears("Not paused any more")
        vm.domain.reset()
        owner.hears("Reset, by the guest")
        vm.domain.destroy()
        owner.hears("Power is off, without the guest")
    told = [text for text in messages(lab, vm.path, "power") if not text.startswith("Reset")]
    assert told == [
        "Power is on",
        "Paused on the host",
        "Not paused any more",
        "Power is off, without the guest",
    ]


def test_a_restart_of_the_broker_loses_no_later_event(lab: BmcLab, vm: Vm) -> None:
    with Listener(lab, OWN) as owner:
        lab.broker.stop()
        lab.broker.start()
        wait_until("the broker's VMs are known", lambda: lab.request("GET", vm.path).ok)
        lab.reset(vm, "On")
        owner.hears("Power is on")


def test_sushy_knows_the_event_service_and_sends_a_test_to_the_own_streams(lab: BmcLab, vm: Vm) -> None:
    service = lab.sushy().get_event_service()
    assert service.service_enabled
    with Listener(lab, (USER, PASSWORD)) as operator, Listener(lab, OWN) as owner:
        service.submit_test_event("1", "2026-01-01T00:00:00Z", "Alert", "hello", [], "Base.1.0.Success", "/", "OK")
        assert operator.hears("hello")["Message"] == f"hello by {USER}"
        lab.reset(vm, "ForceOff")
        assert owner.hears("")["Message"] != "hello"


def test_a_stream_is_a_subscription_and_ends_with_it(lab: BmcLab, vm: Vm) -> None:
    subscriptions = "/redfish/v1/EventService/Subscriptions"
    with Listener(lab, OWN) as owner, Listener(lab, OTHER):
        [own] = ask(lab, OWN, subscriptions).json()["Members"]
        assert len(lab.get(subscriptions)["Members"]) == 2
        shown = ask(lab, OWN, own["@odata.id"]).json()
        assert (shown["SubscriptionType"], shown["Context"]) == ("SSE", OWN[0])
        assert ask(lab, OTHER, own["@odata.id"]).status_code == 404
        assert ask(lab, OTHER, own["@odata.id"], "DELETE").status_code == 404
        assert ask(lab, OWN, own["@odata.id"], "DELETE").status_code == 204
        assert owner.ends()
    wait_until("who has left is no subscription", lambda: lab.get(subscriptions)["Members"] == [])
    assert ask(lab, OWN, vm.path).ok


def test_one_account_has_not_all_streams(lab: BmcLab, vm: Vm) -> None:
    listeners = [Listener(lab, OWN) for _number in range(8)]
    refused = ask(lab, OWN, STREAM)
    assert (refused.status_code, bool(refused.headers["Retry-After"])) == (503, True)
    with Listener(lab, OTHER):
        pass
    for listener in listeners:
        listener.response.close()
    wait_until("there is room again", lambda: lab.get("/redfish/v1/EventService/Subscriptions")["Members"] == [])
    assert requests.head(lab.url + STREAM, auth=OWN, timeout=PATIENCE).status_code == 200
    assert lab.get("/redfish/v1/EventService/Subscriptions")["Members"] == []
    assert ask(lab, OWN, vm.path).ok


def test_a_service_that_ends_lets_its_listeners_go(lab: BmcLab, vm: Vm) -> None:
    with Listener(lab, OWN) as owner:
        lab.stop_service()
        assert owner.ends()
    assert "requests were still running" not in lab.log()
    lab.start_service()
    assert lab.get(vm.path)
