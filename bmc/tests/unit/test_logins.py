"""Passwords, what it costs to be wrong about them, and sessions; the time is given."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nometal_bmc import throttle
from nometal_bmc.answers import Refused
from nometal_bmc.config import passwords
from nometal_bmc.config.settings import Account, Config, Media
from nometal_bmc.front import sessions
from nometal_bmc.front.credentials import Credentials
from nometal_bmc.throttle import Throttle

CHEAP = passwords.HashedPassword(16, 1, 1, b"salt", bytes(32))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Now:
    """A configuration that tests replace."""

    def __init__(self, *accounts: Account) -> None:
        media = Media(Path("/"), 0, 0, None)
        self.config = Config("ha", Path("/broker.sock"), (), None, (), accounts, media, Path("/"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords for which the hash has been paid."""
    paid: list[str] = []
    matches = passwords.HashedPassword.matches

    def count(self: passwords.HashedPassword, password: str) -> bool:
        paid.append(password)
        return matches(self, password)

    monkeypatch.setattr(passwords.HashedPassword, "matches", count)
    return paid


def somebody(name: str = "one", password: str = "right") -> Account:  # noqa: S107 - invented
    return Account(name, CHEAP.of(password), None)


def refusal(credentials: Credentials, name: str, password: str, source: str = "192.0.2.1") -> int:
    with pytest.raises(Refused) as refused:
        credentials.verify(source, name, password)
    return refused.value.status


LETTERS = st.characters(exclude_characters="\0")  # scrypt takes no notice of those at the end


@given(st.text(LETTERS), st.text(LETTERS))
@example("\ud800", "\udfff")
def test_a_password_matches_itself_only(one: str, other: str) -> None:
    assert CHEAP.of(one).matches(other) == (one == other)


def test_hashes_are_as_the_contract_says() -> None:
    new = passwords.hashed("secret")
    assert passwords.parse(str(new)) == new
    kind, n, r, p, *_rest = str(new).split(":")
    assert kind == "scrypt"
    assert new.digest == hashlib.scrypt(b"secret", salt=new.salt, n=int(n), r=int(r), p=int(p), dklen=32)
    assert passwords.hashed("secret") != new


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "bcrypt:16:1:1:c2FsdA==:" + "A" * 44,
        "scrypt:16:1:1:c2FsdA==:AAAA",
        "scrypt:15:1:1:c2FsdA==:" + "A" * 44,
        "scrypt:0:1:1:c2FsdA==:" + "A" * 44,
        "scrypt:1048576:16:1:c2FsdA==:" + "A" * 44,
        "scrypt:16:1:9:c2FsdA==:" + "A" * 44,
        "scrypt:16:1:1:===:" + "A" * 44,
    ],
)
def test_other_texts_and_costs_are_refused(text: str) -> None:
    with pytest.raises(passwords.NotAHash):
        passwords.parse(text)


def test_the_hash_is_paid_once(hashes: list[str]) -> None:
    credentials = Credentials(Now(somebody()))  # type: ignore[arg-type]
    for _request in range(5):
        assert credentials.verify("192.0.2.1", "one", "right").name == "one"
    assert hashes == ["right"]


def test_an_unknown_account_costs_the_same(hashes: list[str]) -> None:
    credentials = Credentials(Now(somebody()))  # type: ignore[arg-type]
    assert refusal(credentials, "nobody", "any") == refusal(credentials, "one", "wrong") == 401
    assert hashes == ["any", "wrong"]


def test_a_changed_or_removed_account_is_forgotten(hashes: list[str]) -> None:
    now = Now(somebody())
    credentials = Credentials(now)  # type: ignore[arg-type]
    credentials.verify("192.0.2.1", "one", "right")
    now.config = Now(somebody("one", "new")).config
    assert refusal(credentials, "one", "right") == 401
    credentials.verify("192.0.2.1", "one", "new")
    now.config = Now(somebody("two")).config
    assert refusal(credentials, "one", "new") == 401
    assert hashes == ["right", "right", "new", "new"]


def test_who_guesses_is_refused_without_a_hash_and_hinders_nobody_else(hashes: list[str], clock: Clock) -> None:
    credentials = Credentials(Now(somebody()), Throttle(clock))  # type: ignore[arg-type]
    tries = [refusal(credentials, "one", f"guess {number}") for number in range(50)]
    assert tries == [401] * throttle.FREE_FAILURES + [429] * (50 - throttle.FREE_FAILURES)
    assert len(hashes) == throttle.FREE_FAILURES
    assert refusal(credentials, "one", "right") == 429  # it cannot tell whether this was the one
    assert credentials.verify("192.0.2.2", "one", "right")
    assert credentials.verify("192.0.2.1", "one", "right")  # is remembered, and so passes from everywhere


def test_with_a_new_password_the_count_begins_anew(clock: Clock) -> None:
    now = Now(somebody())
    credentials = Credentials(now, Throttle(clock))  # type: ignore[arg-type]
    assert [refusal(credentials, "one", "new") for _try in range(20)][-1] == 429
    now.config = Now(Account("one", passwords.HashedPassword(16, 1, 1, b"other", bytes(32)).of("new"), None)).config
    assert credentials.verify("192.0.2.1", "one", "new")


def test_a_login_ends_the_count(clock: Clock) -> None:
    credentials = Credentials(Now(somebody()), Throttle(clock))  # type: ignore[arg-type]
    for number in range(100):
        if number % throttle.FREE_FAILURES:
            assert refusal(credentials, "one", "wrong") == 401
        else:
            clock.now += 60
            credentials = Credentials(Now(somebody()), credentials._throttle)  # type: ignore[arg-type]  # noqa: SLF001 - with empty memory
            credentials.verify("192.0.2.1", "one", "right")


def test_pauses_grow_to_their_longest_and_end(clock: Clock) -> None:
    guessing, pauses = Throttle(clock), []
    for _try in range(throttle.FREE_FAILURES + 8):
        clock.now += guessing.pause("192.0.2.1", "one")
        assert guessing.pause("192.0.2.1", "one") == 0
        guessing.failed("192.0.2.1", "one")
        pauses.append(guessing.pause("192.0.2.1", "one"))
    assert pauses == [0.0] * (throttle.FREE_FAILURES - 1) + [1, 2, 4, 8, 16, 32, 60, 60, 60]
    clock.now += throttle.FORGOTTEN_AFTER
    guessing.failed("192.0.2.1", "one")
    assert guessing.pause("192.0.2.1", "one") == 0


def test_inventing_names_helps_only_for_a_while(clock: Clock) -> None:
    guessing, hashed = Throttle(clock), 0
    for number in range(1000):
        if guessing.pause("192.0.2.1", f"name {number}") == 0:
            guessing.failed("192.0.2.1", f"name {number}")
            hashed += 1
        clock.now += 0.01
    assert hashed == throttle.BURST + 9  # and one for each of the ten seconds
    assert guessing.pause("192.0.2.2", "name 1") == 0


def test_of_ipv6_the_network_counts(clock: Clock) -> None:
    guessing = Throttle(clock)
    for number in range(throttle.FREE_FAILURES):
        guessing.failed(f"fd00:1::{number:x}", "one")
    assert guessing.pause("fd00:1::ffff:1", "one") > 0
    assert guessing.pause("fd00:2::1", "one") == 0


def test_the_throttle_has_an_end_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MOST_ENTRIES", 10)
    guessing = Throttle()
    for number in range(50):
        guessing.failed(f"192.0.2.{number}", "name" * 10_000)
    for table in (guessing._failures, guessing._sources):  # noqa: SLF001 - memory cannot be seen from outside
        assert len(table._entries) == 10  # noqa: SLF001 - likewise
    assert len(repr(guessing._failures._entries)) < 10_000  # noqa: SLF001 - likewise


def test_a_session_lasts_until_it_is_unused_for_too_long(clock: Clock) -> None:
    one = somebody()
    open_sessions = sessions.Sessions(Now(one), clock)  # type: ignore[arg-type]
    _session, token = open_sessions.create(one)
    for _use in range(3):
        clock.now += sessions.TIMEOUT_SECONDS - 1
        assert open_sessions.account(token) == one
    clock.now += sessions.TIMEOUT_SECONDS
    assert open_sessions.account(token) is None
    assert open_sessions.of(one) == []


@pytest.mark.parametrize("after", [(), (somebody("one", "new"),), (somebody("two"),)])
def test_a_session_ends_with_its_account_or_password(clock: Clock, after: tuple[Account, ...]) -> None:
    one, now = somebody(), Now(somebody())
    open_sessions = sessions.Sessions(now, clock)  # type: ignore[arg-type]
    _session, token = open_sessions.create(one)
    now.config = Now(*after).config
    assert open_sessions.account(token) is None


def test_a_session_follows_its_accounts_systems(clock: Clock) -> None:
    one, now = somebody(), Now(somebody())
    open_sessions = sessions.Sessions(now, clock)  # type: ignore[arg-type]
    _session, token = open_sessions.create(one)
    narrowed = Account("one", one.password, frozenset())
    now.config = Now(narrowed).config
    assert open_sessions.account(token) == narrowed


def test_an_account_has_so_many_sessions_and_loses_the_stalest(clock: Clock) -> None:
    one, two = (replace(somebody(name), systems=frozenset()) for name in ("one", "two"))
    open_sessions = sessions.Sessions(Now(one, two), clock)  # type: ignore[arg-type]
    _session, others = open_sessions.create(two)
    tokens = []
    for _login in range(sessions.MOST_OF_AN_ACCOUNT):
        clock.now += 1
        tokens.append(open_sessions.create(one)[1])
    clock.now += 1
    assert open_sessions.account(tokens[0]) == one
    open_sessions.create(one)
    assert open_sessions.account(tokens[1]) is None
    assert open_sessions.account(tokens[0]) == one
    assert open_sessions.account(others) == two
    assert len(open_sessions.of(one)) == sessions.MOST_OF_AN_ACCOUNT


def test_only_the_owner_and_the_operator_see_and_end_a_session(clock: Clock) -> None:
    one, two = (replace(somebody(name), systems=frozenset()) for name in ("one", "two"))
    operator = somebody("operator")
    open_sessions = sessions.Sessions(Now(one, two, operator), clock)  # type: ignore[arg-type]
    session, token = open_sessions.create(one)
    open_sessions.create(operator)
    assert open_sessions.of(one) == [session]
    assert session in open_sessions.of(operator)
    with pytest.raises(Refused) as refused:
        open_sessions.end(two, session.id)
    assert refused.value.status == 404
    open_sessions.end(one, session.id)
    assert open_sessions.account(token) is None


def test_tokens_are_kept_as_hashes_only(clock: Clock) -> None:
    open_sessions = sessions.Sessions(Now(somebody()), clock)  # type: ignore[arg-type]
    session, token = open_sessions.create(somebody())
    assert token not in repr(open_sessions._by_token)  # noqa: SLF001 - what is in memory
    assert token not in repr(session)
