# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from unit.lab.samples import model_of

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor import labs
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs, Pool
from ansible_collections.nometal.ipi.plugins.module_utils._observe import libvirt_files
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import (
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


POOL = "<pool type='{kind}'><name>{name}</name><uuid>{uuid}</uuid><target><path>{path}</path></target></pool>"


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


class LabsHere:
    """Labs as role host_prep records them, and pools as libvirt does."""

    def __init__(self, libvirt: Path) -> None:
        self._root = libvirt

    def record(self, name: str, model: dict[str, Any] | None = None) -> None:
        (self._root / "labs" / name).mkdir(parents=True)
        if model is not None:
            (self._root / "labs" / name / "lab.json").write_text(json.dumps(model))

    def pool(self, name: str, path: str, uuid: str = "u", kind: str = "dir") -> None:
        text = POOL.format(kind=kind, name=name, uuid=uuid, path=path)
        (self._root / "etc/storage" / f"{name}.xml").write_text(text)

    @staticmethod
    def judged(model: dict[str, Any]) -> Finding:
        pool = model["storage_pool"]
        needs = Needs(name=model["name"], model=model, pool=Pool(pool["name"], pool["uuid"], pool["path"]))
        return labs.judge_labs(labs.measure_labs(needs), needs)


@pytest.fixture
def here(libvirt: Path, monkeypatch: pytest.MonkeyPatch) -> LabsHere:
    monkeypatch.setattr(labs, "LABS", libvirt / "labs")
    return LabsHere(libvirt)


OTHER = "{name: %s, machine_network: {cidr: 192.168.140.0/24, bridge: othermetal}}"


@pytest.mark.parametrize(("first", "second"), [("demo", "demo-media"), ("demo-media", "demo")])
def test_a_lab_named_like_the_media_of_another_is_refused_in_either_order(
    here: LabsHere, first: str, second: str
) -> None:
    here.record(first, model_of(f"name: {first}"))
    finding = here.judged(model_of(OTHER % second))
    assert finding.severity == "blocker"
    assert "storage pool nometal-demo-media" in finding.message
    assert finding.advice == f"Change lab_spec.name, or remove lab {first} first."


def test_labs_that_share_nothing_are_clear_of_each_other_and_a_lab_of_itself(here: LabsHere) -> None:
    here.record("demo", model_of("name: demo"))
    here.record("ha", model_of(OTHER % "ha"))
    finding = here.judged(model_of(OTHER % "ha"))
    assert (finding.severity, finding.message) == ("ok", "no conflicts with demo")


def test_directories_are_compared_as_they_really_are(here: LabsHere, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    here.record("demo", model_of(f"{{name: demo, storage_pool: {{path: {tmp_path}/real}}}}"))
    mine = model_of(OTHER % "ha")
    mine["storage_pool"]["path"] = f"{tmp_path}/link/below/ha"
    finding = here.judged(mine)
    assert finding.severity == "blocker"
    assert f"directory {tmp_path}/real/below/ha (its disks) by lab demo, as directory {tmp_path}/real (its disks)" in (
        finding.message
    )


@pytest.mark.parametrize("record", [None, {}, {"name": "demo-media"}])
def test_of_a_lab_without_a_readable_record_its_name_and_its_pool_tell(
    here: LabsHere, record: dict[str, Any] | None
) -> None:
    here.record("demo-media", record)
    here.pool("nometal-demo-media", "/srv/labs")
    assert "storage pool nometal-demo-media" in here.judged(model_of(OTHER % "demo")).message
    mine = model_of(OTHER % "ha")
    mine["storage_pool"]["path"] = "/srv/labs/ha"
    finding = here.judged(mine)
    assert "directory /srv/labs/ha (its disks) by storage pool nometal-demo-media, as /srv/labs" in finding.message


def test_pools_of_the_lab_and_pools_that_are_no_directories_are_no_matter(here: LabsHere) -> None:
    mine = model_of(OTHER % "ha")
    pool = mine["storage_pool"]
    here.pool(pool["name"], pool["path"], pool["uuid"])
    here.pool("nometal-lvm", pool["path"], kind="logical")
    here.pool("default", "/var/lib/libvirt/images")
    assert here.judged(mine).severity == "ok"
