"""The two commands of the README, on fresh machines with nothing but Python, make and a package mirror."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support import checkout, lab_host, snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

# The checkout with its virtualenv is the operator's; python3-venv came for it.
OPERATORS = (checkout.IN_HOST,)


# All other tests have a new ansible-core, so this one takes the oldest supported. On trixie, Python has the newest.
OLDEST, NEWEST = "ansible-core==2.16.*", "ansible-core"
FRESH = [
    pytest.param(("bookworm", "systemd", OLDEST), id="bookworm, oldest Ansible"),
    pytest.param(("bookworm", "none", NEWEST), id="bookworm without systemd", marks=pytest.mark.full),
    pytest.param(("trixie", "systemd", NEWEST), id="trixie", marks=pytest.mark.full),
]


@pytest.fixture(params=FRESH)
def fresh(request: pytest.FixtureRequest) -> Iterator[LabHost]:
    suite, init, core = request.param
    with lab_host.start(suite=suite, init=init, layer="bare", mirror=True) as host:
        checkout.put_into(host)
        host.write("/etc/pip-constraint", f"{core}\n")
        yield host


@pytest.mark.long
def test_from_nothing_to_a_lab_and_back(fresh: LabHost) -> None:
    host = fresh
    before = snapshot.take(host, OPERATORS)

    # Debian 12 with systemd rehearses enough in test_rehearsal.py.
    rehearsed = (host.sandbox.facts["suite"], host.sandbox.facts["init"]) != ("bookworm", "systemd")
    first = checkout.make(host, "lab", "PIP_CONSTRAINT=/etc/pip-constraint", f"ARGS=-e rehearsal_enabled={rehearsed}")
    assert "failed=0" in first
    assert "install dnsmasq-base" in first
    assert "0 blockers" in first
    assert ("0 failed" in first) == rehearsed  # of the checks of its rehearsal

    second = checkout.make(host, "lab", "PIP_CONSTRAINT=/etc/pip-constraint", "ARGS=-e rehearsal_enabled=false")
    assert re.search(r"hypervisor .* changed=0 .*failed=0", second), second
    assert "nothing: the lab is as it should be" in second

    checkout.make(host, "teardown")
    packages_aside = (*snapshot.WITH_PACKAGES, *snapshot.MADE_BY_PACKAGES, *snapshot.MADE_BY_LIBVIRT)
    assert snapshot.take(host, OPERATORS).diff(before, without=packages_aside) == ""
    assert "nm-" not in host.run("nft list ruleset", check=False).stdout
    assert host.run("ls -d /var/lib/nometal /var/lib/libvirt/images/*", check=False).stdout == ""

    again = checkout.make(host, "teardown")
    assert re.search(r"hypervisor .* changed=0 .*failed=0", again), again
