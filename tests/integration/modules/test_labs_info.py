"""The labs_info module on a real libvirtd: whose is what, and who uses what of whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd
from support.modules import run_beside

from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd

POOL = "<pool type='dir'><name>nometal-{lab}</name><uuid>{uuid}</uuid><target><path>/srv/{lab}</path></target></pool>"
NETWORK = (
    "<network><name>{lab}</name><metadata><nometal:network xmlns:nometal='urn:nometal:ipi' owner='{lab}'/>"
    "</metadata><bridge name='nm-{lab}'/></network>"
)
VM = (
    "<domain type='qemu'><name>{name}</name><metadata>{mark}</metadata><memory unit='MiB'>64</memory>"
    "<os><type arch='x86_64'>hvm</type></os><devices>{devices}</devices></domain>"
)
MARK = "<nometal:vm xmlns:nometal='urn:nometal:ipi' owner='{lab}'/>"
DISK = "<disk type='file'><source file='/srv/demo/{name}'/><target dev='vda' bus='virtio'/></disk>"


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        yield started


def pool_uuid(lab: str) -> str:
    return Identity(lab).uuid_of("storage-pool")


def labs(libvirtd: PrivateLibvirtd, home: Path, lab: str, **others: Any) -> dict[str, Any]:
    answer = run_beside(libvirtd, "labs_info", {"lab": lab, "home": str(home), "pool_uuid": pool_uuid(lab), **others})
    assert not answer["failed"]
    return answer


def define(libvirtd: PrivateLibvirtd, kind: str, text: str) -> None:
    libvirtd.run(["virsh", *([f"{kind}-define"] if kind else ["define"]), "/dev/stdin"], input=text)


def test_it_tells_labs_apart_and_what_others_use(libvirtd: PrivateLibvirtd, tmp_path: Path) -> None:
    for path in ("labs/demo", "labs/third", "bmc/other"):
        (tmp_path / path).mkdir(parents=True)
    for lab in ("demo", "other"):
        define(libvirtd, "pool", POOL.format(lab=lab, uuid=pool_uuid(lab)))
        define(libvirtd, "net", NETWORK.format(lab=lab))
    define(libvirtd, "pool", POOL.format(lab="stranger", uuid=pool_uuid("demo")[::-1].replace("-", "")))
    plugs = {"by-name": "network' ><source network='demo", "by-bridge": "bridge'><source bridge='nm-demo"}
    for name, plug in plugs.items():
        devices = f"<interface type='{plug}'/></interface>"
        define(libvirtd, "", VM.format(name=name, mark="", devices=devices))
    for lab in ("demo", "other"):
        disk, mark = DISK.format(name=lab), MARK.format(lab=lab)
        define(libvirtd, "", VM.format(name=f"{lab}-0", mark=mark, devices=disk))

    rehearsed = "<rehearsal xmlns='urn:nometal:ipi' owner='demo'/>"
    plugged = "<interface type='network'><source network='demo'/></interface>"
    define(libvirtd, "", VM.format(name="demo-stand-in", mark=rehearsed, devices=plugged))

    of_demo = labs(libvirtd, tmp_path, "demo")
    assert of_demo["registered"] == ["demo", "third"]
    others = [f"{tmp_path}/bmc/other", "VM other-0", "network other", "pool nometal-other"]
    assert of_demo["others"] == {"third": [f"{tmp_path}/labs/third"], "other": others}
    assert of_demo["in_use"] == [
        "volume other of pool nometal-demo is a disk of VM other-0 (lab other)",
        "VM by-bridge (no lab) is plugged into network demo",
        "VM by-name (no lab) is plugged into network demo",
    ]
    assert labs(libvirtd, tmp_path, "other")["in_use"] == []
    assert (of_demo["libvirt"], of_demo["missing"]) == ("", [])
    assert of_demo["in_libvirt"] == ["VM demo-0", "VM demo-stand-in", "network demo", "pool nometal-demo"]

    without_libvirt = labs(libvirtd, tmp_path, "demo", libvirt_uri="qemu:///system?socket=/run/none")
    assert "Nothing answers for qemu:///system?socket=/run/none" in without_libvirt["libvirt"]
    for key in ("own", "in_libvirt", "others", "labs"):  # by libvirt's own files
        assert without_libvirt[key] == of_demo[key]


def test_it_lists_all_labs_with_their_records(libvirtd: PrivateLibvirtd, tmp_path: Path) -> None:
    """A record that was damaged, or is of another lab, is told and proves nothing. What is no lab's name is none."""
    records: dict[str, Any] = {
        "good": {"domain": "good.example.test", "storage_pool": {"path": "/srv/good"}},
        "odd": [],
        "gone": None,
    }
    for lab, model in records.items():
        directory = tmp_path / "labs" / lab
        directory.mkdir(parents=True)
        text = json.dumps({"name": lab, **model}) if isinstance(model, dict) else "{" if lab == "odd" else None
        if text:
            (directory / "lab.json").write_text(text, encoding="utf-8")
    (tmp_path / "labs/.hidden").mkdir()
    (tmp_path / "labs/Upper").mkdir()
    (tmp_path / "labs/stolen").mkdir()
    stolen = {"name": "good", "storage_pool": {"path": "/srv/good"}}
    (tmp_path / "labs/stolen/lab.json").write_text(json.dumps(stolen), encoding="utf-8")
    libvirtd.run(["mkdir", "-p", "/etc/libvirt/hooks/nometal.d"])
    for name in ("rules.firewall", "names.resolver", "all_labs.resolver", "pair.veth", "old.veth"):
        owner = "# Lab: wired\n" if name == "pair.veth" else ""
        text = f"#!/bin/sh\n# Made by nometal.ipi for lab x.\n{owner}"
        libvirtd.path(f"/etc/libvirt/hooks/nometal.d/{name}").write_text(text, encoding="utf-8")
    libvirtd.path("/etc/libvirt/hooks/nometal.d/theirs.firewall").write_text("#!/bin/sh\n", encoding="utf-8")

    found = run_beside(libvirtd, "labs_info", {"home": str(tmp_path)})
    told = {lab["name"]: lab for lab in found["labs"]}
    of_files = {"good", "gone", "odd", "stolen", "rules", "names", "wired"}
    assert set(told) >= of_files
    assert not {".hidden", "Upper", "all_labs", "pair", "old", "theirs"} & set(told)
    assert (told["good"]["domain"], told["good"]["registered"]) == ("good.example.test", True)
    assert told["good"]["recorded"].endswith(" UTC")
    assert told["gone"]["record_problem"] == "none"
    assert told["odd"]["record_problem"].startswith("cannot be read")
    assert told["stolen"]["record_problem"] == "is not that of lab stolen"
    assert told["wired"]["has"] == ["veth pair pair"]
    assert "good (good.example.test): recorded" in " ".join(found["table"])

    paths = {lab: labs(libvirtd, tmp_path, lab)["storage_pool"]["path"] for lab in ("good", "stolen")}
    assert paths == {"good": "/srv/good", "stolen": "/var/lib/libvirt/images/nometal-stolen"}
    refused = run_beside(libvirtd, "labs_info", {"lab": "../good", "home": str(tmp_path)})
    assert refused["failed"]
    assert "'../good' is not the name of a lab" in refused["msg"]
