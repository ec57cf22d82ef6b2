"""How long a connection to libvirt waits for a daemon that is away, by a clock of the test's own."""

from __future__ import annotations

import libvirt
import pytest

from nometal_bmc.answers import Refused
from nometal_bmc.vms import connection
from nometal_bmc.vms.connection import WAIT_SECONDS, Connection


class Clock:
    """Takes the place of the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def refuse(_uri: str) -> None:
    libvirt.virResetLastError()  # else the error would say what another test met before
    raise libvirt.libvirtError("it is away")


def test_the_first_waits_for_a_restart_and_those_behind_it_do_not_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(connection, "time", clock)
    monkeypatch.setattr(libvirt, "open", refuse)
    lost, ends = Connection(lambda: "qemu:///system"), []
    for _client in range(4):
        with pytest.raises(Refused, match="libvirt does not answer: it is away"):
            lost.get()
        ends.append(clock.now - 1000)
    assert WAIT_SECONDS < ends[0] < WAIT_SECONDS + 1
    assert ends == [ends[0]] * 4
    clock.sleep(2 * WAIT_SECONDS)
    with pytest.raises(Refused):
        lost.get()
    assert clock.now - 1000 > ends[0] + 3 * WAIT_SECONDS
