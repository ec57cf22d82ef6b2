from __future__ import annotations

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._host.libvirt_service import LibvirtService, Systemd, plan

READY = LibvirtService(running=frozenset({"libvirtd.socket", "virtlogd.socket"}), at_boot=Systemd.BOOT)
HALF = LibvirtService(running=frozenset({"virtlogd"}))
DAEMONS = LibvirtService(running=frozenset({"virtlogd", "libvirtd"}))
STOPPED = LibvirtService(running=frozenset())


@pytest.mark.parametrize(
    ("current", "desired", "steps"),
    [
        (READY, READY, []),
        (STOPPED, READY, ["start libvirtd.socket", "start virtlogd.socket", "enable nometal-libvirt.target"]),
        (LibvirtService(READY.running), READY, ["enable nometal-libvirt.target"]),
        (LibvirtService(READY.running, frozenset({"unit file"})), READY, ["enable nometal-libvirt.target"]),
        (
            READY,
            STOPPED,
            ["disable nometal-libvirt.target", "stop libvirtd.socket", "stop virtlogd.socket"],
        ),
        # Killed while it was disabled: the link is gone, the file is not.
        (LibvirtService(frozenset(), frozenset({"unit file"})), STOPPED, ["disable nometal-libvirt.target"]),
        (READY, LibvirtService(READY.running), ["disable nometal-libvirt.target"]),
        (
            LibvirtService(frozenset({"virtlogd"})),
            LibvirtService(frozenset({"libvirtd", "virtlogd"})),
            ["start libvirtd"],
        ),
    ],
)
def test_only_what_differs_is_done(current: LibvirtService, desired: LibvirtService, steps: list[str]) -> None:
    assert [str(step) for step in plan(current, desired)] == steps
