"""Which connections have to go when there are too many."""

from __future__ import annotations

import pytest

from nometal_bmc.front import crowd
from nometal_bmc.front.crowd import Crowd, Visitor
from nometal_bmc.sources import source_of


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"MOST_CONNECTIONS": 8, "MOST_KNOWN": 6, "MOST_KNOWN_OF_A_SOURCE": 3, "MOST_STRANGERS_OF_A_SOURCE": 4}
    for name, limit in limits.items():
        monkeypatch.setattr(crowd, name, limit)


def come(visitors: Crowd, *addresses: str) -> tuple[list[Visitor], list[Visitor]]:
    """Those who have come, and those who had to go."""
    come = [Visitor(address) for address in addresses]
    return come, [gone for gone in map(visitors.enter, come) if gone]


def test_the_oldest_stranger_of_a_network_makes_room() -> None:
    visitors = Crowd()
    [other], _nobody = come(visitors, "192.0.2.2")
    ours, gone = come(visitors, *["192.0.2.1"] * 6)
    assert gone == ours[:2]
    assert other not in gone


def test_of_an_ipv6_network_the_address_with_the_most_connections_pays() -> None:
    visitors = Crowd()
    [honest], _nobody = come(visitors, "fd00:1::1")
    crowding, gone = come(visitors, *["fd00:1::2"] * 6)
    assert gone == crowding[:3]
    _late, gone = come(visitors, "fd00:1::3", "fd00:1::3")
    assert gone == crowding[3:5]
    assert honest not in gone


def test_many_networks_together_keep_nobody_out() -> None:
    visitors = Crowd()
    honest, _nobody = come(visitors, "192.0.2.1")
    crowding, gone = come(visitors, *["198.51.100.1"] * 4, *["203.0.113.1"] * 4)
    assert gone == crowding[:1]
    late, gone = come(visitors, "192.0.2.2")
    assert gone == crowding[4:5]
    assert not {*honest, *late} & set(gone)


def test_who_has_logged_in_stays() -> None:
    visitors = Crowd()
    known, _nobody = come(visitors, *["192.0.2.1"] * 3)
    for visitor in known:
        visitors.recognise(visitor)
        visitors.recognise(visitor)
    crowding, gone = come(visitors, *["192.0.2.1"] * 50, *["192.0.2.2"] * 50)
    assert len(gone) == 100 + 3 - crowd.MOST_CONNECTIONS
    assert set(gone) <= set(crowding)


def test_logins_are_no_way_to_take_all_connections() -> None:
    visitors = Crowd()
    logged_in: list[Visitor] = []
    for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
        for _connection in range(4):
            [visitor], _gone = come(visitors, address)
            visitors.recognise(visitor)
            logged_in.append(visitor)
    assert [visitor.known for visitor in logged_in] == [True] * 3 + [False] + [True] * 3 + [False] * 5
    _late, [gone] = come(visitors, "192.0.2.4")
    assert not gone.known


def test_who_has_left_counts_no_more() -> None:
    visitors = Crowd()
    known, _nobody = come(visitors, *["192.0.2.1"] * 3)
    for visitor in known:
        visitors.recognise(visitor)
    for _round in range(3):
        strangers, gone = come(visitors, *["192.0.2.2"] * 4)
        for visitor in strangers:
            visitors.leave(visitor)
            visitors.leave(visitor)
        assert gone == []
    for visitor in known:
        visitors.leave(visitor)
    [again], _nobody = come(visitors, "192.0.2.1")
    visitors.recognise(again)
    assert again.known


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("fd00:1::ffff:1", "fd00:1::/64"),
        ("fe80::5054:ff:fe00:1%br0", "fe80::/64"),
    ],
)
def test_whom_limits_count(address: str, source: str) -> None:
    assert source_of(address) == source
