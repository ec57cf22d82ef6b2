# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt is told of the stand-in bootstrap VM."""

from __future__ import annotations

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml, firmware
from ansible_collections.nometal.ipi.plugins.module_utils._observe.firmware import Firmware
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import bootstrap_vm
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.bootstrap_vm import BootstrapVm

PATHS = bootstrap_vm.Paths("demo-rehearsal-bootstrap", "demo")
PLAIN = Firmware(efi=True, features=(("secure-boot", False),))
WITHOUT_KEYS = Firmware(efi=True, features=(("enrolled-keys", False),), smm=True)


@pytest.mark.parametrize(
    ("uefi", "found", "told", "smm"),
    [
        (True, PLAIN, {"secure-boot": "no"}, False),
        (True, WITHOUT_KEYS, {"enrolled-keys": "no"}, True),
        (True, None, {}, False),
        (False, PLAIN, {}, False),
    ],
)
def test_firmware_that_enforces_secure_boot_is_not_taken(
    uefi: bool, found: Firmware | None, told: dict[str, str], smm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firmware, "find", lambda *_: found)
    root = domain_xml.parsed(bootstrap_vm.xml_of(BootstrapVm(PATHS, "qemu", uefi, ["52:54:00:00:00:01"], ["br'0"])))
    features = {each.get("name"): each.get("enabled") for each in root.iterfind("os/firmware/feature")}
    assert features == told
    assert root.find("os").get("firmware") == ("efi" if told else None)
    assert (root.find("features/smm") is not None) == smm


def test_its_medium_is_where_a_small_kernel_sees_it() -> None:
    root = domain_xml.parsed(bootstrap_vm.xml_of(BootstrapVm(PATHS, "qemu", False, [], [])))
    assert root.find("devices/disk[@device='cdrom']/target").get("bus") == "scsi"
    assert [each.get("model") for each in root.iterfind("devices/controller[@type='scsi']")] == ["virtio-scsi"]
