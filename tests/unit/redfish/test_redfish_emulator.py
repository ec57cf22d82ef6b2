"""What the redfish_emulator module decides: what it takes from its arguments, what is to be done, what a file says."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._redfish import certificates, config, credentials, service
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.certificates import Certificate
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.credentials import Hashes, Login
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.emulator import Emulator, desired, plan
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.lab import Endpoint, Lab, lab_from
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.service import Service
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.unit import unit_text

if TYPE_CHECKING:
    from collections.abc import Mapping

UUID, OTHER_UUID = "07cead2f-f762-5578-a5c9-a377314b4257", "6a365ade-f1ad-5831-8a4c-a2834f7fb175"
NODE = {"uuid": UUID, "vm_name": "demo-worker-0", "bmc": {"protocol": "redfish", "address": "somewhere"}}
IPMI_NODE = {"uuid": UUID, "vm_name": "demo-worker-0", "bmc": {"protocol": "ipmi", "host": "172.22.0.1", "port": 6230}}
PARAMS: dict[str, Any] = {
    "lab": "demo",
    "listen": [{"address": "192.168.126.1", "port": 8000}],
    "tls": True,
    "names": [],
    "nodes": [NODE],
    "media": {"max_bytes": 1, "timeout": 1, "ca_file": None},
    "user": "nometal-bmc",
    "home": "/var/lib/nometal/bmc",
    "software": "/opt/nometal/bmc",
    "libvirt_uri": "qemu:///system",
    "state": "present",
}
LOGINS = {"operator": Login("operator", "one"), "demo-worker-0": Login("demo-worker-0", "two")}


def lab(**changed: Any) -> Lab:
    return lab_from({**PARAMS, **changed})


def steps(current: Emulator | None, wanted: Emulator | None) -> list[str]:
    return [str(step) for step in plan(current, wanted)]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lab": "Demo"}, "lab is 'Demo'; lower case letters"),
        ({"listen": [{"address": "::", "port": 8000}]}, "the whole world would be served"),
        ({"listen": [{"address": "gateway", "port": 8000}]}, "listen[0].address is 'gateway'; an IP address"),
        ({"listen": [{"address": "192.168.126.1"}]}, "listen[0].port is None; 1 to 65535"),
        ({"listen": []}, "listen is empty, and demo-worker-0 would be commanded by Redfish"),
        ({"nodes": [{**NODE, "uuid": "7"}]}, "nodes[0].uuid is '7'; a UUID"),
        ({"nodes": [{**NODE, "vm_name": "operator"}]}, "nodes[0].vm_name is 'operator'"),
        ({"nodes": [NODE, {**NODE, "uuid": OTHER_UUID}]}, "vm_name demo-worker-0 is there twice."),
        ({"nodes": [NODE, {**NODE, "vm_name": "other"}]}, f"UUID {UUID} is there twice."),
        ({"nodes": [{**IPMI_NODE, "bmc": {"protocol": "ipmi"}}]}, "nodes[0].bmc.port is None"),
        ({"home": "bmc"}, "bmc is no absolute path."),
    ],
)
def test_bad_arguments_are_refused(changed: Mapping[str, Any], said: str) -> None:
    with pytest.raises(OperatorError) as refused:
        lab(**changed)
    assert said in str(refused.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(OperatorError) as refused:
        lab(lab="Demo", listen=[], names=["not a name"])
    assert len(str(refused.value).splitlines()) == 3


def test_to_remove_a_lab_its_name_is_enough() -> None:
    assert lab(listen=[], nodes=[], state="absent").name == "demo"


def test_ipmi_nodes_have_a_place_and_a_short_username_and_no_account() -> None:
    made = lab(nodes=[IPMI_NODE], listen=[], tls=False)
    assert made.nodes[0].ipmi == Endpoint("172.22.0.1", 6230)
    assert made.usernames == {"demo-worker-0": "admin"}
    logins = {"demo-worker-0": Login("admin", "two")}
    written = json.loads(config.text_of(made, logins, Hashes({})))
    assert (written["accounts"], written["listen"], written["tls"]) == ([], [], None)
    assert written["ipmi"][0].items() >= {"username": "admin", "password": "two"}.items()
    assert config.told(json.dumps(written), logins, Hashes({})) == config.declared(made)


def whole() -> Emulator:
    wanted = desired(lab())
    return replace(wanted, service=replace(wanted.service, serving="now"))


def test_nothing_is_to_be_done_when_all_is_as_it_should_be() -> None:
    assert steps(whole(), whole()) == []
    assert steps(None, None) == []


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        ({"usernames": {}, "config": None}, ["write credentials", "write configuration"]),
        ({"certificate": Certificate(("10.0.0.1",))}, ["write certificate"]),
        ({"certificate": Certificate(("192.168.126.1",), good=False)}, ["write certificate"]),
        ({"ca": False, "certificate": None}, ["write CA", "write certificate"]),
        ({"service": Service(there=True, installed=True, running=False, serving="now")}, ["start service"]),
        ({"service": Service(there=True, installed=True, running=True, serving="old")}, ["restart service"]),
        ({"service": Service(there=True, running=True, serving="now")}, ["install service"]),
        ({"directories": ()}, [f"make {path}" for path in whole().directories]),
        (
            {"access": {"/var/lib/nometal/bmc/demo/tls/ca.key": "root:root 0644"}},
            ["protect /var/lib/nometal/bmc/demo/tls/ca.key"],
        ),
    ],
)
def test_what_differs_is_done_and_nothing_else(current: Mapping[str, Any], expected: list[str]) -> None:
    assert steps(replace(whole(), **current), whole()) == expected


def test_a_half_made_one_is_removed_and_its_directory_last() -> None:
    half = Emulator(directories=("/var/lib/nometal/bmc/demo",), service=Service(running=True))
    assert steps(half, None) == ["remove service", "remove directory"]


def test_a_change_of_listen_or_tls_needs_a_restart_and_one_of_nodes_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(service, "SYSTEM_BUS", tmp_path)

    def serving(**changed: Any) -> str | None:
        return desired(lab(**changed)).service.serving

    assert serving(nodes=[]) == serving(names=["bmc.example.test"]) == serving()
    elsewhere = [{"address": "192.168.126.1", "port": 8001}]
    assert len({serving(), serving(tls=False), serving(listen=elsewhere), serving(user="other")}) == 4


def test_what_is_shown_of_a_configuration_holds_no_secret() -> None:
    hashes = Hashes({}).completed(LOGINS)
    text = config.text_of(lab(), LOGINS, hashes)
    told = config.told(text, LOGINS, hashes)
    assert told == config.declared(lab())
    assert "scrypt" in text
    assert "scrypt" not in json.dumps(told)

    changed = {**LOGINS, "operator": Login("operator", "another")}
    shown = config.told(text, changed, hashes.completed(changed))
    assert shown is not None
    assert [account["password"] for account in shown["accounts"]] == ["another", "that of demo-worker-0"]
    assert config.told("{", LOGINS, hashes) is None


def test_passwords_and_their_hashes_stay() -> None:
    first = credentials.completed({}, {"operator": "operator", "gone": "gone"})
    later = credentials.completed(first, {"operator": "operator", "new": "new"})
    assert later["operator"] == first["operator"]
    assert set(later) == {"operator", "new"}
    assert len({login.password for login in (*first.values(), *later.values())}) == 3
    assert all(len(login.password) == 16 for login in later.values())

    hashes = Hashes({}).completed(first)
    assert hashes.completed(later).of(first["operator"]) == hashes.of(first["operator"]) is not None
    assert hashes.completed(later).of(first["gone"]) is None
    assert first["operator"].password not in repr(first)


def test_a_damaged_file_of_credentials_is_told(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text("{")
    with pytest.raises(OperatorError, match="Repair it, or remove it"):
        credentials.read(file)
    file.write_text('{"operator": {}}')
    with pytest.raises(OperatorError, match="lacks a username or password"):
        credentials.read(file)


def test_a_certificate_is_renewed_long_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ca, names = certificates.make_ca("demo"), ("192.168.126.1", "fd00:5::1", "bmc.example.test")
    server = certificates.make_server("demo", names, ca)
    assert certificates.is_good_ca(ca)
    assert certificates.read(server, ca) == Certificate(names)
    assert certificates.read(server, certificates.make_ca("demo")) == Certificate(names, good=False)
    assert certificates.read(replace(server, key=ca.key), ca) is None
    assert certificates.read(replace(server, certificate=b"torn"), ca) is None

    now = certificates._now()  # noqa: SLF001 - the clock is turned on
    monkeypatch.setattr(certificates, "_now", lambda: now + certificates.SPAN - certificates.RENEWAL)
    assert certificates.read(server, ca) is None
    assert certificates.is_good_ca(ca)
    monkeypatch.setattr(certificates, "_now", lambda: now + certificates.CA_SPAN - datetime.timedelta(days=1))
    assert not certificates.is_good_ca(ca)


def test_the_unit_never_gives_up_and_is_back_at_once() -> None:
    lines = unit_text(lab()).splitlines()
    assert {"Restart=always", "RestartSec=200ms", "StartLimitIntervalSec=0", "User=nometal-bmc"} <= set(lines)
    assert "ExecStart=/opt/nometal/bmc/bin/python -m nometal_bmc /var/lib/nometal/bmc/demo/config.json" in lines
