"""Who may ask for what, decided beside an application that answers everything."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import flask
import pytest
from flask.testing import FlaskClient

from nometal_bmc.answers import Refused
from nometal_bmc.config import passwords
from nometal_bmc.config.settings import Account, Config, Media, System
from nometal_bmc.front import guard

ONE, TWO = (System(f"0b3f8f4e-8c1d-4f5e-9d5a-00000000000{letter}", letter) for letter in "ab")
HASH = passwords.HashedPassword(16, 1, 1, b"salt", bytes(32)).of("right")
RULES = (
    "/redfish/v1/",
    "/redfish/v1/Systems",
    "/redfish/v1/Systems/<identity>",
    "/redfish/v1/Systems/<identity>/Storage/<storage>",
    "/redfish/v1/Systems/Bios/BiosRegistry",
    "/redfish/v1/Managers/<identity>",
    "/redfish/v1/Chassis/<identity>",
)


class Now:
    config = Config(
        lab="ha",
        broker=Path("/run/broker.sock"),
        listen=(),
        tls=None,
        systems=(ONE, TWO),
        accounts=(
            Account("all", HASH, None),
            Account("one", HASH, frozenset({ONE.uuid})),
            Account("no", HASH, frozenset()),
        ),
        media=Media(Path("/"), 0, 0, None),
        state=Path("/"),
    )


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """Of an application that tells which system it was asked for, and to which it was confined."""
    app = flask.Flask(__name__)
    for rule in RULES:
        app.add_url_rule(rule, rule, lambda **asked: {"asked": asked, "only": sorted(flask.g.get("systems", ["all"]))})
    app.register_error_handler(Refused, lambda refused: (refused.body, refused.status, refused.headers))
    now = Now()
    now.config = replace(now.config, state=tmp_path_factory.mktemp("state"))
    guard.protect(app, now)  # type: ignore[arg-type]
    guard.protect(app, now)  # type: ignore[arg-type]
    return app.test_client()


def login(name: str, password: str = "right") -> dict[str, str]:  # noqa: S107 - invented
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("name", "identity", "status"),
    [
        ("all", ONE.uuid, 200),
        ("all", TWO.uuid.upper(), 200),
        ("all", "b", 200),
        ("all", "c", 404),
        ("all", "A", 404),
        ("one", ONE.uuid.upper(), 200),
        ("one", "a", 200),
        ("one", "%61", 200),
        ("one", TWO.uuid, 404),
        ("one", "b", 404),
        ("one", f"{ONE.uuid}%00", 404),
        ("one", "{" + ONE.uuid + "}", 404),
        ("one", ONE.uuid.replace("-", ""), 404),
        ("no", ONE.uuid, 404),
    ],
)
@pytest.mark.parametrize("place", ["Systems/{}", "Systems/{}/Storage/b", "Managers/{}"])
def test_an_account_finds_its_systems_by_their_names(
    client: FlaskClient, place: str, name: str, identity: str, status: int
) -> None:
    answer = client.get("/redfish/v1/" + place.format(identity), headers=login(name))
    assert answer.status_code == status
    if status == 200:
        assert answer.json
        assert answer.json["asked"]["identity"] in (ONE.uuid, TWO.uuid)


@pytest.mark.parametrize(("name", "only"), [("all", ["all"]), ("one", [ONE.uuid]), ("no", [])])
def test_lists_know_to_what_they_are_confined(client: FlaskClient, name: str, only: list[str]) -> None:
    for path in ("Systems", "Systems/Bios/BiosRegistry", "Chassis/b"):
        answer = client.get(f"/redfish/v1/{path}", headers=login(name))
        assert answer.json
        assert answer.json["only"] == only


@pytest.mark.parametrize("path", ["/redfish/v1/Systems", "/redfish/v1/nothing", "/", "/redfish/v1/SessionService"])
@pytest.mark.parametrize(
    "headers", [{}, {"X-Auth-Token": "x"}, {**login("all"), "X-Auth-Token": "x"}, login("all", "x")]
)
def test_without_a_login_nothing_is_told(client: FlaskClient, path: str, headers: dict[str, str]) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS", "HEAD"):
        assert client.open(path, method=method, headers=headers).status_code in (401, 429)


def test_the_root_is_open(client: FlaskClient) -> None:
    assert client.get("/redfish/v1/").status_code == 200


def test_a_body_has_an_end(client: FlaskClient) -> None:
    answer = client.post("/redfish/v1/SessionService/Sessions", data=b"x" * (guard.MOST_BODY_BYTES + 1))
    assert answer.status_code in (400, 413)
