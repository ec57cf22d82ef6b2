# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords that accounts have changed through the service, until the lab's own files have them.

They are kept in clear beside their hashes, for the lab's credentials are to have them. A change counts while the
configuration says what it said when the change was made: whoever writes another password there has the last word.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nometal_bmc.config import passwords
from nometal_bmc.files import OWNER_ONLY, write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from nometal_bmc.config.settings import Account, Config

__all__ = ["FILE", "applied", "write"]

FILE = "passwords.json"


def applied(config: Config) -> Config:
    changes = _load(config.state / FILE)
    return replace(config, accounts=tuple(_changed(account, changes.get(account.name)) for account in config.accounts))


def write(config: Config, account: Account, password: str) -> None:
    """Keep a change of an account of this configuration, and those of before that still count."""
    file = config.state / FILE
    declared = {known.name: str(known.password) for known in config.accounts}
    counting = {
        name: change
        for name, change in _load(file).items()
        if isinstance(change, dict) and change.get("replaces") == declared.get(name)
    }
    change = {"password": password, "hash": str(passwords.hashed(password)), "replaces": declared[account.name]}
    write_whole(file, json.dumps({**counting, account.name: change}, indent=2).encode(), OWNER_ONLY)


def _changed(account: Account, change: Any) -> Account:
    try:
        if change["replaces"] == str(account.password):
            return replace(account, password=passwords.parse(change["hash"]))
    except (KeyError, TypeError, ValueError):  # there is none, or it was edited
        pass
    return account


def _load(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # as above
        return {}
    return found if isinstance(found, dict) else {}
