"""What the host sees of a guest, on a real libvirtd."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import libvirt
from support import guest

from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.consoles import Guest
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.watching import signs

if TYPE_CHECKING:
    from support.private_libvirtd import PrivateLibvirtd


def test_a_guest_that_boots_shows_signs_of_life(private_libvirtd: PrivateLibvirtd) -> None:
    private_libvirtd.run(["ip", "link", "add", "lan", "up", "type", "bridge"])
    connection = libvirt.open(private_libvirtd.uri)
    with guest.start(private_libvirtd, name="one", bridge="lan", mac="52:54:00:00:00:01") as one:
        seen = Guest("one", private_libvirtd.path(f"{guest.DIRECTORY}/one.log"))
        one.run("true")  # it has booted
        first = signs(connection, seen)
        assert first is not None
        assert first.computed > 0
        assert first.output <= seen.console.stat().st_size
        one.run("dd if=/dev/zero bs=1M count=16 | sha256sum")
        second = signs(connection, seen)
        assert second is not None
        assert second.computed > first.computed
        assert second.starved >= first.starved
        connection.lookupByName("one").destroy()
        assert signs(connection, seen) is None
    assert signs(connection, Guest("none", Path("/none"))) is None
    connection.close()
