"""The mixtures of kinds of hosts."""

from __future__ import annotations

import pytest
from support import peers


@pytest.mark.parametrize("seed", range(20))
def test_a_few_hosts_have_every_kind(seed: int) -> None:
    hosts = peers.mixtures(seed)
    assert hosts == peers.mixtures(seed)
    assert len(set(map(str, hosts))) == len(hosts) == 6
    for factor, levels in peers.FACTORS.items():
        assert {getattr(host, factor) for host in hosts} == set(levels)
    assert peers.sample(hosts).reload


def test_the_seed_has_what_is_said_of_it() -> None:
    hosts = peers.mixtures(peers.SEED)
    sample = peers.sample(hosts)
    assert (sample.suite, sample.firewall, sample.login, sample.umask) == ("trixie", "nftables", "sudo", "umask 077")
    assert any(host.suite == "bookworm" and host.firewall == "iptables legacy" for host in hosts)


def test_alone_each_kind_differs_from_the_plain_host_in_one_thing() -> None:
    hosts = list(peers.each_alone())
    assert len(set(map(str, hosts))) == len(hosts)
    assert {len(str(host).split(", ")) for host in hosts} == {2}
