# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AccountService: the accounts of the configuration with their roles, of which only passwords can be changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import flask

from nometal_bmc.answers import Refused, not_found
from nometal_bmc.events.log import SETTINGS
from nometal_bmc.redfish.list_views import ROOT, collection
from nometal_bmc.redfish.wishes import Kinds, becomes_event, checked

if TYPE_CHECKING:
    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Account

__all__ = ["add_routes"]

SERVICE_PATH = f"{ROOT}/AccountService"
ACCOUNTS_PATH, ROLES_PATH = f"{SERVICE_PATH}/Accounts", f"{SERVICE_PATH}/Roles"
SHORTEST, LONGEST = 8, 128
ADMINISTRATOR, OPERATOR, READ_ONLY = "Administrator", "Operator", "ReadOnly"
ROLES = {
    ADMINISTRATOR: ("Login", "ConfigureManager", "ConfigureUsers", "ConfigureComponents", "ConfigureSelf"),
    OPERATOR: ("Login", "ConfigureComponents", "ConfigureSelf"),
    READ_ONLY: ("Login", "ConfigureSelf"),
}
"""As the standard has them. Accounts of VMs are operators, which no account can be made of another kind."""
CHANGES: Kinds = {"Password": (str,)}
FIXED = ("Id", "Name", "UserName", "RoleId", "Enabled", "Locked", "AccountTypes", "Links")


def add_routes(app: flask.Flask) -> None:
    """Whoever comes here is known already."""
    add = app.add_url_rule
    add(SERVICE_PATH, "account_service", _service, methods=["GET"])
    add(ACCOUNTS_PATH, "accounts", _accounts, methods=["GET"])
    add(f"{ACCOUNTS_PATH}/<name>", "account", _account, methods=["GET"])
    add(f"{ACCOUNTS_PATH}/<name>", "account_change", _change, methods=["PATCH"])
    add(ROLES_PATH, "roles", _roles, methods=["GET"])
    add(f"{ROLES_PATH}/<name>", "role", _role, methods=["GET"])


def _service() -> dict[str, Any]:
    return {
        "@odata.type": "#AccountService.v1_3_0.AccountService",
        "@odata.id": SERVICE_PATH,
        "Id": "AccountService",
        "Name": "Account Service",
        "Status": {"State": "Enabled", "Health": "OK"},
        "ServiceEnabled": True,
        "MinPasswordLength": SHORTEST,
        "MaxPasswordLength": LONGEST,
        "Accounts": {"@odata.id": ACCOUNTS_PATH},
        "Roles": {"@odata.id": ROLES_PATH},
    }


def _accounts() -> dict[str, Any]:
    own = flask.g.account
    names = [quote(account.name, safe="") for account in _current().config.accounts if _sees(own, account)]
    return collection("ManagerAccount", ACCOUNTS_PATH, "Accounts", names)


def _account(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    account = _found(name)
    return _shown(account), {"ETag": f'"{_tag(account)}"'}


def _shown(account: Account) -> dict[str, Any]:
    role = ADMINISTRATOR if account.systems is None else OPERATOR
    return {
        "@odata.type": "#ManagerAccount.v1_1_1.ManagerAccount",
        "@odata.id": f"{ACCOUNTS_PATH}/{quote(account.name, safe='')}",
        "Id": account.name,
        "Name": "User Account",
        "UserName": account.name,
        "Password": None,
        "RoleId": role,
        "Enabled": True,
        "Locked": False,
        "Links": {"Role": {"@odata.id": f"{ROLES_PATH}/{role}"}},
    }


def _change(name: str) -> tuple[str, int]:
    account = _found(name)
    if flask.request.if_match and not flask.request.if_match.contains(_tag(account)):
        raise Refused(412, "PreconditionFailed", f"Account {name} is not as If-Match says.")
    password = checked(flask.request.json, CHANGES, read_only=FIXED)["Password"]
    if not SHORTEST <= len(password) <= LONGEST or not password.isprintable():
        text = f"Password must have {SHORTEST} to {LONGEST} characters that can be printed."
        raise Refused(400, "PropertyValueFormatError", text, prop="Password")
    becomes_event(SETTINGS, f"Password of {account.name} changed")
    _current().change_password(account.name, password)
    return "", 204


def _tag(account: Account) -> str:
    """Another one after each change."""
    return hashlib.sha256(repr((_shown(account), account.password)).encode()).hexdigest()[:16]


def _roles() -> dict[str, Any]:
    return collection("Role", ROLES_PATH, "Roles", list(ROLES))


def _role(name: str) -> dict[str, Any]:
    if name not in ROLES:
        raise not_found(f"{ROLES_PATH}/{name}")
    return {
        "@odata.type": "#Role.v1_2_0.Role",
        "@odata.id": f"{ROLES_PATH}/{name}",
        "Id": name,
        "Name": "User Role",
        "RoleId": name,
        "IsPredefined": True,
        "AssignedPrivileges": ROLES[name],
    }


def _found(name: str) -> Account:
    account = _current().config.account(name)
    if account is None or not _sees(flask.g.account, account):
        raise not_found(f"{ACCOUNTS_PATH}/{name}")
    return account


def _sees(own: Account, other: Account) -> bool:
    return own.systems is None or own.name == other.name


def _current() -> CurrentConfig:
    current: CurrentConfig = flask.current_app.extensions["nometal_bmc"].current
    return current
