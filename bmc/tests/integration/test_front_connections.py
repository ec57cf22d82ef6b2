"""Connections: TLS (fault 5), clients that never finish, bodies that never end, and changes under load."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import threading
from collections import Counter
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from support import redfish_service, unfinished
from support.redfish_service import ADDRESS, PORT, ROOT, Node, Service
from support.unfinished import PROMISE
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

ONE, TWO = Node("conn-one"), Node("conn-two")
MANY = 200  # unfinished connections
KEEPING = ("Keeping the configuration of before", "Keeping the certificate of before")


@pytest.fixture(scope="module")
def service(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    redfish_service.define(libvirtd, [ONE, TWO])
    with Service(libvirtd, tmp_path_factory.mktemp("connections"), [ONE]) as running:
        yield running
        log = running.log.read_text()
        assert "Traceback" not in log
        assert {line.split()[0] for line in log.splitlines()} <= {"INFO", "WARNING", "ERROR"}


class Load:
    """Requests without a pause by some clients who keep their connections. Meanwhile other things happen."""

    def __init__(self, service: Service, clients: int) -> None:
        self.service = service
        self.answers = 0
        self.unfinished = 0
        """Connections that are open meanwhile and have asked for nothing."""
        self.answers_beside_many = 0
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._clients = clients
        self._path = f"{ROOT}Systems/{ONE.uuid}"
        self._headers = {"Authorization": redfish_service.basic(*Service.operator)}

    def __enter__(self) -> Load:
        self._threads = [threading.Thread(target=self.service.inside, args=(self._ask,)) for _ in range(self._clients)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def count_unfinished(self, more: int) -> None:
        self.unfinished += more

    def wait_for_answers(self, count: int) -> None:
        enough = self.answers + count
        wait_until("more requests are answered", lambda: self.failures or self.answers >= enough)

    def _ask(self) -> None:
        with closing(self.service.client(None).connection()) as connection:
            while not self._stop.wait(0.005):
                beside_many = self.unfinished > MANY
                try:
                    connection.request("GET", self._path, headers=self._headers)
                    response = connection.getresponse()
                    if response.status != 200 or ONE.uuid.encode() not in response.read():
                        self.failures.append(str(response.status))
                except OSError as error:
                    self.failures.append(repr(error))
                    return
                self.answers += 1
                self.answers_beside_many += beside_many and self.unfinished > MANY


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_fault_05_tls_of_today_is_spoken(service: Service, version: ssl.TLSVersion) -> None:
    context = service.authority.client_context()
    context.minimum_version = context.maximum_version = version
    assert service.inside(spoken, service, context) == version.name.replace("_", ".")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_fault_05_tls_of_yesterday_is_not(service: Service) -> None:
    context = service.authority.client_context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError, match=r"(?i)protocol|alert|eof|reset"):
        service.inside(spoken, service, context)


def test_fault_05_plain_http_is_not_served_beside_it(service: Service) -> None:
    def plain() -> bytes:
        with socket.create_connection((ADDRESS, PORT), timeout=PATIENCE) as connection:
            connection.sendall(b"GET /redfish/v1/ HTTP/1.1\r\nHost: x\r\n\r\n")
            with suppress(ConnectionError):
                return connection.recv(1000)
            return b""

    assert b"HTTP" not in service.inside(plain)


@pytest.mark.parametrize("fault", ["no key", "other's key", "port in use"])
def test_fault_05_a_service_that_cannot_be_as_it_should_ends(service: Service, tmp_path: Path, fault: str) -> None:
    second = Service(service.libvirtd, tmp_path, [ONE])
    if fault == "no key":
        second.authority.key.unlink()
    elif fault == "other's key":
        second.authority.key.write_bytes(service.authority.key.read_bytes())
    assert second.start().process.wait(PATIENCE) == 1  # type: ignore[union-attr]
    [line] = second.log.read_text().splitlines()
    expected = "Address already in use" if fault == "port in use" else "The certificate"
    assert line.startswith("ERROR nometal_bmc: ")
    assert expected in line


def test_fault_05_unfinished_business_blocks_nobody_and_ends(service: Service) -> None:
    """From four addresses, all at once: 200 slow heads, 200 handshakes never finished, slow bodies, silence."""
    with Load(service, 2) as load:
        ended = service.inside(asyncio.run, unfinished.attack(service, load.count_unfinished))
        load.wait_for_answers(20)
    assert load.failures == []
    assert load.answers_beside_many > 10
    assert ended == {source: group.count for source, group in unfinished.GROUPS.items()}
    wait_until("its side of them is closed", lambda: fds(service) < 30, seen=lambda: fds(service))


def test_a_crowd_of_strangers_keeps_nobody_out(service: Service) -> None:
    """From four addresses they could take each connection that there is; those with a login lose none."""

    def crowd() -> None:
        request = ("GET", f"{ROOT}Systems", None, {"Authorization": redfish_service.basic(*service.operator)})
        with ExitStack() as open_ones:
            known = open_ones.enter_context(closing(service.client(None, "127.0.2.5").connection()))
            known.request(*request)
            assert known.getresponse().read()
            sources = [f"127.0.2.{number}" for number in range(5, 9) for _connection in range(300)]
            sockets = [open_ones.enter_context(closing(connected(source))) for source in sources]
            wait_until("the oldest have made room", lambda: sum(map(is_closed, sockets)) >= 4 * (300 - 64))
            assert service.client(None, "127.0.2.9")._ask("GET", ROOT, None, {}).status == 200  # noqa: SLF001 - in this thread
            known.request(*request)
            assert known.getresponse().status == 200

    service.inside(crowd)


@pytest.mark.parametrize(
    "head",
    [
        PROMISE + b"Transfer-Encoding: chunked\r\n\r\n",
        PROMISE + b"Content-Length: %d\r\n\r\n" % (10 * unfinished.GIB),
    ],
)
def test_a_body_of_10_gib_is_refused_at_once(service: Service, head: bytes) -> None:
    answer, sent = service.inside(unfinished.send_without_end, service, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"PayloadTooLarge" in answer
    assert sent < 64 << 20


@pytest.mark.parametrize(("size", "status"), [(65536, 400), (65537, 413)])
def test_the_largest_body_is_64_kib(service: Service, size: int, status: int) -> None:
    assert service.client(None).post("SessionService/Sessions", b"x" * size).status == status


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /" + b"a" * (99 << 10) + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(200)) + b"\r\n", 431),
        (b"what is this\r\n\r\n", 400),
        (b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", 501),
        (b"BREW / HTTP/7.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /redfish/v1/ HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET /redfish/v1/ HTTP/1.1\r\nConnection: close\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET /redfish/v1/ HTTP/1.1\r\nConnection: close\r\nHost: x, y\r\n\r\n", 400),
        (b"GET /redfish/v1/ HTTP/1.1\r\nConnection: close\r\nHost:\r\n\r\n", 400),
        (b"GET /redfish/v1/ HTTP/1.1\r\nConnection: close\r\nHost: x/y\r\n\r\n", 400),
        (PROMISE + b"Content-Length: x\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused_as_redfish(service: Service, head: bytes, status: int) -> None:
    answer = service.inside(answer_to, service, head)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body)["error"]["@Message.ExtendedInfo"]


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(200)) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 1000,
        PROMISE + b"Content-Length: -1\r\n\r\n",
        PROMISE + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"\x16\x03\x01\x02\x00" * 100,
        b"OPTIONS * HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /redfish/v1/Systems HTTP/1.1\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_no_client_sends_is_cut_short(service: Service, head: bytes) -> None:
    """Before a client has had its time that came earlier and is silent."""

    def cut_short() -> bytes:
        with closing(redfish_service.tls_socket(service)) as silent:
            answer = answer_to(service, head)
            assert not is_closed(silent)
        return answer

    assert b"HTTP/1.1 200" not in service.inside(cut_short)


def test_changes_under_load_drop_nothing(service: Service) -> None:
    with Load(service, 6) as load:
        service.config["systems"].append({"uuid": TWO.uuid, "name": TWO.name})
        service.config["accounts"].append(redfish_service.account(*TWO.login, systems=[TWO.uuid]))
        service.configure()
        wait_until("the system is there", lambda: service.get(f"Systems/{TWO.uuid}").status == 200)
        assert service.client(TWO.login).get(f"Systems/{TWO.uuid}").status == 200
        service.authority.issue("second")
        wait_until("the second certificate is shown", lambda: service.inside(subject, service) == "CN=second")
        (service.directory / "config.json").write_text("{")
        service.authority.certificate.write_text("")
        service.signal(signal.SIGHUP)
        wait_until("it has refused both", lambda: set(KEEPING) <= heads(service).keys(), seen=service.log.read_text)
        service.authority.issue("third")
        service.config["accounts"].pop()
        service.hang_up()
        wait_until("the account is gone", lambda: service.client(TWO.login).get("Systems").status == 401)
        wait_until("the third certificate is shown", lambda: service.inside(subject, service) == "CN=third")
        load.wait_for_answers(20)
    assert load.failures == []
    log = heads(service)
    assert [log[keeping] for keeping in KEEPING] == [1, 1]
    assert log["The configuration has been read again"] == log["The certificate has been read again"] == 2


def test_a_changed_password_ends_sessions_and_logins(service: Service) -> None:
    login = {"UserName": ONE.name, "Password": ONE.login[1]}
    token = service.client(None).post("SessionService/Sessions", login).headers["X-Auth-Token"]
    assert service.client(None).get("Systems", X_Auth_Token=token).status == 200
    assert service.client(ONE.login).get("Systems").status == 200
    service.config["accounts"][1] = redfish_service.account(ONE.name, "new", systems=[ONE.uuid])
    service.configure()
    stranger = service.client(None)
    wait_until("the session has ended", lambda: stranger.get("Systems", X_Auth_Token=token).status == 401)
    assert service.client(ONE.login).get("Systems").status == 401
    assert service.client((ONE.name, "new")).get("Systems").status == 200


def test_its_addresses_may_come_later_and_it_ends_when_requests_have_been_answered(
    service: Service, tmp_path: Path
) -> None:
    addresses = ["192.0.2.77", "2001:db8::77"]
    late = Service(service.libvirtd, tmp_path, [ONE])
    late.config["listen"] = [{"address": address, "port": PORT} for address in addresses]
    with closing(late.start()):
        wait_until("it serves", lambda: late.log.read_text().count("Serving at") == len(addresses))
        for address in addresses:
            service.libvirtd.run(["ip", "address", "add", address, "dev", "lo"])
        late.inside(connect, addresses[0])
        assert late.inside(finish_after_sigterm, late, addresses[1]).startswith(b"HTTP/1.1 400")
        assert late.process
        assert late.process.wait(PATIENCE) == 0


def test_what_cannot_be_ended_is_answered_before_the_service_ends(service: Service, tmp_path: Path) -> None:
    """As Redfish has errors, though libvirt does not answer."""
    address = "192.0.2.78"
    service.libvirtd.run(["ip", "address", "add", f"{address}/32", "dev", "lo"])
    busy = Service(service.libvirtd, tmp_path, [ONE])
    busy.config["listen"] = [{"address": address, "port": PORT}]
    body = b'{"ResetType": "On"}'
    head = f"POST {ROOT}Systems/{ONE.uuid}/Actions/ComputerSystem.Reset HTTP/1.1\r\nHost: x\r\n"
    head += f"Authorization: {redfish_service.basic(*ONE.login)}\r\n"
    with closing(busy.start()):
        wait_until("it serves", lambda: "Serving at" in busy.log.read_text())
        with service.libvirtd.standing_still():
            answer = busy.inside(finish_after_sigterm, busy, address, head.encode(), body)
            assert busy.process
            assert busy.process.wait(PATIENCE) == 0
    head, _, text = answer.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 503 ")
    assert "application/json" in head
    assert json.loads(text)["error"]["@Message.ExtendedInfo"]
    assert "Traceback" not in busy.log.read_text()


@pytest.mark.parametrize("host", [b"x", b"bmc.example:8000", b"192.0.2.1:8000", b"[fd00::1]:8000", b"[fd00::1]", None])
def test_a_host_may_be_called_by_any_one_name(service: Service, host: bytes | None) -> None:
    """Without one as HTTP/1.0 has it."""
    line = b"GET /redfish/v1/ HTTP/1.1\r\nHost: %s\r\n" % host if host else b"GET /redfish/v1/ HTTP/1.0\r\n"
    answer = service.inside(answer_to, service, line + b"Connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_of_tls_1_2_only_suites_with_authenticated_encryption_are_spoken(service: Service) -> None:
    def suite(ciphers: str) -> str:
        context = service.authority.client_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(ciphers)
        with closing(redfish_service.tls_socket(service, context=context)) as connection:
            return connection.cipher()[0]  # type: ignore[index]

    for offered in ("ALL", "ECDHE+AESGCM", "ECDHE+CHACHA20"):
        assert service.inside(suite, offered).endswith(("-GCM-SHA256", "-GCM-SHA384", "-POLY1305"))
    with pytest.raises(OSError, match=r"(?i)handshake|alert|eof|reset"):
        service.inside(suite, "ALL:!AESGCM:!CHACHA20:!AESCCM:!ARIAGCM")


def answer_to(service: Service, head: bytes) -> bytes:
    received = b""
    with closing(redfish_service.tls_socket(service)) as connection, suppress(ConnectionError, ssl.SSLError):
        connection.sendall(head)
        while part := connection.recv(65536):
            received += part
    return received


def connected(source: str) -> socket.socket:
    return socket.create_connection((ADDRESS, PORT), timeout=PATIENCE, source_address=(source, 0))


def connect(address: str) -> None:
    socket.create_connection((address, PORT), timeout=PATIENCE).close()


def finish_after_sigterm(service: Service, address: str, head: bytes = PROMISE, body: bytes = b"{}") -> bytes:
    """A request of which a part is there when the service is told to end."""
    plain = socket.create_connection((address, PORT), timeout=PATIENCE)
    context = service.authority.client_context()
    context.check_hostname = False
    with closing(context.wrap_socket(plain)) as connection:
        connection.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body[:1])
        service.signal(signal.SIGTERM)
        wait_until("nobody else is let in", lambda: is_refused(address))
        connection.sendall(body[1:])
        return b"".join(iter(partial(connection.recv, 65536), b""))


def is_refused(address: str) -> bool:
    try:
        connect(address)
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it was about to be let in
        return False
    return False


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except ConnectionResetError:
        return True


def spoken(service: Service, context: ssl.SSLContext) -> str | None:
    with closing(redfish_service.tls_socket(service, context=context)) as connection:
        return connection.version()


def subject(service: Service) -> str:
    with closing(redfish_service.tls_socket(service)) as connection:
        certificate = x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"")
    return certificate.subject.rfc4514_string()


def heads(service: Service) -> Counter[str]:
    """How often the log has each message, without what follows a colon."""
    return Counter(line.partition(": ")[2].split(":")[0] for line in service.log.read_text().splitlines())


def fds(service: Service) -> int:
    return len(list(Path(f"/proc/{service.pid}/fd").iterdir()))
