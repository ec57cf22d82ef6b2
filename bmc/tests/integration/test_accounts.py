"""AccountService: who has an account and which role, and passwords that are changed through it."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from support import redfish_service
from support.redfish_service import ROOT, Node, Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd
    from support.redfish_service import Client

OWN, OTHER = Node("accounts-own"), Node("accounts-other")
ACCOUNTS = "AccountService/Accounts"
SESSIONS = "SessionService/Sessions"
NEW = "a password of its own"


@pytest.fixture
def service(libvirtd: PrivateLibvirtd, tmp_path: Path) -> Iterator[Service]:
    redfish_service.define(libvirtd, [OWN, OTHER])
    with Service(libvirtd, tmp_path, [OWN, OTHER]) as running:
        yield running


def change(client: Client, name: str, password: object = NEW) -> int:
    return client.ask("PATCH", f"{ACCOUNTS}/{name}", {"Password": password}).status


def test_accounts_have_predefined_roles(service: Service) -> None:
    operator, owner = service.client(service.operator), service.client(OWN.login)
    assert operator.get("").json["AccountService"] == {"@odata.id": f"{ROOT}AccountService"}
    assert operator.get("AccountService").json["Roles"] == {"@odata.id": f"{ROOT}AccountService/Roles"}
    roles = [operator.get(path).json for path in operator.get("AccountService/Roles").members]
    assert [role["RoleId"] for role in roles] == ["Administrator", "Operator", "ReadOnly"]
    assert {role["IsPredefined"] for role in roles} == {True}
    everybody = [operator.get(path).json for path in operator.get(ACCOUNTS).members]
    assert {account["UserName"]: account["RoleId"] for account in everybody} == {
        "operator": "Administrator",
        OWN.name: "Operator",
        OTHER.name: "Operator",
    }
    assert {account["Password"] for account in everybody} == {None}
    assert owner.get(ACCOUNTS).members == [f"{ROOT}{ACCOUNTS}/{OWN.name}"]
    assert owner.get(f"{ACCOUNTS}/{OTHER.name}").status == owner.get(f"{ACCOUNTS}/nobody").status == 404


def test_a_changed_password_counts_at_once_and_after_a_restart(service: Service) -> None:
    owner, changed = service.client(OWN.login), service.client((OWN.name, NEW))
    token = owner.post(SESSIONS, {"UserName": OWN.name, "Password": OWN.login[1]}).headers["X-Auth-Token"]
    assert change(owner, OWN.name) == 204
    assert [owner.get("Systems").status, changed.get("Systems").status] == [401, 200]
    assert service.client(None).get("Systems", X_Auth_Token=token).status == 401
    assert service.client(OTHER.login).get("Systems").status == 200
    file = service.directory / "passwords.json"
    assert file.stat().st_mode & 0o777 == 0o600

    service.stop()
    service.start().wait_ready()
    assert [owner.get("Systems").status, changed.get("Systems").status] == [401, 200]
    assert change(changed, OWN.name, "and another one") == 204
    assert service.client((OWN.name, "and another one")).get("Systems").status == 200
    assert NEW not in service.log.read_text()
    log = service.get("Chassis/Enclosure/LogServices/EventLog/Entries").json["Members"]
    told = [entry["Message"] for entry in log if entry["MessageArgs"][0] == "settings"]
    assert told == [f"Password of {OWN.name} changed by {OWN.name} from 127.0.0.1"] * 2


def test_a_password_is_changed_only_if_the_account_is_as_the_client_knows_it(service: Service) -> None:
    operator, path = service.client(service.operator), f"{ACCOUNTS}/{OWN.name}"
    tag = operator.get(path).headers["ETag"]
    assert operator.ask("PATCH", path, {"Password": NEW}, If_Match=tag).status == 204
    assert operator.get(path).headers["ETag"] != tag
    assert operator.ask("PATCH", path, {"Password": "another one"}, If_Match=tag).status == 412
    assert service.client((OWN.name, NEW)).get("Systems").status == 200


def test_who_writes_another_password_into_the_configuration_has_the_last_word(service: Service) -> None:
    assert change(service.client(OWN.login), OWN.name) == 204
    service.signal(signal.SIGHUP)  # nothing else has changed
    assert service.client((OWN.name, NEW)).get("Systems").status == 200
    accounts = service.config["accounts"]
    [entry] = [account for account in accounts if account["name"] == OWN.name]
    accounts[accounts.index(entry)] = redfish_service.account(OWN.name, "from the file", [OWN.uuid])
    service.stop()
    service.start().wait_ready()
    assert service.client((OWN.name, NEW)).get("Systems").status == 401
    assert service.client((OWN.name, "from the file")).get("Systems").status == 200


def test_only_administrators_change_passwords_of_others(service: Service) -> None:
    assert change(service.client(OWN.login), OTHER.name) == 404
    assert change(service.client(OWN.login), "operator") == 404
    assert service.client(OTHER.login).get("Systems").status == 200
    assert change(service.client(service.operator), OTHER.name) == 204
    assert service.client((OTHER.name, NEW)).get("Systems").status == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"Password": "short"}, "PropertyValueFormatError"),
        ({"Password": "x" * 129}, "PropertyValueFormatError"),
        ({"Password": "two\nlines of it"}, "PropertyValueFormatError"),
        ({"Password": None}, "PropertyValueTypeError"),
        ({"Password": NEW, "RoleId": "Administrator"}, "PropertyNotWritable"),
        ({"Password": NEW, "Speed": 1}, "PropertyUnknown"),
        ({}, "PropertyMissing"),
    ],
)
def test_what_is_no_password_is_refused_and_changes_nothing(service: Service, body: Any, message: str) -> None:
    answer = service.client(OWN.login).ask("PATCH", f"{ACCOUNTS}/{OWN.name}", body)
    [told] = answer.json["error"]["@Message.ExtendedInfo"]
    assert (answer.status, told["MessageId"].split(".")[-1]) == (400, message)
    assert service.client(OWN.login).get("Systems").status == 200
    assert not (service.directory / "passwords.json").exists()


def test_accounts_are_made_and_removed_by_the_lab_only(service: Service) -> None:
    operator = service.client(service.operator)
    assert operator.post(ACCOUNTS, {"UserName": "new", "Password": NEW, "RoleId": "Operator"}).status == 405
    assert operator.ask("DELETE", f"{ACCOUNTS}/{OWN.name}").status == 405
    assert operator.ask("PATCH", "AccountService/Roles/ReadOnly", {"AssignedPrivileges": []}).status == 405
