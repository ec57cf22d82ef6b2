"""A lab on hosts as administrators really have them: made, rehearsed, used by guests, and removed without a trace.

`make test` takes one host which has much that others have, and whose packet filter is flushed; `make test-full` takes a
few which together have every kind, and each kind alone, on every release. The mixtures are drawn by --matrix-seed. The
kinds: support/peers.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support import checkout, lab_host, peers, snapshot
from support.failures import CommandFailed, ending
from support.guest import GuestFailed
from support.guest_lab import Lab
from support.world import a_world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.peers import HostKind
    from support.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as made:
        yield made


@pytest.mark.long
def test_a_lab_on_a_host_as_others_have_it(host_kind: HostKind, world: World, tmp_path: Path) -> None:
    with lab_host.start(suite=host_kind.suite, layer="peers", street=world.street) as host:
        host_kind.set_up(host)
        before = snapshot.take(host)
        lab = Lab(host, tmp_path)
        lab.specify(rehearsed=True, variables=host_kind.variables)

        changed(lab, "site")
        if host_kind.reload:
            host.run(host_kind.reload)
            changed(lab, "site", "-e", "rehearsal_enabled=false")  # it heals what the host's hooks have not
        assert changed(lab, "site", "-e", "rehearsal_enabled=false") == 0
        unwell = what_guests_lack(lab)

        changed(lab, "teardown")
        left = snapshot.take(host).diff(before, without=peers.OF_THEMSELVES)
        assert not unwell + left, unwell + left


def changed(lab: Lab, playbook: str, *arguments: str) -> int:
    """How many tasks reported a change."""
    run = checkout.run_playbook(playbook, lab.inventory, *arguments)
    assert run.returncode == 0, ending(run.stdout)
    [count] = re.findall(r"^hypervisor .* changed=(\d+)", run.stdout, re.MULTILINE)
    return int(count)


def what_guests_lack(lab: Lab) -> str:
    """On both sides of the veth pair; the BMCs are the real ones. Empty: nothing."""
    lab.switch_on_node("control-plane-0", network=lab.network["name"], prefix="guest-as-")
    lab.switch_on_node("worker-0", prefix="guest-as-")
    try:
        lab.assert_all_is_well()
    except (AssertionError, GuestFailed, CommandFailed) as error:
        return f"{error}\n"
    finally:
        lab.switch_off()
    return ""
