"""What comes of a libvirt that is there, of one that is not, and how often one is asked for it."""

from __future__ import annotations

from typing import Any

import libvirt
import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.resource import BmcService
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import connection as observed
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect, connect_if_there

THERE, GONE = "test:///default", "qemu+unix:///system?socket=/nowhere/libvirt-sock"
PARAMS: dict[str, Any] = {
    "lab": "demo",
    "listen": [{"address": "127.0.0.1", "port": 58000}],
    "tls": False,
    "names": [],
    "nodes": [],
    "ipmi_addresses": [],
    "media": {"max_bytes": 2**30, "timeout": 60, "ca_file": None},
    "user": "nometal-bmc",
    "home": "/var/lib/nometal/bmc",
    "software": "/opt/nometal/bmc",
}


def test_a_libvirt_that_is_not_there_is_none_where_that_will_do() -> None:
    with pytest.raises(NotThereYetError, match="Nothing answers for"), connect(GONE):
        pass
    why: list[NotThereYetError] = []
    with connect_if_there(GONE, why.append) as connection:
        assert connection is None
    assert "Nothing answers for" in str(why[0])
    with connect_if_there(THERE, why.append) as connection:
        assert connection.getURI() == THERE
    assert len(why) == 1


def test_what_libvirt_refuses_over_such_a_connection_is_for_the_operator() -> None:
    with pytest.raises(OperatorError, match=f"libvirt at {THERE} refused: "), connect_if_there(THERE) as connection:
        connection.networkLookupByName("nowhere")


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_bmc_service_asks_over_one_connection(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    opened: list[str] = []

    def opening(uri: str) -> Any:
        opened.append(uri)
        return libvirt.open(uri)

    monkeypatch.setattr(observed, "_open", opening)
    BmcService.run({**PARAMS, "libvirt_uri": THERE, "state": state}, check_mode=True)
    assert opened == [THERE]


def test_a_bmc_service_is_foreseen_without_libvirt_and_not_made_without() -> None:
    params = {**PARAMS, "libvirt_uri": GONE, "state": "present"}
    assert BmcService.run(params, check_mode=True)["changed"]
    with pytest.raises(NotThereYetError, match="Nothing answers for"):
        BmcService(params, check_mode=False).reconcile()
