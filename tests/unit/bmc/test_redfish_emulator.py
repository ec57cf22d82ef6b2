"""What the redfish_emulator module decides: what it takes from its arguments, what is to be done, what a file says."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import certificates, config, credentials, supervised
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.arguments import lab_from
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.certificates import Certificate
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Hashes, Login
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.emulator import Emulator, desired, plan
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import Endpoint
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.service import Service
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.units import units
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Port
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import PowerRestore
from nometal_bmc.config import reading

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
    "ipmi_addresses": [],
    "media": {"max_bytes": 2**30, "timeout": 60, "ca_file": None},
    "user": "nometal-bmc",
    "broker_user": "nometal-bmc-broker",
    "home": "/var/lib/nometal/bmc",
    "software": "/opt/nometal/bmc",
    "libvirt_uri": "qemu:///system",
    "state": "present",
}
PEM, PKCS8, OPEN = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
LOGINS = {"operator": Login("operator", "one"), "demo-worker-0": Login("demo-worker-0", "two")}


def lab(**changed: Any) -> Lab:
    made, mistakes = lab_from({**PARAMS, **changed})
    assert not mistakes
    return made


def mistakes(**changed: Any) -> list[str]:
    try:
        return lab_from({**PARAMS, **changed})[1]
    except OperatorError as error:
        return str(error).splitlines()


def media(**changed: Any) -> dict[str, Any]:
    return {"media": {**PARAMS["media"], **changed}}


def steps(current: Emulator | None, wanted: Emulator | None) -> list[str]:
    return [str(step) for step in plan(current, wanted)]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lab": "Demo"}, "lab: must be lower case letters, digits and inner hyphens, without a dot (got 'Demo')"),
        (
            {"listen": [{"address": "::", "port": 8000}]},
            "listen[0].address: must be one address of the lab, or the whole world would be served (got '::')",
        ),
        (
            {"listen": [{"address": "fe80::1", "port": 8000}]},
            "listen[0].address: must be an address of the lab, not one that each link may have (got 'fe80::1')",
        ),
        (
            {"listen": [{"address": "gateway", "port": 8000}]},
            "listen[0].address: must be an IP address of the lab's host (got 'gateway')",
        ),
        ({"listen": [{"address": "192.168.126.1"}]}, "listen[0].port: missing; must be a port, such as 1024"),
        (
            {"listen": [{"address": "192.168.126.1", "port": 443}]},
            "listen[0].port: must be a whole number from 1024 to 65535 (got 443)",
        ),
        (
            {"listen": [{"address": "192.168.126.1", "port": True}]},
            "listen[0].port: must be a whole number from 1024 to 65535 (got true)",
        ),
        (
            {"listen": [{**PARAMS["listen"][0], "protocol": "udp"}]},
            "listen[0].protocol: must be one of tcp (got 'udp')",
        ),
        (
            {"listen": []},
            "listen: must have an address and a port, since the BMC of demo-worker-0 is by Redfish (got none)",
        ),
        ({"nodes": [], "listen": []}, "nodes: must name what to serve, or listen where (got neither)"),
        (
            {"nodes": [{**NODE, "uuid": "7"}]},
            "nodes[0].uuid: must be a UUID, such as 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11 (got '7')",
        ),
        (
            {"nodes": [{**NODE, "vm_name": "operator"}]},
            "nodes[0].vm_name: must be the name of a VM, and not operator, which is an account for people (got 'operat",
        ),
        (
            {"nodes": [NODE, {**NODE, "uuid": OTHER_UUID}]},
            "nodes[].vm_name: must be unique (got demo-worker-0 2 times)",
        ),
        ({"nodes": [NODE, {**NODE, "vm_name": "other"}]}, f"nodes[].uuid: must be unique (got {UUID} 2 times)"),
        (
            {"nodes": [{**NODE, "bmc": "redfish"}]},
            "nodes[0].bmc: must be a mapping with keys such as protocol, address (got 'redfish')",
        ),
        (
            {"nodes": [{**NODE, "bmc": {"protocol": "telnet"}}]},
            "nodes[0].bmc.protocol: must be one of redfish-virtualmedia, redfish, ipmi (got 'telnet')",
        ),
        (
            {"nodes": [{**IPMI_NODE, "bmc": {"protocol": "ipmi", "port": 6230}}]},
            "nodes[0].bmc.host: missing; must be an IP address",
        ),
        (
            {"nodes": [{**IPMI_NODE, "bmc": {"protocol": "ipmi", "host": "172.22.0.1"}}]},
            "nodes[0].bmc.port: missing; must be a port",
        ),
        (
            {"nodes": [IPMI_NODE], "ipmi_addresses": ["::"]},
            "ipmi_addresses[0]: must be one address of the lab, or the whole world would be served (got '::')",
        ),
        (media(max_bytes=-1), "media.max_bytes: must be a whole number from 1048576 to 17592186044416 (got -1)"),
        (
            media(max_bytes=2**50),
            f"media.max_bytes: must be a whole number from 1048576 to 17592186044416 (got {2**50})",
        ),
        (media(timeout=0), "media.timeout: must be a whole number from 1 to 86400 (got 0)"),
        (
            media(ca_file="/root/ca.pem"),
            "media.ca_file: must be outside /root, which the service does not see: in /var, /srv or /etc (got '/root/",
        ),
        (
            media(networks=["10.0.0.1/8"]),
            "media.networks[0]: must be a network, not an address in it: 10.0.0.0/8 (got '10.0.0.1/8')",
        ),
        ({"user": "root"}, "user: must be a system user without privileges, such as nometal-bmc (got 'root')"),
        ({"user": "a b"}, "user: must be a system user without privileges, such as nometal-bmc (got 'a b')"),
        (
            {"home": "bmc"},
            "home: must be an absolute path of letters, digits, dots, hyphens and underscores (got 'bmc')",
        ),
        (
            {"home": "/srv/../etc"},
            "home: must be an absolute path of letters, digits, dots, hyphens and underscores (got '/srv/../etc')",
        ),
        (
            {"home": "/srv/my labs"},
            "home: must be an absolute path of letters, digits, dots, hyphens and underscores (got '/srv/my labs')",
        ),
        (
            {"home": "/run/bmc"},
            "home: must be outside /run, which the service does not see: in /var, /srv or /etc (got '/run/bmc')",
        ),
        (
            {"software": "bmc"},
            "software: must be an absolute path of letters, digits, dots, hyphens and underscores (got 'bmc')",
        ),
    ],
)
def test_bad_arguments_are_refused(changed: Mapping[str, Any], said: str) -> None:
    assert said in "\n".join(mistakes(**changed))


def test_all_mistakes_are_told_at_once_and_each_once() -> None:
    told = mistakes(lab="Demo", listen=[], names=["not a name"], nodes=[{"bmc": {"protocol": "telnet"}}], user="root")
    assert [text.split(":")[0] for text in told] == [
        "lab",
        "names[0]",
        *("nodes[0].uuid", "nodes[0].vm_name", "nodes[0].bmc.protocol"),
        "user",
    ]


def test_clients_are_told_an_address_also_where_none_is_given() -> None:
    third = UUID.replace("0", "1")
    by_redfish = {"vm_name": "third", "uuid": third}
    made = lab(nodes=[NODE, by_redfish, {**IPMI_NODE, "vm_name": "other", "uuid": OTHER_UUID}])
    assert [made.address_of(node) for node in made.nodes] == [
        "somewhere",
        f"redfish-virtualmedia+https://192.168.126.1:8000/redfish/v1/Systems/{third}",
        "ipmi://172.22.0.1:6230",
    ]


def test_to_remove_a_lab_its_name_is_enough() -> None:
    assert lab(listen=[], nodes=[], state="absent").name == "demo"
    assert lab(user="root", **media(timeout=0), state="absent").name == "demo"
    assert mistakes(home="bmc", user="root", state="absent") == mistakes(home="bmc")


def test_ipmi_nodes_have_a_place_and_a_short_username_and_no_account() -> None:
    made = lab(nodes=[IPMI_NODE], listen=[], tls=False)
    assert made.nodes[0].ipmi == Endpoint("172.22.0.1", 6230)
    assert desired(made).pool is None
    assert made.usernames == {"demo-worker-0": "admin"}
    logins = {"demo-worker-0": Login("admin", "two")}
    written = json.loads(config.text_of(made, logins, Hashes({})))
    assert (written["accounts"], written["listen"], written["tls"]) == ([], [], None)
    assert written["ipmi"][0].items() >= {"username": "admin", "password": "two", "addresses": ["172.22.0.1"]}.items()
    assert config.told(json.dumps(written), logins, Hashes({})) == config.declared(made)


def test_an_ipmi_node_is_served_at_all_addresses_of_the_lab_and_told_by_its_own() -> None:
    made = lab(nodes=[IPMI_NODE], listen=[], ipmi_addresses=["192.168.126.1", "172.22.0.1", "fd00:5::1"])
    [bmc] = json.loads(config.text_of(made, {"demo-worker-0": Login("admin", "two")}, Hashes({})))["ipmi"]
    assert (bmc["addresses"], bmc["port"]) == (["172.22.0.1", "192.168.126.1", "fd00:5::1"], 6230)
    assert made.address_of(made.nodes[0]) == "ipmi://172.22.0.1:6230"
    assert set(config.ports(json.dumps({"listen": PARAMS["listen"], "ipmi": [bmc]}))) == {
        Port("192.168.126.1", 8000, "tcp"),
        *(Port(address, 6230, "udp") for address in bmc["addresses"]),
    }
    assert config.ports("{}") == config.ports("") == config.ports("[]") == []


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
        (
            {"changed": ("operator",), "keeps_passwords": True, "config": None},
            [
                "write credentials (changed by their BMCs: operator)",
                "write configuration",
                "remove changed passwords",
            ],
        ),
        ({"keeps_passwords": True}, ["remove changed passwords"]),
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


def test_what_an_ipmi_lab_does_not_need_goes_when_nothing_uses_it_any_more() -> None:
    wanted = replace(whole(), pool=None, service=replace(whole().service, serving="new"))
    gone = [f"{verb} nometal-demo-media" for verb in ("stop", "delete", "undefine")]
    assert steps(whole(), wanted) == ["restart service", *gone]


def test_a_half_made_one_is_removed_and_its_directory_last() -> None:
    half = Emulator(directories=("/var/lib/nometal/bmc/demo",), service=Service(running=True))
    assert steps(half, None) == ["remove service", "remove directory"]


def test_a_change_of_listen_or_tls_needs_a_restart_and_one_of_nodes_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(supervised, "SYSTEM_BUS", tmp_path)

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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", ["Repair it, or remove it"]),
        ("[]", ["must hold a JSON object of accounts"]),
        ('{"operator": {"password": "one"}}', ["credentials.json: entry operator has no username that is text: right"]),
        (
            '{"operator": {"username": "operator", "password": 5}, "two": "secret"}',
            ["entry operator has no password that is text", "entry two is not a username and a password"],
        ),
        (
            '{"short": {"username": "admin", "password": "more than twenty bytes"}}',
            ["entry short has a password of more than 20 bytes, which IPMI does not take"],
        ),
        (
            r'{"a": {"username": "a", "password": "secret\n"}, "b": {"username": "b\ud800", "password": "secret"}}',
            ["entry a has a password with control characters", "entry b has a username with control characters"],
        ),
    ],
)
def test_a_damaged_file_of_credentials_is_told_by_its_entries(tmp_path: Path, text: str, said: list[str]) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(text)
    with pytest.raises(OperatorError) as refused:
        credentials.read(file, short=["short"])
    assert len(str(refused.value).splitlines()) == len(said)
    for line, expected in zip(str(refused.value).splitlines(), said):
        assert expected in line
        assert "secret" not in line


def keep_changes(tmp_path: Path, text: str) -> Path:
    """Of the service, beside credentials with their hashes."""
    file = tmp_path / "credentials.json"
    file.write_text(credentials.text_of(LOGINS))
    (tmp_path / "hashes.json").write_text(Hashes({}).completed(LOGINS).text())
    changes = credentials.changes_of(file)
    changes.parent.mkdir()
    changes.write_text(text)
    return file


def of_operator(tmp_path: Path, password: object) -> str:
    hashes = Hashes.read(tmp_path / "hashes.json")
    return json.dumps({"operator": {"password": password, "hash": "any", "replaces": hashes.of(LOGINS["operator"])}})


def test_what_clients_have_changed_through_bmcs_counts_until_the_file_is_changed(tmp_path: Path) -> None:
    file = keep_changes(tmp_path, "{}")
    assert credentials.read(file) == LOGINS
    credentials.changes_of(file).write_text(of_operator(tmp_path, "its own choice"))
    assert credentials.read(file) == {**LOGINS, "operator": Login("operator", "its own choice")}
    assert credentials.read_file(file) == LOGINS

    edited = {**LOGINS, "operator": Login("operator", "the administrator's")}
    file.write_text(credentials.text_of(edited))
    assert credentials.read(file) == edited


@pytest.mark.parametrize("password", [None, 5, "", "two\nlines"])
def test_a_changed_password_that_none_can_be_is_left_out(tmp_path: Path, password: object) -> None:
    file = keep_changes(tmp_path, "{}")
    credentials.changes_of(file).write_text(of_operator(tmp_path, password))
    assert credentials.read(file) == LOGINS


@pytest.mark.parametrize("text", ["", "[]", '{"operator": 5}', '{"operator": {}}', '{"operator": {"replaces": null}}'])
def test_a_file_of_changes_that_says_nothing_is_left_out(tmp_path: Path, text: str) -> None:
    assert credentials.read(keep_changes(tmp_path, text)) == LOGINS


def test_the_service_leads_nobody_to_another_file(tmp_path: Path) -> None:
    file = keep_changes(tmp_path, "{}")
    changes = credentials.changes_of(file)
    (tmp_path / "elsewhere").write_text(of_operator(tmp_path, "its own choice"))
    changes.unlink()
    changes.symlink_to(tmp_path / "elsewhere")
    assert credentials.read(file) == LOGINS
    changes.unlink()
    os.mkfifo(changes)
    assert credentials.read(file) == LOGINS


def test_damaged_hashes_are_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "hashes.json"
    for text in ("{", "[]", '{"some": 5}'):
        file.write_text(text)
        assert Hashes.read(file).text() == "{}\n"


def test_a_ca_whose_certificate_was_lost_is_the_same_for_who_trusts_it(tmp_path: Path) -> None:
    before = certificates.make_ca("demo")
    server = certificates.make_server("demo", ["192.168.126.1"], before)
    after = certificates.make_ca("demo", before.key)
    assert after.key == before.key
    assert certificates.read(server, after.key) == Certificate(("192.168.126.1",))
    for name, text in {"before.pem": before.certificate, "server.pem": server.certificate}.items():
        (tmp_path / name).write_bytes(text)
    renewed = certificates.make_server("demo", ["192.168.126.2"], after)
    (tmp_path / "renewed.pem").write_bytes(renewed.certificate)
    for name in ("server.pem", "renewed.pem"):
        command = ["openssl", "verify", "-CAfile", str(tmp_path / "before.pem"), str(tmp_path / name)]
        assert subprocess.run(command, check=False).returncode == 0


def test_keys_and_certificates_of_others_are_replaced_and_no_traceback() -> None:
    ca = certificates.make_ca("demo")
    rsa_key = rsa.generate_private_key(65537, 2048)
    for key in (
        rsa_key.private_bytes(PEM, PKCS8, BestAvailableEncryption(b"x")),
        rsa_key.private_bytes(PEM, PKCS8, OPEN),
    ):
        assert not certificates.is_good_ca(replace(ca, key=key))
        assert certificates.read(ca, key) == Certificate((), good=False)
        assert certificates.is_good_ca(certificates.make_ca("demo", key))
    assert certificates.read(ca, ca.key) == Certificate((), good=True)


def test_a_certificate_is_renewed_long_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    ca, names = certificates.make_ca("demo"), ("192.168.126.1", "fd00:5::1", "bmc.example.test")
    server = certificates.make_server("demo", names, ca)
    assert certificates.is_good_ca(ca)
    assert certificates.read(server, ca.key) == Certificate(names)
    assert certificates.read(server, certificates.make_ca("demo").key) == Certificate(names, good=False)
    assert certificates.read(replace(server, key=ca.key), ca.key) is None
    assert certificates.read(replace(server, certificate=b"torn"), ca.key) is None

    now = certificates._now()  # noqa: SLF001 - the clock is turned on
    monkeypatch.setattr(certificates, "_now", lambda: now + certificates.SPAN - certificates.RENEWAL)
    assert certificates.read(server, ca.key) is None
    assert certificates.is_good_ca(ca)
    monkeypatch.setattr(certificates, "_now", lambda: now + certificates.CA_SPAN - datetime.timedelta(days=1))
    assert not certificates.is_good_ca(ca)


def test_the_unit_never_gives_up_and_is_back_at_once() -> None:
    broker, service = (unit.text.splitlines() for unit in units(lab()))
    for lines in (broker, service):
        assert {"Restart=always", "RestartSec=200ms", "StartLimitIntervalSec=0"} <= set(lines)
    program, home = "ExecStart=/opt/nometal/bmc/bin/python -m", "/var/lib/nometal/bmc/demo"
    assert {f"{program} nometal_bmc {home}/config.json", "User=nometal-bmc"} <= set(service)
    assert {f"{program} nometal_bmc.broker {home}/broker/broker.json", "User=nometal-bmc-broker"} <= set(broker)


def test_the_broker_ends_before_the_vms_of_a_host_that_shuts_down_and_knows_which_start_it_is() -> None:
    broker, service = (unit.text.splitlines() for unit in units(lab()))
    assert {"After=libvirt-guests.service", "Environment=HOST_BOOT_ID=%b"} <= set(broker)
    assert f"After=network.target {lab().broker_unit}.service" in service


@pytest.mark.parametrize("policy", PowerRestore)
def test_the_broker_is_told_the_power_restore_policy(tmp_path: Path, policy: PowerRestore) -> None:
    file = tmp_path / "broker.json"
    file.write_text(config.broker_text(lab(power_restore=policy)))
    assert reading.load_broker(file).power_restore == policy


def test_only_the_broker_has_libvirt_and_only_the_service_a_network() -> None:
    broker, service = (unit.text for unit in units(lab()))
    assert "SupplementaryGroups=libvirt" in broker
    assert "PrivateNetwork=yes" in broker
    assert "RestrictAddressFamilies=AF_UNIX\n" in broker
    assert "libvirt" not in service.replace("InaccessiblePaths=-/run/libvirt", "")
