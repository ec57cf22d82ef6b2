"""What the client asks of an IPMI BMC, by the state in which it finds the VM."""

from __future__ import annotations

from typing import Any

import pytest
from pyghmi.exceptions import PyghmiException

from nometal_bmc.ipmi import client
from nometal_bmc.ipmi.commands import Code


class Session:
    def __init__(self, *, on: bool) -> None:
        self.on = on
        self.asked: list[int] = []

    def raw_command(self, *, netfn: int, command: int, data: tuple[int, ...]) -> dict[str, Any]:
        assert netfn == client.CHASSIS
        self.asked += data
        return {"data": [client.IS_ON if self.on else 0]} if command == client.STATUS else {"data": []}


@pytest.mark.parametrize(
    ("wish", "on", "asked"),
    [
        *(("on", False, [1]), ("on", True, [])),
        *(("off", True, [0]), ("off", False, [])),
        *(("soft", True, [5]), ("soft", False, [5])),  # it may be about to be switched on
        ("status", True, []),
    ],
)
def test_only_what_is_needed_is_asked_for(wish: str, on: bool, asked: list[int]) -> None:
    session = Session(on=on)
    assert client.done(session, wish) == ("on" if on else "off")
    assert session.asked == asked


def test_a_vm_that_is_gone_is_told_from_a_bmc_that_does_not_obey(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(on=True)
    for code, said in ((Code.DESTINATION_UNAVAILABLE, client.GONE), (Code.BUSY, "Node Busy")):
        answer = {"code": int(code), "error": "Node Busy"}
        monkeypatch.setattr(session, "raw_command", lambda answer=answer, **_asked: answer)
        with pytest.raises(PyghmiException, match=said):
            client.done(session, "status")
