"""The decision by tables, and what is refused before anything is read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.zones import reverse_zones
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import (
    host_server,
    network_manager,
    systemd_resolved,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.choice import SplitDns
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.network_manager import NetworkManager
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.resolv_conf import ResolvConf
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import (
    HostResolver,
    Lab,
    Settings,
    lab_from,
    plan,
    refuse_taken_domains,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.systemd_resolved import SystemdResolved

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Means

HELD = Settings(("server=/one.test/192.0.2.1",))
NONE = HostResolver({})
DESIRED = HostResolver({"resolv.conf": HELD})
PARAMS: dict[str, Any] = {
    "lab": "one",
    "link": "nm-one",
    "domains": ["One.Lab.Test."],
    "subnets": ["192.168.126.0/24", "fd00:126::/64"],
    "servers": ["192.168.126.1", "FD00:126:0::1", "192.168.126.1"],
    "names": ["API.one.lab.test."],
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
    assert lab.names == ("api.one.lab.test",)


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
        ({"lab": "../x"}, r"lab: must be lower case letters, .* \(got '../x'\)"),
        (
            {"link": "a-name-that-is-too-long"},
            r"link: must be at most 15 characters long, .* \(got 'a-name",
        ),
        ({"link": "a;reboot"}, r"link: must be an interface name: .* \(got 'a;reboot'\)"),
        ({"domains": ["test"]}, "domains: must be a domain name of two labels or more .got 'test'"),
        ({"domains": ["."]}, "domains: must be a domain name of two labels or more .got '.'"),
        ({"domains": ["a_b/c.test"]}, "domains: must be a domain name of two labels or more .got 'a_b/c.test'"),
        ({"subnets": ["192.168.126.1/24"]}, "subnets: must be a subnet .got '192.168.126.1/24'"),
        ({"subnets": ["0.0.0.0/0"]}, "subnets: 0.0.0.0/0 is too large"),
        ({"servers": ["gateway"]}, "servers: must be an IP address .got 'gateway'"),
        *(
            ({"servers": [no_server]}, f"servers: {no_server} cannot be a lab's name server.* its bridge")
            for no_server in (
                "127.78.77.53",
                "::1",
                "::ffff:127.0.0.1",
                "224.0.0.1",
                "::",
                "169.254.0.1",
                "fe80::1",
            )
        ),
        ({"servers": []}, "servers and at least one of domains and subnets"),
        ({"domains": [], "subnets": []}, "servers and at least one of domains and subnets"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        lab_from({**PARAMS, **wrong})


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(OperatorError) as caught:
        lab_from({**PARAMS, "lab": "", "link": "", "domains": ["a", "b"], "subnets": ["c"], "servers": ["d"]})
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "lab",
        "link",
        "domains",
        "domains",
        "subnets",
        "servers",
    ]


def test_domains_that_another_lab_has_are_refused() -> None:
    lab = Lab("one", "nm-one", ("one.test", "126.168.192.in-addr.arpa", "mine.test"))
    refuse_taken_domains(lab, [("one", ["one.test"]), ("two", ["two.test", "sub.one.test"])])
    with pytest.raises(OperatorError) as caught:
        refuse_taken_domains(lab, [("two", ["one.test", "two.test"]), ("three", ["126.168.192.in-addr.arpa"])] * 2)
    assert str(caught.value).splitlines()[:-1] == [
        "126.168.192.in-addr.arpa is lab three's on this host already.",
        "one.test is lab two's on this host already.",
    ]


def test_a_domain_of_others_and_a_resolver_that_cannot_work_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_server, "LABS", tmp_path)
    monkeypatch.setattr(host_server, "RESOLV_CONF", tmp_path / "resolv.conf")
    monkeypatch.setattr(host_server, "pid", lambda: 1)
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\noptions rotate\n", encoding="utf-8")
    (tmp_path / "two.lab").write_text("server=/one.lab.test/192.0.2.1\n", encoding="utf-8")
    with pytest.raises(OperatorError) as refused:
        SplitDns.run(PARAMS, check_mode=True)
    assert "one.lab.test is lab two's on this host already." in str(refused.value)
    assert "has `options rotate`" in str(refused.value)


def test_each_means_tells_the_domains_of_the_labs_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in [(host_server, "LABS"), (network_manager, "FILES"), (systemd_resolved, "ENTRIES")]:
        monkeypatch.setattr(module, name, tmp_path)
    lab = lab_from(PARAMS)
    (tmp_path / "other.sh").write_text("resolvectl domain x '~not.ours'")
    known: list[tuple[Means, str]] = [
        (ResolvConf(), "one.lab"),
        (NetworkManager(), "nometal-one.conf"),
        (SystemdResolved(), "one.resolver"),
    ]
    for means, file in known:
        assert list(means.held()) == []
        (tmp_path / file).write_text("\n".join(means.wanted(lab).lines))
        assert [(owner, tuple(domains)) for owner, domains in means.held()] == [("one", lab.domains)]


def test_to_remove_a_lab_its_names_are_not_needed() -> None:
    assert lab_from({**PARAMS, "servers": ["127.0.0.1"], "state": "absent"}) == Lab("one", "nm-one")
