from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._host.libvirt_service import LibvirtService, Systemd, plan

READY = LibvirtService(running=frozenset({"libvirtd.socket", "virtlogd.socket"}), at_boot=Systemd.BOOT)
HALF = LibvirtService(running=frozenset({"virtlogd"}))
DAEMONS = LibvirtService(running=frozenset({"virtlogd", "libvirtd"}))
READY_TO_STOPPED = ["disable nometal-libvirt.target", "stop libvirtd.socket", "stop virtlogd.socket"]
STOPPED = LibvirtService(running=frozenset())


@pytest.mark.parametrize(
    ("current", "desired", "steps"),
    [
        (READY, READY, []),
        (STOPPED, READY, ["start libvirtd.socket", "start virtlogd.socket", "enable nometal-libvirt.target"]),
        (LibvirtService(READY.running), READY, ["enable nometal-libvirt.target"]),
        (LibvirtService(READY.running, frozenset({"unit file"})), READY, ["enable nometal-libvirt.target"]),
        (READY, STOPPED, READY_TO_STOPPED),
        # Killed while it was disabled: the link is gone, the file is not.
        (LibvirtService(frozenset(), frozenset({"unit file"})), STOPPED, ["disable nometal-libvirt.target"]),
        (READY, LibvirtService(READY.running), ["disable nometal-libvirt.target"]),
        (replace(READY, lacks_driver=True), READY, ["restart libvirtd"]),
        (replace(READY, lacks_driver=True), replace(STOPPED, lacks_driver=True), READY_TO_STOPPED),
        (HALF, DAEMONS, ["start libvirtd"]),
    ],
)
def test_only_what_differs_is_done(current: LibvirtService, desired: LibvirtService, steps: list[str]) -> None:
    assert [str(step) for step in plan(current, desired)] == steps
