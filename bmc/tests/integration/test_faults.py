"""Faults on purpose, as a client such as Ironic meets them, and how nobody else does."""

from __future__ import annotations

import json
import re
import ssl
from contextlib import closing
from typing import TYPE_CHECKING, Any

import libvirt
import pytest
import sushy
from support import redfish_service
from support.redfish_service import ROOT, Node, Service, basic, tls_socket
from support.waiting import wait_until
from sushy import auth

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Callable

    from support.private_libvirtd import PrivateLibvirtd
    from support.redfish_service import Answer, Client

ONE, TWO = (Node(f"faults-{name}") for name in ("one", "two"))
SYSTEM = f"Systems/{ONE.uuid}"
SESSIONS = "SessionService/Sessions"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
INSERT = f"{SYSTEM}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
BOOT = {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Continuous"}}
CUT = "connection reset"
LOGINS: list[auth.SessionOrBasicAuth] = []
DOMAIN = redfish_service.DOMAIN.replace("<readonly/>", "<readonly/><boot order='1'/>")


@pytest.fixture(scope="module")
def running(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with closing(libvirt.open(libvirtd.uri)) as connection:
        for node in (ONE, TWO):
            connection.defineXML(DOMAIN.format(name=node.name, uuid=node.uuid))
    with Service(libvirtd, tmp_path_factory.mktemp("faults"), [ONE, TWO]) as service:
        yield service


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    yield running
    set_faults(running)
    while LOGINS:  # or sushy would end their sessions whenever Python collects them, with the faults of another test
        running.inside(LOGINS.pop().close)


@pytest.fixture
def one(service: Service) -> Client:
    return service.client(ONE.login)


@pytest.fixture
def two(service: Service) -> Client:
    return service.client(TWO.login)


def set_faults(service: Service, *rules: dict[str, Any], seed: int = 7) -> None:
    redfish_service.set_faults(service.directory, *rules, seed=seed)


def outcome(ask: Callable[[], Answer]) -> int | str:
    """The status, or how the connection ended."""
    try:
        return ask().status
    except ConnectionResetError:
        return CUT


def statuses(client: Client, count: int, path: str = SYSTEM) -> list[int | str]:
    return [outcome(lambda: client.get(path)) for _request in range(count)]


def sushy_system(service: Service, **options: Any) -> sushy.resources.system.system.System:
    """Only for threads inside."""
    login = auth.SessionOrBasicAuth(*ONE.login)
    LOGINS.append(login)
    ca = str(service.authority.ca)
    connection = sushy.Sushy(service.url, verify=ca, auth=login, server_side_retries=0, **options)
    return connection.get_system(f"{ROOT}{SYSTEM}")


def test_without_faults_there_are_none(service: Service, one: Client) -> None:
    assert statuses(one, 20) == [200] * 20
    assert "on purpose" not in service.log.read_text()


def test_the_same_seed_and_requests_meet_the_same_faults(service: Service, one: Client, two: Client) -> None:
    rules = ({"fault": "status", "status": 503, "rate": 40}, {"fault": "connection-reset", "rate": 20})
    set_faults(service, *rules)
    first = statuses(one, 40)
    assert {200, 503, CUT} == set(first)
    set_faults(service, *rules)
    again = []
    for _request in range(40):
        again += statuses(one, 1)
        statuses(two, 2, f"Systems/{TWO.uuid}")
    assert again == first
    set_faults(service, *rules, seed=8)
    assert statuses(one, 40) != first


def test_only_the_nodes_that_are_named_meet_a_fault(service: Service, one: Client, two: Client) -> None:
    set_faults(service, {"fault": "status", "status": 500, "nodes": [ONE.name]})
    assert statuses(one, 2) == [500, 500]
    assert statuses(one, 1, "Systems") == [500]
    assert statuses(two, 2, f"Systems/{TWO.uuid}") == [200, 200]
    assert statuses(two, 1, "Systems") == [200]
    assert service.client(None).get("").status == 200


def test_the_operator_sees_how_things_are(service: Service) -> None:
    set_faults(service, {"fault": "status", "status": 500}, {"fault": "power-state-wrong"})
    assert service.get(SYSTEM).json["PowerState"] == "Off"
    login = {"UserName": service.operator[0], "Password": service.operator[1]}
    token = service.client(None).post(SESSIONS, login).headers["X-Auth-Token"]
    assert service.client(None).get(SYSTEM, X_Auth_Token=token).status == 200


def test_paths_methods_and_counts_choose_requests(service: Service, one: Client) -> None:
    set_faults(
        service,
        {"fault": "status", "status": 504, "path": "*/SecureBoot", "methods": ["GET"]},
        {"fault": "status", "status": 429, "path": "*/Storage", "after": 1, "times": 2},
    )
    assert statuses(one, 1) == [200]
    assert statuses(one, 1, f"{SYSTEM}/SecureBoot") == [504]
    assert one.ask("PATCH", f"{SYSTEM}/SecureBoot", {"SecureBootEnable": True}).status == 404  # it boots by BIOS
    assert statuses(one, 5, f"{SYSTEM}/Storage") == [200, 429, 429, 200, 200]


def test_sushy_sees_statuses_as_errors_of_the_server(service: Service) -> None:
    set_faults(service, {"fault": "status", "status": 503, "methods": ["GET"], "path": "*/Systems/*", "after": 1})

    def refresh() -> None:
        sushy_system(service).refresh()

    with pytest.raises(sushy.exceptions.ServerSideError, match="503"):
        service.inside(refresh)


def test_sushy_survives_one_reset_and_gives_up_after_several(service: Service) -> None:
    rule = {"fault": "connection-reset", "methods": ["POST"], "path": "*.Reset"}

    def press() -> None:
        sushy_system(service).reset_system(sushy.ResetType.FORCE_OFF)

    set_faults(service, {**rule, "times": 1})
    service.inside(press)
    set_faults(service, rule)
    with pytest.raises(sushy.exceptions.ConnectionError):
        service.inside(press)


def test_latency_delays_one_node_and_no_other(service: Service, one: Client, two: Client) -> None:
    """No clock is looked at: the slow request is still unanswered when the others are."""
    set_faults(service, {"fault": "latency", "milliseconds": 3_600_000, "nodes": [ONE.name]})
    with closing(service.inside(slow_request, service)) as slow:
        wait_until("it meets the fault", lambda: "latency of 3600000 ms" in service.log.read_text())
        assert statuses(two, 5, f"Systems/{TWO.uuid}") == [200] * 5
        slow.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            slow.recv(1)
    set_faults(service, {"fault": "latency", "milliseconds": 1})
    assert statuses(one, 2) == [200, 200]


def slow_request(service: Service) -> ssl.SSLSocket:
    slow = tls_socket(service)
    head = f"GET {ROOT}{SYSTEM} HTTP/1.1\r\nHost: bmc\r\nAuthorization: {basic(*ONE.login)}\r\n\r\n"
    slow.sendall(head.encode())
    return slow


def test_credentials_expire_and_sessions_with_them(service: Service, one: Client) -> None:
    guest = service.client(None)
    made = guest.post(SESSIONS, {"UserName": ONE.name, "Password": ONE.login[1]})
    token = made.headers["X-Auth-Token"]
    set_faults(service, {"fault": "credentials-expired", "after": 2, "times": 1, "path": "*/Systems/*"})
    answers = [guest.get(SYSTEM, X_Auth_Token=token) for _request in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 401, 401]
    assert answers[2].headers["WWW-Authenticate"]
    assert one.get(SYSTEM).status == 200

    def log_in_again() -> str:
        set_faults(service, {"fault": "credentials-expired", "after": 1, "times": 1, "path": "*/Systems/*"})
        system = sushy_system(service)
        system.refresh(force=True)
        return str(system.uuid)

    assert service.inside(log_in_again) == ONE.uuid


def test_a_bmc_reboots_and_forgets_its_sessions(service: Service, one: Client, two: Client) -> None:
    token = one.post(SESSIONS, {"UserName": ONE.name, "Password": ONE.login[1]}).headers["X-Auth-Token"]
    rule = {"fault": "reboot", "seconds": 3600, "after": 1, "times": 1, "nodes": [ONE.name]}
    set_faults(service, rule)
    assert statuses(one, 4) == [200, CUT, CUT, CUT]
    assert statuses(two, 2, f"Systems/{TWO.uuid}") == [200, 200]
    set_faults(service, {**rule, "seconds": 0})  # it is back
    assert statuses(one, 4) == [200, CUT, 200, 200]
    assert service.client(None).get(SYSTEM, X_Auth_Token=token).status == 401


def test_the_power_state_is_wrong_and_reset_does_nothing(service: Service, one: Client) -> None:
    set_faults(service, {"fault": "power-state-wrong", "times": 1}, {"fault": "power-ignored"})
    assert service.inside(lambda: sushy_system(service).power_state) == sushy.PowerState.ON
    assert one.get(SYSTEM).json["PowerState"] == "Off"
    service.inside(lambda: sushy_system(service).reset_system(sushy.ResetType.ON))
    assert service.get(SYSTEM).json["PowerState"] == "Off"
    with closing(libvirt.open(service.libvirtd.uri)) as connection:
        assert not connection.lookupByName(ONE.name).isActive()


def test_the_boot_override_is_ignored(service: Service, one: Client) -> None:
    set_faults(service, {"fault": "boot-ignored", "times": 1})

    def wish() -> Any:
        system = sushy_system(service)
        system.set_system_boot_options(target=sushy.BootSource.CD, enabled=sushy.BootSourceOverrideEnabled.CONTINUOUS)
        system.refresh(force=True)
        return system.boot.target

    assert service.inside(wish) != sushy.BootSource.CD
    assert service.inside(wish) == sushy.BootSource.CD
    assert one.ask("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": "None"}}).status == 204


def test_media_fail_and_stall(service: Service, one: Client) -> None:
    set_faults(service, {"fault": "media-failed", "times": 1}, {"fault": "media-stalled", "seconds": 3600})

    def insert() -> None:
        [drive] = sushy_system(service).virtual_media.get_members()
        drive.insert_media("http://127.0.0.1:1/boot.iso")

    with pytest.raises(sushy.exceptions.HTTPError, match="its server did not answer"):
        service.inside(insert)
    body = json.dumps({"Image": "http://127.0.0.1:1/boot.iso"})
    with closing(service.inside(slow_insert, service, body)) as slow:
        wait_until("it meets the fault", lambda: "media-stalled for 3600 s" in service.log.read_text())
        assert one.get(f"{SYSTEM}/VirtualMedia/Cd").json["Inserted"] is False
        slow.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            slow.recv(1)


def slow_insert(service: Service, body: str) -> ssl.SSLSocket:
    slow = tls_socket(service)
    head = f"POST {ROOT}{INSERT} HTTP/1.1\r\nHost: bmc\r\nAuthorization: {basic(*ONE.login)}\r\n"
    slow.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return slow


@pytest.mark.parametrize("fault", ["power-ignored", "boot-ignored", "media-failed"])
def test_what_is_ignored_is_ignored_only_for_those_who_may_do_it(service: Service, two: Client, fault: str) -> None:
    set_faults(service, {"fault": fault})
    for client, status in ((service.client(None), 401), (two, 404)):
        assert client.post(RESET, {"ResetType": "On"}).status == status
        assert client.ask("PATCH", SYSTEM, BOOT).status == status
        assert client.post(INSERT, {"Image": "http://127.0.0.1:1/boot.iso"}).status == status


def test_connections_are_refused(service: Service, one: Client) -> None:
    set_faults(service, {"fault": "connection-refused", "after": 1, "times": 2})
    assert statuses(one, 4) == [200, CUT, CUT, 200]


def test_the_certificate_changes_and_changes_back(service: Service) -> None:
    set_faults(service, {"fault": "certificate-changed", "after": 1, "times": 1})

    def shown() -> bytes | None:
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        with closing(tls_socket(service, context=trusting)) as connection:
            return connection.getpeercert(binary_form=True)

    first, other, last = (service.inside(shown) for _connection in range(3))
    assert first == last
    assert first != other
    set_faults(service, {"fault": "certificate-changed"})
    with pytest.raises(sushy.exceptions.ConnectionError, match="certificate verify failed"):
        service.inside(sushy_system, service)


def test_an_invalid_file_changes_nothing(service: Service, one: Client) -> None:
    set_faults(service, {"fault": "status", "status": 418})
    assert statuses(one, 1) == [418]
    set_faults(service, {"fault": "fire"})
    assert statuses(one, 1) == [418]
    assert "fault must be one of latency" in service.log.read_text()


def test_the_log_names_every_fault(service: Service, one: Client) -> None:
    set_faults(service, {"fault": "status", "status": 451, "nodes": [ONE.name]}, seed=99)
    one.get(SYSTEM)
    log = service.log.read_text()
    assert "Faults on purpose, seed 99: status 451" in log
    assert f"Fault on purpose for {ONE.name}: status 451 at GET {ROOT}{SYSTEM}" in log
    set_faults(service, {"fault": "power-ignored"})
    one.post(RESET, {"ResetType": "On"})
    assert re.search(rf"access: POST {ROOT}{RESET} 204 \d+ ms {ONE.name} from", service.log.read_text())
