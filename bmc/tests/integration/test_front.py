"""Who comes in, and what there is for them: faults 3 and 4, guests who guess, sessions, and the client sushy."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import uuid
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import sushy
from support import redfish_service
from support.redfish_service import ROOT, Node, Service
from sushy import auth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd
    from support.redfish_service import Answer, Client

OWN, OTHER, STRANGER = (Node(f"front-{name}") for name in ("own", "other", "stranger"))
SESSIONS = "SessionService/Sessions"
ENDLESS = "/redfish/v1/EventService/SSE"
LIST_ROUTES = """
import json, sys
from nometal_bmc.app import make_app
from nometal_bmc.config.reading import CurrentConfig
rules = make_app(CurrentConfig(sys.argv[1])).url_map.iter_rules()
print(json.dumps([[rule.rule, method] for rule in rules for method in sorted(rule.methods - {"OPTIONS", "HEAD"})]))
"""
# A body that would do something, for those that need one
BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", "<identity>"): {"Boot": {"BootSourceOverrideTarget": "Cd"}},
    ("PATCH", "SecureBoot"): {"SecureBootEnable": True},
    ("POST", "ComputerSystem.Reset"): {"ResetType": "On"},
    ("POST", "VirtualMedia.InsertMedia"): {"Image": "http://127.0.0.1:1/boot.iso"},
}


@pytest.fixture(scope="module")
def service(libvirtd: PrivateLibvirtd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """With two nodes; a stranger's VM is beside them."""
    redfish_service.define(libvirtd, [OWN, OTHER, STRANGER])
    with Service(libvirtd, tmp_path_factory.mktemp("front"), [OWN, OTHER]) as running:
        yield running


@pytest.fixture(scope="module")
def routes(service: Service) -> list[tuple[str, str]]:
    """All that the application answers to: rule and method. What never ends has tests of its own."""
    command = [sys.executable, "-c", LIST_ROUTES, str(service.directory / "config.json")]
    environment = {**os.environ, "PYTHONPATH": str(redfish_service.PACKAGE)}
    done = subprocess.run(service.libvirtd.command(command), env=environment, check=True, capture_output=True)
    found = [(rule, method) for rule, method in json.loads(done.stdout) if rule != ENDLESS]
    assert len(found) > 40
    return found


@pytest.fixture
def owner(service: Service) -> Client:
    return service.client(OWN.login)


@pytest.fixture
def guest(service: Service) -> Client:
    """Somebody who guesses; each has an address of its own."""
    return service.client(None, f"127.0.1.{next(GUESTS)}")


GUESTS = itertools.count(1)


def test_what_it_does_not_need_is_not_loaded(service: Service) -> None:
    loaded = Path(f"/proc/{service.pid}/maps").read_text()
    assert "/lxml/" in loaded
    assert re.findall("/libvirtmod|/libvirt.so|/cryptography/", loaded) == []


def test_fault_03_systems_of_others_do_not_exist_on_any_route(
    service: Service, routes: list[tuple[str, str]], owner: Client
) -> None:
    of_a_system = [(rule, method) for rule, method in routes if "<identity>" in rule and "Chassis" not in rule]
    assert {rule.split("/")[3] for rule, _method in of_a_system} == {"Systems", "Managers"}
    before = [definition(service, node) for node in (OTHER, STRANGER)]
    nowhere = str(uuid.uuid4())
    for client, strangers in ((owner, names_of(OTHER) + names_of(STRANGER)), (operator(service), names_of(STRANGER))):
        tries = [(rule, method, name) for rule, method in of_a_system for name in [nowhere, *strangers]]
        answers = ask_all(client, [(method, filled(rule, name), body(rule, method)) for rule, method, name in tries])
        assert {answer.status for answer in answers} == {404}, [
            (attempt, answer.status) for attempt, answer in zip(tries, answers) if answer.status != 404
        ]
        told = {answer.body.decode().replace(name, "X") for (_r, _m, name), answer in zip(tries, answers)}
        decoded = {re.sub("(?i)" + "|".join(re.escape(n) for n in plain_names(strangers)), "X", text) for text in told}
        assert len(decoded) == 1, decoded
    assert [definition(service, node) for node in (OTHER, STRANGER)] == before


def test_lists_hold_only_ones_own(service: Service, routes: list[tuple[str, str]], owner: Client) -> None:
    assert owner.get("Systems").members == [f"{ROOT}Systems/{OWN.uuid}"]
    assert owner.get("Managers").members == [f"{ROOT}Managers/{OWN.uuid}"]
    chassis = owner.get("Chassis").members[0].rpartition("/")[2]
    own_paths = [
        rule.replace("/Chassis/<identity>", f"/Chassis/{chassis}").replace("<identity>", OWN.uuid)
        for rule, method in routes
        if method == "GET"
    ]
    texts = [answer.body.decode() for answer in ask_all(owner, [("GET", filled(path, ""), None) for path in own_paths])]
    for hidden in (OTHER, STRANGER):
        assert [text for text in texts if hidden.uuid in text or hidden.name in text] == []
    everything = "".join(operator(service).get(path).body.decode() for path in ("Systems", "Managers"))
    assert OTHER.uuid in everything
    assert STRANGER.uuid not in everything


def test_a_system_is_found_by_any_of_its_names(owner: Client) -> None:
    for name in names_of(OWN):
        assert owner.get(f"Systems/{name}").json["UUID"] == OWN.uuid


@pytest.mark.parametrize(
    "path",
    [
        f"Systems/{OWN.uuid}/../{OTHER.uuid}",
        f"Systems/{OWN.uuid}%2f..%2f{OTHER.uuid}",
        f"Systems/{OWN.uuid}/%2e%2e/{OTHER.uuid}",
        f"/redfish/v1/Systems//{OTHER.uuid}",
        f"//redfish/v1/Systems/{OTHER.uuid}",
        f"Systems/{OTHER.uuid}%00",
        f"Systems/%c3%28{OTHER.uuid}",
        "Systems/../../../../etc/passwd",
    ],
)
def test_no_detour_leads_to_a_system_of_others(owner: Client, path: str) -> None:
    assert owner.get(path).status == 404


@pytest.mark.parametrize("target", [OTHER.uuid, OTHER.name, STRANGER.uuid])
def test_fault_03_updates_and_certificates_of_others_are_refused(service: Service, owner: Client, target: str) -> None:
    before = [definition(service, node) for node in (OTHER, STRANGER)]
    update = {"ImageURI": "http://127.0.0.1/image", "Targets": [f"{ROOT}Systems/{target}"]}
    uri = f"{ROOT}Managers/{target}/VirtualMedia/Cd/Certificates/Default"
    certificate = {"CertificateString": "x", "CertificateType": "PEM", "CertificateUri": uri}
    for path, asked in (
        ("UpdateService/Actions/UpdateService.SimpleUpdate", update),
        ("CertificateService/Actions/CertificateService.ReplaceCertificate", certificate),
    ):
        assert 400 <= owner.post(path, asked).status < 500
    assert [definition(service, node) for node in (OTHER, STRANGER)] == before


def test_fault_04_without_a_login_there_is_only_the_root(
    service: Service, routes: list[tuple[str, str]], guest: Client
) -> None:
    assert [guest.get(path).status for path in ("/redfish", "/redfish/v1", "/redfish/v1/")] == [200, 200, 200]
    closed = [
        (rule, method)
        for rule, method in routes
        if not rule.rstrip("/").endswith(("/v1", "redfish", "odata", "$metadata", SESSIONS))
    ] + [(ROOT + SESSIONS, "GET"), ("/anything", "GET"), ("/redfish/v1/anything", "PUT")]
    answers = ask_all(guest, [(method, filled(rule, OWN.uuid), body(rule, method)) for rule, method in closed])
    assert {answer.status for answer in answers} == {401}
    assert {answer.headers["WWW-Authenticate"] for answer in answers} == {'Basic realm="BMC"'}
    assert answers[0].json["error"]["@Message.ExtendedInfo"]


@pytest.mark.parametrize(
    "header",
    ["Basic", "Basic !", "Basic " + "A" * 3000, "Bearer x", "Negotiate", redfish_service.basic("operator", "")],
)
def test_no_other_header_is_a_login(guest: Client, header: str) -> None:
    assert guest.get("Systems", Authorization=header).status == 401


def test_fault_04_every_system_has_its_own_credentials(service: Service, guest: Client) -> None:
    for node, other in ((OWN, OTHER), (OTHER, OWN)):
        client = service.client(node.login)
        assert client.get(f"Systems/{node.uuid}").status == 200
        assert client.get(f"Systems/{other.uuid}").status == 404
        wrong = redfish_service.basic(node.name, other.login[1])
        assert guest.get(f"Systems/{node.uuid}", Authorization=wrong).status == 401


def test_who_guesses_is_slowed_down_and_keeps_nobody_out(service: Service, guest: Client) -> None:
    assert service.client(OWN.login).get("Systems").status == 200
    guesses = [redfish_service.basic(OWN.name, f"guess {number}") for number in range(40)]
    answers = ask_all(guest, [("GET", ROOT + "Systems", None, {"Authorization": guess}) for guess in guesses])
    assert [answer.status for answer in answers] == [401] * 8 + [429] * 32
    assert int(answers[-1].headers["Retry-After"]) >= 1
    login = {"UserName": OWN.name, "Password": "guess"}
    assert guest.post(SESSIONS, login).status == 429
    for source in ("127.0.0.1", guest.source):  # what has been right before is right from everywhere
        assert service.client(OWN.login, source).get("Systems").status == 200


@pytest.mark.parametrize("value", ["192.0.2.9", "2001:db8::9", "no address", "192.0.2.9\t,, 192.0.2.8", ""])
def test_no_header_tells_who_a_client_is(service: Service, guest: Client, value: str) -> None:
    """Also on this host itself, which reverse proxies are trusted to be elsewhere."""
    names = (
        "Forwarded",
        "X_Forwarded_For",
        "X_Forwarded_Host",
        "X_Forwarded_Proto",
        "X_Real_IP",
        "X_HTTP_Method_Override",
    )
    local = service.client(None, "127.0.0.1")
    for client in (local, guest):
        assert client.get("Systems?whence", **dict.fromkeys(names, value)).status == 401
    created = local.post(SESSIONS, {"UserName": OWN.name, "Password": OWN.login[1]}, **dict.fromkeys(names, value))
    assert created.status == 201
    place, token = created.headers["Location"], created.headers["X-Auth-Token"]
    assert place.startswith("/redfish/v1/")
    assert local.ask("DELETE", place, X_Auth_Token=token).status == 204
    assert "192.0.2." not in service.log.read_text()
    assert "2001:db8" not in service.log.read_text()


def test_fault_04_a_session_lives_until_it_is_deleted(service: Service, owner: Client, guest: Client) -> None:
    created = guest.post(SESSIONS, {"UserName": OWN.name, "Password": OWN.login[1]})
    assert created.status == 201
    place, token = created.headers["Location"], created.headers["X-Auth-Token"]
    assert created.json["@odata.id"] == place
    assert guest.get("Systems", X_Auth_Token=token).members == [f"{ROOT}Systems/{OWN.uuid}"]
    assert guest.get(f"Systems/{OTHER.uuid}", X_Auth_Token=token).status == 404
    assert guest.get("SessionService", X_Auth_Token=token).json["SessionTimeout"] > 0
    assert place in guest.get(SESSIONS, X_Auth_Token=token).members
    assert guest.get(place, X_Auth_Token=token).json["UserName"] == OWN.name

    other = service.client(OTHER.login)
    assert place not in other.get(SESSIONS).members
    assert other.get(place).status == other.ask("DELETE", place).status == 404
    assert place in operator(service).get(SESSIONS).members
    assert operator(service).get(place).json["UserName"] == OWN.name

    assert guest.ask("DELETE", place, X_Auth_Token=token).status == 204
    assert guest.get("Systems", X_Auth_Token=token).status == 401
    assert guest.get("Systems", X_Auth_Token=token[1:]).status == 401
    assert owner.get(place).status == 404


def test_the_operator_ends_sessions_of_nodes(service: Service, guest: Client) -> None:
    created = guest.post(SESSIONS, {"UserName": OWN.name, "Password": OWN.login[1]})
    place, token = created.headers["Location"], created.headers["X-Auth-Token"]
    assert operator(service).ask("DELETE", place).status == 204
    assert guest.get("Systems", X_Auth_Token=token).status == 401


SYSTEM = f"{ROOT}Systems/{OWN.uuid}"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/anything", 404),
        ("GET", "//redfish/v1/Nowhere", 404),
        ("GET", f"{ROOT}/Systems", 404),
        ("GET", f"{ROOT}Systems//{OWN.uuid}", 404),
        ("GET", f"{SYSTEM}//", 404),
        ("GET", f"{ROOT}Registries/Messages", 404),
        ("GET", f"{ROOT}CertificateService", 404),
        ("GET", "/static/x", 404),
        ("PATCH", "/redfish/v1", 405),
        ("PATCH", "/redfish/v1/", 405),
        ("POST", "/redfish", 405),
        ("DELETE", SYSTEM, 405),
        ("TRACE", SYSTEM, 405),
        ("GET", RESET, 405),
        ("GET", f"{RESET}/", 405),
        ("PUT", f"{ROOT}{SESSIONS}", 405),
        ("POST", f"{SYSTEM}/SecureBoot", 405),
        ("POST", RESET, 400),
        ("GET", "/" + "x" * 20000, 404),
        ("BREW", SYSTEM, 501),
        ("PROPFIND", SYSTEM, 405),
    ],
)
def test_every_refusal_is_redfish(owner: Client, method: str, path: str, status: int) -> None:
    answer = owner.ask(method, path)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/json"), answer.body
    [info] = answer.json["error"]["@Message.ExtendedInfo"]
    assert info["Message"] == answer.json["error"]["message"]
    assert "browser" not in info["Message"]
    assert answer.headers["OData-Version"] == "4.0"
    assert bool(answer.headers["Allow"]) == (status == 405)


def test_methods_that_tell_nothing_new_have_no_body(owner: Client) -> None:
    for path in (SYSTEM, f"{SYSTEM}/", RESET):
        answer = owner.ask("OPTIONS", path)
        assert (answer.status, answer.body) == (204, b"")
        assert ("PATCH" in answer.headers["Allow"]) == (path != RESET)
    for path, status in ((SYSTEM, 200), (f"{ROOT}nothing", 404)):
        answer = owner.ask("HEAD", path)
        assert (answer.status, answer.headers["Content-Type"], answer.body) == (status, "application/json", b"")
    assert owner.get(f"{SYSTEM}/").json == owner.get(SYSTEM).json


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("", "GET, HEAD, OPTIONS"),
        (f"Systems/{OWN.uuid}", "GET, HEAD, OPTIONS, PATCH"),
        (SESSIONS, "GET, HEAD, OPTIONS, POST"),
        (f"Systems/{OWN.uuid}/Processors", "GET, HEAD, OPTIONS"),
    ],
)
def test_an_answer_tells_what_can_be_done_and_where_its_schema_is(owner: Client, path: str, allowed: str) -> None:
    answers = [owner.ask(method, path) for method in ("GET", "HEAD")]
    kind = answers[0].json["@odata.type"].removeprefix("#").rpartition(".")[0]
    for answer in answers:
        assert answer.headers["Allow"] == allowed
        assert answer.headers["Link"] == f"<http://redfish.dmtf.org/schemas/v1/{kind}.json>; rel=describedby"
        assert answer.headers.get_all("Cache-Control") == ["no-store"]
    assert owner.get("nowhere").headers.get_all("Cache-Control") == ["no-store"]


@pytest.mark.parametrize(
    ("version", "status"), [("4.0", 200), ("4.1", 412), ("3.0", 412), ("", 412), ("4.0, 4.1", 412)]
)
def test_another_version_of_odata_is_refused(owner: Client, version: str, status: int) -> None:
    for path in ("", "Systems"):
        answer = owner.get(path, OData_Version=version)
        assert answer.status == status
        assert answer.headers["OData-Version"] == "4.0"
        assert ("error" in answer.json) == (status == 412)


def test_odata_clients_find_their_way(service: Service, guest: Client) -> None:
    listed = guest.get("/redfish/v1/odata").json
    assert {"Service", "Systems", "Managers"} <= {entry["name"] for entry in listed["value"]}
    assert listed["@odata.context"] == "/redfish/v1/$metadata"
    metadata = guest.get("/redfish/v1/$metadata")
    assert metadata.headers["Content-Type"] == "application/xml"
    known = set(re.findall(r'<edmx:Include Namespace="([^"]+)"', metadata.body.decode()))
    paths = ["", "Systems", SYSTEM, f"{SYSTEM}/VirtualMedia/Cd", f"{ROOT}Managers/{OWN.uuid}", "SessionService"]
    answers = [operator(service).get(path) for path in paths]
    assert {answer.json["@odata.type"].strip("#").rpartition(".")[0] for answer in answers} <= known


@pytest.mark.parametrize(
    ("asked", "status", "prop"),
    [
        ({"UserName": OWN.name, "Password": "wrong"}, 401, None),
        ({"UserName": OWN.name, "Password": "\ud800"}, 401, None),
        ({"UserName": "\ud800", "Password": "\0"}, 401, None),
        ({"UserName": OWN.name}, 400, "Password"),
        ({"UserName": 1, "Password": "x"}, 400, "UserName"),
        ({"UserName": OWN.name, "Password": "x", "Token": "y"}, 400, "Token"),
        ([], 400, None),
        (b"{", 400, None),
    ],
)
def test_a_wrong_login_makes_no_session(guest: Client, asked: Any, status: int, prop: str | None) -> None:
    answer = guest.post(SESSIONS, asked)
    assert answer.status == status
    assert "X-Auth-Token" not in answer.headers
    [info] = answer.json["error"]["@Message.ExtendedInfo"]
    assert info.get("RelatedProperties") == (prop and [f"#/{prop}"])


@pytest.mark.parametrize("kind", [auth.SessionAuth, auth.SessionOrBasicAuth, auth.BasicAuth])
def test_fault_04_sushy_comes_in(service: Service, kind: type[auth.AuthBase]) -> None:
    def come_in() -> list[str]:
        client = sushy.Sushy(service.url, verify=str(service.authority.ca), auth=kind(*OWN.login))
        if kind is not auth.BasicAuth:
            assert client._auth.get_session_key()  # noqa: SLF001 - or it has fallen back
        systems = client.get_system_collection().get_members()
        client._auth.close()  # noqa: SLF001 - as Ironic ends its sessions
        return [system.uuid for system in systems]

    assert service.inside(come_in) == [OWN.uuid]
    assert service.client(OWN.login).get(SESSIONS).members == []


def test_sushy_is_told_of_a_wrong_password(service: Service) -> None:
    def come_in() -> None:
        wrong = auth.SessionOrBasicAuth(OTHER.name, "wrong")
        sushy.Sushy(service.url, verify=str(service.authority.ca), auth=wrong).get_system_collection()

    with pytest.raises(sushy.exceptions.AccessError):
        service.inside(come_in)


def test_a_request_is_one_line_of_the_log_and_secrets_are_none(service: Service, guest: Client) -> None:
    """The last test: it looks at what the others have left."""
    created = guest.post(SESSIONS, {"UserName": OWN.name, "Password": OWN.login[1]})
    guest.get("%0aINFO:forged%1b[31m?token=in-the-query")
    log = service.log.read_text()
    assert "INFO nometal_bmc.access: GET /redfish/v1/\\nINFO:forged\\x1b[31m 401" in log
    assert re.search(
        rf"^INFO nometal_bmc.access: POST \S+ 201 \d+ ms {OWN.name} from {guest.source}$", log, re.MULTILINE
    )
    assert all(re.match(r"(INFO|WARNING) nometal_bmc", line) for line in log.splitlines()), log
    passwords = [OWN.login[1], OTHER.login[1], Service.operator[1], "guess 1", "scrypt"]
    for secret in (*passwords, created.headers["X-Auth-Token"], "in-the-query"):
        assert secret not in log


def operator(service: Service) -> Client:
    return service.client(service.operator)


def names_of(node: Node) -> list[str]:
    encoded = "".join(f"%{ord(letter):02x}" for letter in node.uuid)
    return [node.uuid, node.uuid.upper(), encoded, node.name, quote(node.name).replace("-", "%2D")]


def plain_names(names: list[str]) -> set[str]:
    return {name for name in names if "%" not in name}


def filled(rule: str, identity: str) -> str:
    path = rule.replace("<identity>", identity).replace("<device>", "Cd")
    return re.sub("<[^>]*>", "1", path)


def body(rule: str, method: str) -> Any:
    return BODIES.get((method, rule.rpartition("/")[2]), None if method == "GET" else {})


def definition(service: Service, node: Node) -> str:
    return service.libvirtd.run(["virsh", "dumpxml", node.name]).stdout


def ask_all(client: Client, requests: list[Any]) -> list[Answer]:
    """Method, path, body and perhaps headers of each; on one connection."""

    def run() -> list[Answer]:
        with closing(client.connection()) as connection:
            return [one(connection, *request) for request in requests]

    def one(connection: Any, method: str, path: str, asked: Any, headers: Any = None) -> Answer:
        login = {"Authorization": redfish_service.basic(*client.login)} if client.login else {}
        text = None if asked is None else json.dumps(asked)
        connection.request(method, path, text, {"Content-Type": "application/json", **login, **(headers or {})})
        response = connection.getresponse()
        return redfish_service.Answer(response.status, response.headers, response.read())

    return client.service.inside(run)
