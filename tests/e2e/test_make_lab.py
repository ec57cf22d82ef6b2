"""The two commands of the README, on fresh machines with nothing but Python, make and a package mirror."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support import checkout, lab_host, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

REMOVE_PACKAGES = "ARGS=-e host_prep_remove_packages=true"
# Of a package that was removed: its user, its directories, and what it has set up for others.
LEFT_BY_REMOVED_PACKAGES = snapshot.MADE_BY_PACKAGES
# The checkout with its virtualenv is the operator's; python3-venv came for it.
OPERATORS = (checkout.IN_HOST,)


@pytest.fixture(params=[("bookworm", "systemd"), ("bookworm", "none"), ("trixie", "systemd")], ids="-".join)
def fresh(request: pytest.FixtureRequest) -> Iterator[LabHost]:
    suite, init = request.param
    with lab_host.start(suite=suite, init=init, layer="bare", mirror=True) as host:
        checkout.put_into(host)
        yield host


def test_from_nothing_to_a_lab_and_back(fresh: LabHost) -> None:
    host = fresh
    before = snapshot.take(host, OPERATORS)

    first = checkout.make(host, "lab")
    assert "failed=0" in first
    assert "Installed " in first
    assert "0 blockers" in first

    second = checkout.make(host, "lab")
    assert re.search(r"changed=0 .*failed=0", second), second
    assert "Nothing: the host was ready." in second

    checkout.make(host, "teardown")
    packages_aside = (*snapshot.WITH_PACKAGES, *snapshot.MADE_BY_PACKAGES)
    assert snapshot.take(host, OPERATORS).diff(before, without=packages_aside) == ""
    assert host.run("ls -d /var/lib/nometal /var/lib/libvirt/images/*", check=False).stdout == ""

    again = checkout.make(host, "teardown")
    assert re.search(r"changed=0 .*failed=0", again), again
