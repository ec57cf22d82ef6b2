# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import stat
import string
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_IPMI_PASSWORD
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import OF_BMC_ACCOUNTS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

FILE, HASHES = OF_BMC_ACCOUNTS
# The service's, for what clients have changed through their BMCs.
CHANGES = ("state", "passwords.json")
LARGEST_CHANGES = 1024 * 1024
ALPHABET = string.ascii_letters + string.digits
LENGTH = 16  # 95 bits, and what every IPMI client takes
# 4 MiB and about 12 ms: what we generate needs no stretching, and a lab of 100 nodes has 101 of them.
N, R, P = 2**12, 8, 1
SALT_BYTES, HASH_BYTES = 16, 32
MEMORY = 2 * 128 * N * R


@dataclass(frozen=True)
class Login:
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.username})"


def file_of(home: str | Path, lab: str) -> Path:
    """Where the lab's accounts are: those of its BMCs by their VMs' names, and the operator's."""
    return Path(home) / lab / FILE


def ca_of(home: str | Path, lab: str) -> Path:
    """The certificate by which clients verify the lab's BMCs; there if they speak TLS."""
    return Path(home) / lab / "tls/ca.pem"


def hashes_of(home: str | Path, lab: str) -> Path:
    return Path(home) / lab / HASHES


def read(path: Path, short: Collection[str] = ()) -> dict[str, Login]:
    """The accounts with their passwords of now, whoever has changed them. Short: whose passwords IPMI has to take."""
    logins = read_file(path, short)
    return {**logins, **changed(path, logins)}


def changes_of(path: Path) -> Path:
    """What the service of these credentials keeps of passwords that were changed through it."""
    return path.parent.joinpath(*CHANGES)


def changed(path: Path, logins: Mapping[str, Login]) -> dict[str, Login]:
    """Those that clients have changed through their BMCs, unless the file was changed since."""
    found: dict[str, Login] = {}
    changes = _changes(changes_of(path))
    hashes = Hashes.read(path.with_name(HASHES)) if changes else Hashes({})
    for name, login in logins.items():
        change = changes.get(name)
        if isinstance(change, dict) and change.get("replaces") == hashes.of(login) and change.get("replaces"):
            entry = {**change, "username": login.username}
            if not _fault(entry, is_for_ipmi=False):
                found[name] = Login(login.username, entry["password"])
    return found


def read_file(path: Path, short: Collection[str] = ()) -> dict[str, Login]:
    """The file that people read too: what they have changed in it counts."""
    entries = _load(path)
    faults = {name: _fault(entry, name in short) for name, entry in entries.items()}
    if any(faults.values()):
        raise OperatorError("\n".join(f"{path}: entry {name} {fault}" for name, fault in faults.items() if fault))
    return {name: Login(entry["username"], entry["password"]) for name, entry in entries.items()}


def text_of(logins: Mapping[str, Login]) -> str:
    return _text({name: {"username": login.username, "password": login.password} for name, login in logins.items()})


def completed(logins: Mapping[str, Login], wanted: Mapping[str, str]) -> dict[str, Login]:
    """Those of the wanted usernames: a password that is there stays."""
    return {
        name: replace(logins[name], username=username) if name in logins else Login(username, new_password())
        for name, username in wanted.items()
    }


def differences(current: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Whose credentials are made, changed and removed."""
    kinds = {
        "new": [name for name in wanted if name not in current],
        "other username": [name for name in wanted if current.get(name, wanted[name]) != wanted[name]],
        "removed": [name for name in current if name not in wanted],
    }
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names and current)


def new_password() -> str:
    return "".join(secrets.choice(ALPHABET) for _letter in range(LENGTH))


class Hashes:
    """The passwords' scrypt hashes. One is dear, so it is kept under a cheap digest, in a file that only root reads."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = dict(known)

    @classmethod
    def read(cls, path: Path) -> Hashes:
        """A damaged file costs no more than the time to make it anew."""
        with suppress(OperatorError):
            return cls({digest: made for digest, made in _load(path).items() if isinstance(made, str)})
        return cls({})

    def of(self, login: Login) -> str | None:
        return self._known.get(_digest(login))

    def completed(self, logins: Mapping[str, Login]) -> Hashes:
        """With those of all logins, and no others."""
        missing = [login for login in logins.values() if self.of(login) is None]
        with ThreadPoolExecutor(4) as pool:  # scrypt leaves the interpreter to others meanwhile
            new = dict(zip(map(_digest, missing), pool.map(_scrypt, missing)))
        known = {**self._known, **new}
        return Hashes({digest: known[digest] for digest in map(_digest, logins.values())})

    def text(self) -> str:
        return _text(self._known)


def _fault(entry: object, is_for_ipmi: bool) -> str:
    hint = "right it, or remove the whole entry for a new one."
    if not isinstance(entry, dict):
        return f"is not a username and a password: {hint}"
    for key in ("username", "password"):
        if not entry.get(key) or not isinstance(entry[key], str):
            return f"has no {key} that is text: {hint}"
        if not entry[key].isprintable():
            return f"has a {key} with control characters or line breaks: {hint}"
    if is_for_ipmi and len(entry["password"].encode()) > LONGEST_IPMI_PASSWORD:
        return f"has a password of more than {LONGEST_IPMI_PASSWORD} bytes, which IPMI does not take: {hint}"
    return ""


def _digest(login: Login) -> str:
    return hashlib.sha256(f"{login.username}:{login.password}".encode()).hexdigest()


def _scrypt(login: Login) -> str:
    salt = secrets.token_bytes(SALT_BYTES)
    made = hashlib.scrypt(login.password.encode(), salt=salt, n=N, r=R, p=P, maxmem=MEMORY, dklen=HASH_BYTES)
    return f"scrypt:{N}:{R}:{P}:{base64.b64encode(salt).decode()}:{base64.b64encode(made).decode()}"


def _load(path: Path) -> dict[str, Any]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise OperatorError(f"{path} cannot be read: {error}. Repair it, or remove it for new passwords.") from error
    if not isinstance(entries, dict):
        raise OperatorError(f"{path} must hold a JSON object of accounts. Repair it, or remove it for new passwords.")
    return entries


def _changes(path: Path) -> dict[str, Any]:
    """The service writes there, so nothing in it is trusted, nor what it may lead to."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_CHANGES:
                return {}
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: Mapping) -> str:
    return json.dumps(value, indent=2) + "\n"
