"""Which addresses images are fetched from, whatever names resolve to."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest

from nometal_bmc.media import reach
from nometal_bmc.media.deadline import Deadline

LOOPBACK = (ipaddress.ip_network("127.0.0.2/32"),)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the next questions for a name are answered."""
    answers: list[list[str]] = []

    def resolve(_host: str, port: int, **_kind: Any) -> list[Any]:
        found = answers.pop(0)
        return [
            (socket.AF_INET6, 0, 0, "", (text, port, 0, 0)) if ":" in text else (socket.AF_INET, 0, 0, "", (text, port))
            for text in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return answers


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",  # noqa: S104 - nothing listens there
        "0.1.2.3",
        "169.254.169.254",
        "224.0.0.1",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "fe80::1%1",
        "ff02::1",
    ],
)
def test_nobody_is_asked_there(names: list[list[str]], address: str) -> None:
    names.append([address])
    with pytest.raises(reach.Forbidden):
        reach.places_of("image.example", 80, ())


@pytest.mark.parametrize("address", ["192.0.2.1", "10.0.0.1", "fd00::1", "2001:db8::1", "::ffff:192.0.2.1"])
def test_other_hosts_are_asked(names: list[list[str]], address: str) -> None:
    names.append([address])
    [place] = reach.places_of("image.example", 80, ())
    assert (place.address[0], place.is_own) == (address, False)


def test_of_several_addresses_the_open_ones_are_asked(names: list[list[str]]) -> None:
    names.append(["127.0.0.1", "192.0.2.1", "::1", "2001:db8::1"])
    assert [place.address[0] for place in reach.places_of("image.example", 80, ())] == ["192.0.2.1", "2001:db8::1"]


def test_a_name_that_resolves_to_another_address_later_does_not_help(names: list[list[str]]) -> None:
    """The connection is made to the address that was judged."""
    names += [["127.0.0.2"], ["127.0.0.1"]]
    with socket.create_server(("127.0.0.2", 0)) as server:
        places = reach.places_of("image.example", server.getsockname()[1], LOOPBACK)
        with reach.connected(places, 60, Deadline(60)) as connection:
            assert connection.getpeername() == server.getsockname()
    assert names == [["127.0.0.1"]]


def test_who_does_not_answer_is_passed_over(names: list[list[str]]) -> None:
    with socket.create_server(("127.0.0.2", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.3", server.getsockname()[1]))
        names.append(["127.0.0.3", "127.0.0.2"])
        places = reach.places_of("image.example", server.getsockname()[1], (ipaddress.ip_network("127.0.0.0/8"),))
        with reach.connected(places, 60, Deadline(60)) as connection:
            assert connection.getpeername() == server.getsockname()
        with pytest.raises(ConnectionRefusedError):
            reach.connected(places[:1], 60, Deadline(60))
