# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who a client is, by name and password."""

from __future__ import annotations

import hmac
import logging
import math
import secrets
import threading
from typing import TYPE_CHECKING

from nometal_bmc.answers import Refused
from nometal_bmc.config import passwords
from nometal_bmc.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable

    from nometal_bmc.config.passwords import HashedPassword
    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Account

__all__ = ["Credentials", "unauthorized"]

LOG = logging.getLogger(__name__)
HASHES_AT_ONCE = 2
CHALLENGE = {"WWW-Authenticate": 'Basic realm="BMC"'}


def unauthorized() -> Refused:
    return Refused(401, "NoValidSession", "A valid user name and password, or session, is needed.", headers=CHALLENGE)


class Credentials:
    """Pays for the expensive hash once for each account, and never for those who have been wrong too often."""

    def __init__(
        self,
        current: CurrentConfig,
        throttle: Throttle | None = None,
        *,
        refused: Callable[[Account | None, str], None] = lambda _account, _source: None,
    ) -> None:
        """`refused` is called for each wrong login: the account, if there is such, and the source address."""
        self._current = current
        self._refused = refused
        self._throttle = throttle or Throttle()
        self._key = secrets.token_bytes(32)
        self._verified: dict[str, bytes] = {}  # an account has one right password, so this is as long as their list
        self._running = threading.Semaphore(HASHES_AT_ONCE)

    def remembers(self, name: str, password: str) -> bool:
        """Whether to verify them costs nothing."""
        account, known = self._current.config.account(name), self._verified.get(name)
        return account is not None and known is not None and hmac.compare_digest(known, self._sign(account, password))

    def verify(self, source: str, name: str, password: str) -> Account:
        account = self._current.config.account(name)
        if account and self.remembers(name, password):
            return account
        who = account.password.salt.hex() + name if account else name  # with a new password the count begins anew
        self._refuse_when_too_often(source, who)
        with self._running:
            if account and self.remembers(name, password):  # somebody with the same was faster
                return account
            self._refuse_when_too_often(source, who)
            return self._try(source, who, account, password)

    def _try(self, source: str, who: str, account: Account | None, password: str) -> Account:
        self._throttle.failed(source, who)  # before the outcome is known: tries beside this one count it already
        right = self._hash_of(account).matches(password)
        if not account or not right:
            LOG.warning("Refused a login from %s for %s", source, account.name if account else "an unknown account")
            self._refused(account, source)
            raise unauthorized()
        self._throttle.succeeded(source, who)
        self._remember(account, password)
        return account

    def _hash_of(self, account: Account | None) -> HashedPassword:
        """For an unknown account one that costs the same, so that the time does not show which accounts exist."""
        if account:
            return account.password
        accounts = self._current.config.accounts
        return (accounts[0].password if accounts else passwords.hashed("")).unusable()

    def _refuse_when_too_often(self, source: str, who: str) -> None:
        pause = self._throttle.pause(source, who)
        if pause:
            seconds = str(math.ceil(pause))
            text = f"There were too many failed logins; try again in {seconds} s."
            raise Refused(429, "GeneralError", text, headers={"Retry-After": seconds})

    def _remember(self, account: Account, password: str) -> None:
        config = self._current.config
        kept = {name: known for name, known in self._verified.items() if config.account(name)}
        self._verified = {**kept, account.name: self._sign(account, password)}

    def _sign(self, account: Account, password: str) -> bytes:
        """With the stored hash in it: when the account's password changes, nothing matches any more."""
        words = (account.name, str(account.password), password)
        return hmac.digest(self._key, passwords.encoded("\0".join(words)), "sha256")
