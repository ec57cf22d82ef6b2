"""The configuration file: what is taken, what is refused and in which words, and that it may be replaced."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nometal_bmc.config import passwords, reading
from nometal_bmc.config.sections import ConfigError
from nometal_bmc.config.settings import ALWAYS_OFF, ALWAYS_ON, RESTART_SECONDS, Ipmi, Listen, System, Tls

if TYPE_CHECKING:
    from typing import Callable

ONE, TWO = "0b3f8f4e-8c1d-4f5e-9d5a-000000000001", "0b3f8f4e-8c1d-4f5e-9d5a-000000000002"
HASH = str(passwords.HashedPassword(16, 1, 1, b"salt", bytes(32)))
GOOD: dict[str, Any] = {
    "lab": "ha",
    "broker": "/run/broker.sock",
    "listen": [{"address": "192.168.126.1", "port": 8000}, {"address": "fd00::1", "port": 8000}],
    "tls": {"certificate": "/tls/server.pem", "key": "/tls/server.key"},
    "systems": [{"uuid": ONE.upper(), "name": "one"}, {"uuid": TWO, "name": "two"}],
    "accounts": [
        {"name": "operator", "password": HASH, "systems": None},
        {"name": "one", "password": HASH, "systems": [ONE.upper()]},
    ],
    "media": {"directory": "/media", "max_bytes": 1000, "timeout": 60, "ca_file": None},
    "state": "/state",
}
IPMI = {
    "uuid": ONE,
    "name": "one",
    "addresses": ["172.22.0.254", "192.168.126.1"],
    "port": 6230,
    "username": "admin",
    "password": "p",
}


def written(directory: Path, value: Any) -> Path:
    path = directory / "config.json"
    path.with_suffix(".new").write_text(value if isinstance(value, str) else json.dumps(value))
    return path.with_suffix(".new").replace(path)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    read = reading.load(written(tmp_path, {**GOOD, "ipmi": [IPMI]}))
    assert read.systems == (System(ONE, "one"), System(TWO, "two"))
    assert read.listen[1] == Listen("fd00::1", 8000)
    assert read.tls == Tls(Path("/tls/server.pem"), Path("/tls/server.key"))
    assert read.media.ca_file is None
    assert read.media.networks == ()
    assert read.ipmi == (Ipmi(ONE, "one", ("172.22.0.254", "192.168.126.1"), 6230, "admin", "p"),)
    one, operator = read.account("one"), read.account("operator")
    assert one
    assert operator
    assert [one.commands(system) for system in read.systems] == [True, False]
    assert [operator.commands(system) for system in read.systems] == [True, True]


def test_networks_of_images_are_read(tmp_path: Path) -> None:
    media = {**GOOD["media"], "networks": ["192.168.126.0/24", "fd00::/64"]}
    networks = reading.load(written(tmp_path, {**GOOD, "media": media})).media.networks
    assert [str(network) for network in networks] == media["networks"]


def test_systems_are_found_by_uuid_in_any_case_and_by_name(tmp_path: Path) -> None:
    read = reading.load(written(tmp_path, GOOD))
    assert read.find(ONE.upper()) == read.find(ONE) == read.find("one") == read.systems[0]
    assert read.find("ONE") is None
    assert read.find("") is None


def test_no_password_is_in_the_text_of_a_config(tmp_path: Path) -> None:
    secret = {**IPMI, "password": "very-secret"}
    text = repr(reading.load(written(tmp_path, {**GOOD, "ipmi": [secret]})))
    assert "very-secret" not in text
    assert "salt" not in text


@pytest.mark.parametrize(
    ("where", "value", "text"),
    [
        (["speed"], 1, "the file: unknown: speed"),
        (["systems", 0, "colour"], "red", "systems[0]: unknown: colour"),
        (["tls", "ca"], "x", "tls: unknown: ca"),
        (["lab"], None, "the file: lab must be of type str, not NoneType"),
        (["listen"], [], "listen: must have an address, unless there is ipmi"),
        (["listen", 0, "address"], "0.0.0.0", "listen[0]: 0.0.0.0 would serve the whole world"),  # noqa: S104 - refused
        (["listen", 0, "address"], "::", "listen[0]: :: would serve the whole world"),
        (["listen", 0, "address"], "host", "listen[0]: must be an IP address (got host)"),
        (["listen", 0, "port"], True, "listen[0]: port must be of type int, not bool"),
        (["listen", 0, "port"], 0, "listen[0]: port must be 1 to 65535 (got 0)"),
        (["systems", 0, "uuid"], "one", "systems[0]: must be a UUID (got one)"),
        (["systems", 1, "uuid"], ONE, f"systems: UUID {ONE} is there twice"),
        (["systems", 1, "name"], "one", "systems: name one is there twice"),
        (["accounts", 1, "name"], "operator", "accounts: name operator is there twice"),
        (["accounts", 1, "name"], "a:b", "accounts[1]: name 'a:b' cannot be used with Basic authentication"),
        (["accounts", 1, "name"], "a\nb", "accounts[1]: name 'a\\nb' cannot be used with Basic authentication"),
        (["accounts", 1, "password"], "secret", "accounts[1]: password of one: expected scrypt:"),
        (["accounts", 1, "systems"], [IPMI["uuid"].replace("1", "7")], "accounts: one is for "),  # type: ignore[attr-defined]
        (["accounts", 1, "systems"], [1], "accounts[1]: systems must be a list of texts"),
        (["media"], [], "the file: media must be of type dict, not list"),
        (["media", "networks"], ["10.0.0.1/8"], "media: networks: 10.0.0.1/8 has host bits set"),
        (["media", "networks"], "10.0.0.0/8", "media: networks must be of type list, not str"),
        (["ipmi"], [IPMI, IPMI], f"ipmi: UUID {ONE} is there twice"),
        (["ipmi"], [IPMI, {**IPMI, "uuid": TWO}], "ipmi: address and port ('172.22.0.254', 6230) is there twice"),
        (["ipmi"], [{**IPMI, "addresses": []}], "ipmi[0]: addresses: must have an address"),
        (["ipmi"], [{**IPMI, "addresses": ["::"]}], "ipmi[0]: :: would serve the whole world"),
        (["ipmi"], [{**IPMI, "addresses": ["::1", "::1"]}], "ipmi[0]: address ::1 is there twice"),
        (["ipmi"], [{**IPMI, "password": "p" * 21}], "ipmi[0]: password must have 1 to 20 bytes, as IPMI demands"),
        (["ipmi"], [{**IPMI, "password": "ö" * 11}], "ipmi[0]: password must have 1 to 20 bytes, as IPMI demands"),
        (["ipmi"], [{**IPMI, "username": ""}], "ipmi[0]: username must have 1 to 16 bytes, as IPMI demands"),
    ],
)
def test_a_wrong_file_is_refused_in_words(tmp_path: Path, where: list[Any], value: Any, text: str) -> None:
    wrong: Any = copy.deepcopy(GOOD)
    place = wrong
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(ConfigError) as refused:
        reading.load(written(tmp_path, wrong))
    assert f"{tmp_path}/config.json: {text}" in str(refused.value)


@pytest.mark.parametrize("key", sorted(GOOD))
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=f"the file: {key} is missing"):
        reading.load(written(tmp_path, {other: value for other, value in GOOD.items() if other != key}))


BROKER = {
    "lab": "ha",
    "libvirt_uri": "test:///default",
    "socket": "/broker/broker.sock",
    "user": None,
    "systems": GOOD["systems"],
    "media": None,
}


def test_what_the_broker_is_told_by_default(tmp_path: Path) -> None:
    read = reading.load_broker(written(tmp_path, BROKER))
    assert (read.restart_timeout, read.power_restore) == (RESTART_SECONDS, ALWAYS_OFF)


def test_the_brokers_power_restore_policy(tmp_path: Path) -> None:
    assert reading.load_broker(written(tmp_path, {**BROKER, "power_restore": "AlwaysOn"})).power_restore == ALWAYS_ON
    with pytest.raises(ConfigError, match="power_restore: On is none of AlwaysOff, LastState, AlwaysOn"):
        reading.load_broker(written(tmp_path, {**BROKER, "power_restore": "On"}))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"lab": "ha"', "\0"])
def test_what_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        reading.load(written(tmp_path, text))


def test_a_lab_of_ipmi_bmcs_needs_no_address(tmp_path: Path) -> None:
    assert reading.load(written(tmp_path, {**GOOD, "listen": [], "ipmi": [IPMI]})).listen == ()


def test_a_replaced_file_is_taken_and_a_wrong_one_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    current = reading.CurrentConfig(written(tmp_path, GOOD))
    first = current.config
    current.refresh()
    assert current.config is first
    written(tmp_path, {**GOOD, "lab": "other"})
    current.refresh()
    assert current.config.lab == "other"
    written(tmp_path, {**GOOD, "lab": 1})
    for _look in range(3):
        current.refresh()
    assert current.config.lab == "other"
    assert caplog.text.count("Keeping the configuration of before") == 1
    (tmp_path / "config.json").unlink()
    current.refresh()
    assert current.config.lab == "other"


def test_asking_is_enough_to_see_a_replaced_file(tmp_path: Path, clock: Callable[[float], None]) -> None:
    current = reading.CurrentConfig(written(tmp_path, GOOD))
    written(tmp_path, {**GOOD, "lab": "other"})
    assert current.config.lab == "ha"
    clock(1.0)
    assert current.config.lab == "other"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [1000.0]
    monkeypatch.setattr(reading.time, "monotonic", lambda: now[0])

    def pass_on(seconds: float) -> None:
        now[0] += seconds

    return pass_on
