from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import WHOLE
from ansible_collections.nometal.ipi.plugins.module_utils._resources.libvirt_service.service import (
    LibvirtService,
    Systemd,
    plan,
)

READY = LibvirtService(frozenset({"libvirtd.socket", "virtlogd.socket"}), at_boot=Systemd.BOOT, hook=WHOLE)
HALF = LibvirtService(running=frozenset({"virtlogd"}))
DAEMONS = LibvirtService(running=frozenset({"virtlogd", "libvirtd"}))
STALE = frozenset({"libvirtd"})
INSTALL = "install /etc/libvirt/hooks/network.d/nometal"
REMOVE = "remove /etc/libvirt/hooks/network.d/nometal"
READY_TO_STOPPED = ["disable nometal-libvirt.target", "stop libvirtd.socket", "stop virtlogd.socket", REMOVE]
STOPPED = LibvirtService(running=frozenset())


@pytest.mark.parametrize(
    ("current", "desired", "steps"),
    [
        (READY, READY, []),
        (STOPPED, READY, [INSTALL, "start libvirtd.socket", "start virtlogd.socket", "enable nometal-libvirt.target"]),
        (replace(READY, at_boot=frozenset()), READY, ["enable nometal-libvirt.target"]),
        (replace(READY, at_boot=frozenset({"unit file"})), READY, ["enable nometal-libvirt.target"]),
        (READY, STOPPED, READY_TO_STOPPED),
        # Killed while it was disabled: the link is gone, the file is not.
        (LibvirtService(frozenset(), frozenset({"unit file"})), STOPPED, ["disable nometal-libvirt.target"]),
        (replace(READY, hook=frozenset()), LibvirtService(READY.running), ["disable nometal-libvirt.target"]),
        # It runs, and has not looked for the hook, or not loaded its driver.
        (replace(READY, hook=frozenset(), stale=STALE), READY, [INSTALL, "restart libvirtd"]),
        (replace(READY, stale=STALE), READY, ["restart libvirtd"]),
        (replace(READY, stale=frozenset({"virtnetworkd"})), READY, ["restart virtnetworkd"]),
        (replace(READY, stale=STALE), replace(STOPPED, stale=STALE), READY_TO_STOPPED),
        (replace(READY, hook=frozenset({"script"})), READY, [INSTALL]),
        (replace(STOPPED, hook=frozenset({"script"})), STOPPED, [REMOVE]),
        (HALF, DAEMONS, ["start libvirtd"]),
    ],
)
def test_only_what_differs_is_done(current: LibvirtService, desired: LibvirtService, steps: list[str]) -> None:
    assert [str(step) for step in plan(current, desired)] == steps
