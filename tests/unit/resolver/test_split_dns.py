"""The decision by tables, and what is refused before anything is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._resolver.split_dns import HostResolver, Settings, plan
from ansible_collections.nometal.ipi.plugins.module_utils._resolver.zones import reverse_zones
from ansible_collections.nometal.ipi.plugins.modules.split_dns import lab_from

HELD = Settings(("server=/one.test/192.0.2.1",))
NONE = HostResolver({})
DESIRED = HostResolver({"resolv.conf": HELD})
PARAMS: dict[str, Any] = {
    "owner": "one",
    "link": "nm-one",
    "domains": ["One.Lab.Test."],
    "subnets": ["192.168.126.0/24", "fd00:126::/64"],
    "servers": ["192.168.126.1", "FD00:126:0::1", "192.168.126.1"],
    "state": "present",
}


@pytest.mark.parametrize(
    ("current", "desired", "steps"),
    [
        (NONE, DESIRED, ["write resolv.conf", "apply resolv.conf"]),
        (DESIRED, DESIRED, []),
        (HostResolver({"resolv.conf": replace(HELD, in_force=False)}), DESIRED, ["apply resolv.conf"]),
        (
            HostResolver({"resolv.conf": replace(HELD, kept=False)}),
            DESIRED,
            ["write resolv.conf", "apply resolv.conf"],
        ),
        (HostResolver({"resolv.conf": Settings(())}), DESIRED, ["write resolv.conf", "apply resolv.conf"]),
        (
            HostResolver({"NetworkManager": HELD}),
            DESIRED,
            ["remove NetworkManager", "write resolv.conf", "apply resolv.conf"],
        ),
        (DESIRED, NONE, ["remove resolv.conf"]),
        (NONE, NONE, []),
    ],
)
def test_plan(current: HostResolver, desired: HostResolver, steps: list[str]) -> None:
    assert [str(step) for step in plan(current, desired)] == steps


def test_a_lab_is_told_in_one_spelling() -> None:
    lab = lab_from(PARAMS)
    assert lab.domains == ("one.lab.test", "126.168.192.in-addr.arpa", "0.0.0.0.0.0.0.0.6.2.1.0.0.0.d.f.ip6.arpa")
    assert lab.servers == ("192.168.126.1", "fd00:126::1")


@pytest.mark.parametrize(
    ("subnet", "zones"),
    [
        ("10.0.0.0/8", ("10.in-addr.arpa",)),
        ("192.168.126.0/23", ("126.168.192.in-addr.arpa", "127.168.192.in-addr.arpa")),
        ("192.168.126.64/26", ("126.168.192.in-addr.arpa",)),
        ("2001:db8::/47", ("0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", "1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa")),
    ],
)
def test_reverse_zones(subnet: str, zones: tuple[str, ...]) -> None:
    assert reverse_zones(subnet) == zones


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"owner": "../x"}, "owner: '../x' is no name of a lab"),
        ({"link": "a-name-that-is-too-long"}, "link: .* is no name of an interface"),
        ({"domains": ["test"]}, "domains: 'test' is no domain name"),
        ({"domains": ["."]}, "domains: '.' is no domain name"),
        ({"domains": ["a_b/c.test"]}, "domains: 'a_b/c.test' is no domain name"),
        ({"subnets": ["192.168.126.1/24"]}, "subnets: '192.168.126.1/24' is no subnet"),
        ({"subnets": ["0.0.0.0/0"]}, "subnets: 0.0.0.0/0 is too large"),
        ({"servers": ["gateway"]}, "servers: 'gateway' is no IP address"),
        ({"servers": []}, "servers and at least one of domains and subnets"),
        ({"domains": [], "subnets": []}, "servers and at least one of domains and subnets"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        lab_from({**PARAMS, **wrong})


def test_to_remove_a_lab_its_names_are_not_needed() -> None:
    assert lab_from({**PARAMS, "domains": [], "subnets": [], "servers": [], "state": "absent"}).domains == ()
