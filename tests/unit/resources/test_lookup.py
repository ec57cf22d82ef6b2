"""What is said when the host does not find what the lab's own DNS server gives."""

from __future__ import annotations

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import lookup
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Lab

LAB = Lab("one", "lo", servers=("192.0.2.1", "2001:db8::1"), names=("api.one.lab.test",))
TOLD = {"192.0.2.5"}


@pytest.mark.parametrize(
    ("told", "by_programs", "by_stub", "complaint"),
    [
        (TOLD, TOLD, TOLD, ""),
        (TOLD, {*TOLD, "192.0.2.9"}, TOLD, ""),
        (
            set(),
            TOLD,
            TOLD,
            "the lab's own DNS server, 192.0.2.1 and 2001:db8::1 on lo, gives no address for api.one.lab.test",
        ),
        (TOLD, set(), TOLD, "programs of the host (getent ahosts api.one.lab.test) find none (/etc/hosts and"),
        (TOLD, {"192.0.2.9"}, TOLD, "find 192.0.2.9 (/etc/hosts and"),
        (TOLD, TOLD, set(), "127.0.0.9, the first name server in /etc/resolv.conf, gives none"),
    ],
)
def test_complaints(
    told: set[str], by_programs: set[str], by_stub: set[str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_is_resolveds", lambda: False)
    monkeypatch.setattr(lookup, "_first_nameserver", lambda: "127.0.0.9")
    monkeypatch.setattr(lookup, "found_by_programs", lambda _name: by_programs)
    monkeypatch.setattr(lookup, "_asked", lambda _name, server: by_stub if server == "127.0.0.9" else told)
    assert complaint in lookup.complaint(LAB)
    assert bool(lookup.complaint(LAB)) == bool(complaint)


def test_nobody_is_asked_while_the_network_is_down() -> None:
    assert lookup.complaint(Lab("one", "no-such-link", servers=("192.0.2.1",), names=("api.one.lab.test",))) == ""


def test_what_stays_unknown_is_an_error_that_says_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "PATIENCE", 0.0)
    monkeypatch.setattr(lookup, "complaint", lambda _lab: "127.0.0.53 gives none")
    with pytest.raises(OperatorError, match=r"names of lab one: 127.0.0.53 gives none; the file is /x\.$"):
        lookup.wait_until_known(LAB, "the file is /x")


def test_programs_of_the_host_are_asked() -> None:
    assert lookup.found_by_programs("localhost") & {"127.0.0.1", "::1"}
    assert lookup.found_by_programs("no-such-name.invalid") == set()
