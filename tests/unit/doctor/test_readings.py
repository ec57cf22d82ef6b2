# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import threading
from pathlib import Path

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._doctor import libvirt_files
from ansible_collections.nometal.ipi.plugins.module_utils._doctor.host import (
    UnmeasurableError,
    nearest_existing,
    within,
)

NETWORK = """<!-- WARNING: THIS IS AN AUTO-GENERATED FILE. -->
<network>
  <name>{name}</name><uuid>{uuid}</uuid>
  <bridge name='virbr1' stp='on' delay='0'/>
  <ip address='10.1.0.1' netmask='255.255.0.0'/>
  <ip family='ipv6' address='fd00::1' prefix='64'/>
</network>
"""


@pytest.fixture
def libvirt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for constant, place in (
        ("NETWORKS", "etc/qemu/networks"),
        ("DOMAINS", "etc/qemu"),
        ("POOLS", "etc/storage"),
        ("RUNNING_NETWORKS", "run/network"),
    ):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(libvirt_files, constant, tmp_path / place)
    return tmp_path


def test_networks_defined_running_and_transient(libvirt: Path) -> None:
    (libvirt / "etc/qemu/networks/stopped.xml").write_text(NETWORK.format(name="stopped", uuid="1"))
    (libvirt / "etc/qemu/networks/both.xml").write_text(NETWORK.format(name="both", uuid="2"))
    for name in ("both", "transient"):
        status = NETWORK.format(name=name, uuid="2").partition("-->")[2]
        (libvirt / f"run/network/{name}.xml").write_text(f"<networkstatus>{status}</networkstatus>")
    found = libvirt_files.networks()
    assert {network.name: network.active for network in found} == {"stopped": False, "both": True, "transient": True}
    assert {network.bridge for network in found} == {"virbr1"}
    assert found[0].subnets == (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/64"))


def test_objects_of_all_kinds(libvirt: Path) -> None:
    (libvirt / "etc/qemu/networks/n.xml").write_text(NETWORK.format(name="n", uuid="1"))
    (libvirt / "etc/qemu/d.xml").write_text("<domain type='kvm'><name>d</name><uuid>2</uuid></domain>")
    (libvirt / "etc/storage/p.xml").write_text("<pool type='dir'><name>p</name><uuid>3</uuid></pool>")
    assert [(thing.kind, thing.name, thing.uuid) for thing in libvirt_files.objects()] == [
        ("network", "n", "1"),
        ("domain", "d", "2"),
        ("pool", "p", "3"),
    ]


def test_a_broken_file_is_named(libvirt: Path) -> None:
    (libvirt / "etc/storage/p.xml").write_text("<pool")
    with pytest.raises(UnmeasurableError, match=r"storage/p\.xml: unclosed token"):
        libvirt_files.objects()


def test_nearest_existing(tmp_path: Path) -> None:
    assert nearest_existing(str(tmp_path / "a" / "b")) == tmp_path
    assert nearest_existing(str(tmp_path)) == tmp_path


def test_within() -> None:
    assert within(1, lambda: 42) == 42
    with pytest.raises(ValueError, match="bad"):
        within(1, lambda: int("bad"))
    never = threading.Event()
    with pytest.raises(UnmeasurableError, match=r"no answer within 0\.1 s"):
        within(0.1, never.wait)
    never.set()
