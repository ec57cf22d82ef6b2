"""bmh_vm: what is decided and refused by tables, and its XML by reading back what was written."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from lxml import etree

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Disk, Fleet, Nic, Vm, Volume
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe import firmware
from ansible_collections.nometal.ipi.plugins.module_utils._observe.domain_xml import Mark
from ansible_collections.nometal.ipi.plugins.module_utils._observe.firmware import Firmware
from ansible_collections.nometal.ipi.plugins.module_utils._observe.vm_host import Capabilities, Domain, Host, Pool
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import conflicts as vm_rules
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import leftovers as vm_leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import xml as edit
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.batch import Batch
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.declared import Declared
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.reading import declared_from
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.resource import LabVms, host_of
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import pending, plan
from ansible_collections.nometal.ipi.plugins.modules import bmh_vm as module

GOLDEN = sorted((Path(__file__).parents[1] / "lab" / "golden").glob("*.json"))
MIB = 1024**2
GIB = 1024**3
UUID = "0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e71"
DIRECTORY = "/var/lib/libvirt/images/nometal-demo"
SECURE = (("enrolled-keys", True), ("secure-boot", True))
VM = Vm(
    uuid=UUID,
    owner="demo",
    pool="nometal-demo",
    vcpus=2,
    memory_mib=1024,
    firmware="uefi",
    console="/var/log/libvirt/qemu/one-console.log",
    disks=(Disk("one-0.qcow2", "qcow2", "scsi", "NM0", rotational=False), Disk("one-1.raw", "raw", "virtio")),
    nics=(Nic("52:54:00:00:00:01", bridge="baremetal", boot_order=1), Nic("52:54:00:00:00:02", network="net")),
)
FLEET = Fleet({"one": VM}, {"one-0.qcow2": Volume("qcow2", GIB), "one-1.raw": Volume("raw", GIB)})
CHOICES = edit.Choices(DIRECTORY, "qemu", Firmware(efi=True, features=(("secure-boot", False),)))
CAPABLE = Capabilities(frozenset({"scsi", "virtio", "sata"}), frozenset({"maximum"}), tpm=True, most_vcpus=16)
HOST = Host(
    domains={},
    pool=Pool("nometal-demo", DIRECTORY, free_bytes=100 * GIB),
    networks={"net": True},
    bridges=frozenset({"baremetal"}),
    memory_mib=2048,
    capabilities={("q35", "qemu"): CAPABLE},
    firmware={("uefi", "q35"): Firmware(efi=True)},
    kvm_failure="there is no /dev/kvm",
)


def fleet(**volume: Any) -> Fleet:
    return replace(FLEET, volumes={**FLEET.volumes, "one-0.qcow2": replace(Volume("qcow2", GIB), **volume)})


@pytest.mark.parametrize(
    ("current", "steps"),
    [
        (None, ["define one", "create disk one-0.qcow2", "create disk one-1.raw"]),
        (FLEET, []),
        (Fleet({"one": VM}), ["create disk one-0.qcow2", "create disk one-1.raw"]),
        (replace(FLEET, vms={"one": replace(VM, owner=None)}), ["define one"]),
        (replace(FLEET, vms={"one": VM, "two": VM}), ["remove two"]),
        (fleet(size_bytes=GIB // 2), ["grow disk one-0.qcow2"]),
        (fleet(size_bytes=GIB * 2), ["recreate disk one-0.qcow2"]),
        (fleet(size_bytes=0), ["recreate disk one-0.qcow2"]),
        (fleet(format="raw"), ["recreate disk one-0.qcow2"]),
    ],
)
def test_what_differs_is_made_so_and_a_vm_before_its_disks(current: Fleet | None, steps: list[str]) -> None:
    assert [str(step) for step in plan(current, FLEET)] == steps


def test_what_runs_otherwise_is_pending_but_not_what_host_model_has_become() -> None:
    assert pending(VM, VM) == []
    assert pending(replace(VM, vcpus=1, firmware="bios"), VM) == ["vcpus", "firmware"]
    assert pending(replace(VM, cpu_mode="custom"), replace(VM, cpu_mode="host-model")) == []


def made(vm: Vm, choices: edit.Choices = CHOICES) -> Any:
    return etree.fromstring(edit.edit(edit.new("one", vm, choices), vm, choices))


@pytest.mark.parametrize(
    "vm",
    [
        VM,
        replace(VM, tpm=True, machine="pc-q35-7.2", domain_type="qemu", cpu_mode="host-model"),
        replace(VM, disks=(Disk("b", "raw", "sata", rotational=True), Disk("a", "raw", "nvme", "S")), nics=()),
    ],
)
def test_what_is_written_is_read_as_it_was_declared(vm: Vm) -> None:
    assert xml.vm_of(made(vm), DIRECTORY, vm) == vm


def test_a_new_vm_boots_from_its_disks_then_its_cards_then_the_cdrom() -> None:
    root = made(replace(VM, nics=tuple(replace(nic, boot_order=1) for nic in VM.nics)))
    order = {int(boot.get("order")): boot.getparent() for boot in root.iterfind("devices/*/boot")}
    kinds = [order[number].get("device") or order[number].tag for number in sorted(order)]
    assert kinds == ["disk", "disk", "interface", "interface", "cdrom"]


def test_a_card_without_boot_order_is_not_booted_from() -> None:
    cards = made(VM).findall("devices/interface")
    assert [card.find("boot") is not None for card in cards] == [True, False]


def test_where_boot_devices_are_listed_by_kind_none_is_numbered() -> None:
    root = made(replace(VM, disks=(), nics=()))
    for boot in root.iterfind("devices/*/boot"):
        boot.getparent().remove(boot)
    etree.SubElement(root.find("os"), "boot", dev="cdrom")
    assert "order=" not in edit.edit(root, VM, CHOICES)


@pytest.mark.parametrize("bus", ["scsi", "virtio", "sata"])
def test_a_new_cdrom_drive_is_beside_the_scsi_disks(bus: str) -> None:
    root = made(replace(VM, disks=(Disk("one-0.qcow2", "qcow2", bus),)))
    drive = xml.cdrom_of(root).getparent()
    assert dict(drive.find("target").attrib) == {"dev": "sdz", "bus": "scsi"}
    assert (drive.find("address").get("target"), drive.find("address").get("unit")) == ("1", "0")
    assert [found.get("model") for found in root.iterfind("devices/controller[@type='scsi']")] == ["virtio-scsi"]


@pytest.mark.parametrize("medium", ["", "<source file='/iso'/>"])
def test_a_cdrom_drive_that_is_there_stays_where_it_is(medium: str) -> None:
    vm = replace(VM, disks=(Disk("one-0.qcow2", "qcow2", "virtio"),))
    root = made(vm)
    root.find("devices").remove(root.find("devices/controller"))
    drive = xml.cdrom_of(root).getparent()
    former = f"<disk type='file' device='cdrom'>{medium}<target dev='sdz' bus='sata'/><boot order='2'/></disk>"
    root.find("devices").replace(drive, etree.fromstring(former))
    again = etree.fromstring(edit.edit(root, replace(vm, vcpus=7), CHOICES))
    kept = xml.cdrom_of(again).getparent()
    assert [(part.tag, *part.attrib.items()) for part in kept] == [
        (part.tag, *part.attrib.items()) for part in etree.fromstring(former)
    ]
    assert again.find("devices/controller") is None


def test_sata_disks_keep_off_the_port_of_the_cdrom() -> None:
    disks = tuple(Disk(f"{number}", "raw", "sata") for number in range(7))
    root = made(replace(VM, disks=disks))
    names = [target.get("dev") for target in root.iterfind("devices/disk[@device='disk']/target")]
    assert names == ["sda", "sdb", "sdc", "sdd", "sde", "sdg", "sdh"]


def test_disks_beside_many_of_others_find_a_target() -> None:
    root = made(replace(VM, disks=tuple(Disk(f"{number}", "raw", "scsi") for number in range(30))))
    names = [target.get("dev") for target in root.iterfind("devices/disk[@device='disk']/target")]
    assert names[-5:] == ["sdaa", "sdab", "sdac", "sdad", "sdae"]


def test_a_changed_disk_keeps_its_place() -> None:
    root = made(VM)
    changed = replace(VM, disks=(replace(VM.disks[0], serial="NEW"), replace(VM.disks[1], bus="scsi")))
    again = etree.fromstring(edit.edit(root, changed, CHOICES))
    assert xml.vm_of(again, DIRECTORY, changed) == changed
    found = xml.own_disks(again, DIRECTORY, ["one-0.qcow2", "one-1.raw"])
    assert [element.find("target").get("dev") for element in found.values()] == ["sda", "sdb"]
    assert [element.find("boot").get("order") for element in found.values()] == ["1", "2"]


def test_firmware_is_written_when_it_is_declared_otherwise_and_only_then() -> None:
    root = made(VM)
    etree.SubElement(root.find("os"), "loader").text = "the BMC's"
    assert "the BMC's" in edit.edit(root, VM, CHOICES)
    secure = replace(CHOICES, firmware=Firmware(efi=True, features=SECURE, smm=True))
    text = edit.edit(root, replace(VM, firmware="uefi-secure"), secure)
    assert "the BMC's" not in text
    assert '<feature name="enrolled-keys" enabled="yes"/>' in text
    assert '<smm state="on"/>' in text
    text = edit.edit(root, replace(VM, firmware="bios"), replace(CHOICES, firmware=Firmware()))
    assert "smm" not in text
    assert "firmware=" not in text.partition("<os")[2].partition("</os>")[0]


def test_the_mark_remembers_disks_that_are_no_longer_declared() -> None:
    root = made(VM)
    edit.edit(root, replace(VM, disks=VM.disks[:1], nics=VM.nics[:1]), CHOICES)
    assert xml.mark_of(root) == Mark(
        "demo", "uefi", "nometal-demo", ("one-0.qcow2", "one-1.raw"), ("52:54:00:00:00:01",)
    )
    assert len(root.findall("devices/interface")) == 1


def arguments(*vms: dict[str, Any], **others: Any) -> dict[str, Any]:
    checked = ArgumentSpecValidator(module.ARGUMENTS).validate({"lab": "demo", "pool": "p", "vms": list(vms), **others})
    assert not checked.error_messages
    return checked.validated_parameters


def nic(**others: Any) -> dict[str, Any]:
    return {"mac": "52:54:00:00:00:01", "bridge": "b", **others}


def mistakes(*vms: dict[str, Any], **others: Any) -> list[str]:
    return [str(found) for found in declared_from(arguments(*vms, **others), Declared)[1]]


def item(**others: Any) -> dict[str, Any]:
    return {"vm_name": "one", "uuid": UUID, "vcpus": 1, "memory_mib": 1024, **others}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_the_nodes_of_the_model_are_taken_as_they_are(golden: Path) -> None:
    nodes = json.loads(golden.read_text(encoding="utf-8"))["nodes"]
    declared, found = declared_from(arguments(*nodes), Declared)
    assert declared
    assert found == []
    assert len(declared.vms) == len(nodes)
    for node, vm in zip(nodes, declared.vms):
        host = host_of(vm, [])
        assert host["boot_mac"] == node["boot_mac"]
        assert host["root_device_hints"] == node["root_device_hints"]
        assert host["bmc_address"] == node["bmc"]["address"]


@pytest.mark.parametrize(
    ("others", "complaints"),
    [
        ({"vm_name": ""}, ["vms[0]: vm_name: must be up to 200 letters, digits, dots, hyphens and underscores"]),
        ({"vm_name": "../one"}, ["the first a letter or digit (got '../one')"]),
        ({"vm_name": "x" * 201}, ["the first a letter or digit (got 'xxx"]),
        ({"vm_name": "öne"}, ["vms[0]: vm_name: must be up to 200 letters"]),
        ({"name": ""}, ["one: name: must be a domain in lower case, such as lab.example.test (got '')"]),
        ({"name": "One_"}, ["one: name: must be a domain in lower case, such as lab.example.test (got 'One_')"]),
        ({"uuid": None}, ["one: uuid: missing; required with state=present"]),
        ({"uuid": ""}, ["one: uuid: must be a UUID, such as 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11 (got '')"]),
        ({"uuid": "demo"}, ["one: uuid: must be a UUID, such as 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11 (got 'demo')"]),
        ({"uuid": "0" * 32}, ["one: uuid: must be a UUID of a machine, not all zeros"]),
        ({"vcpus": 0}, ["one: vcpus: must be a whole number from 1 to 255 (got 0)"]),
        ({"vcpus": 256}, ["one: vcpus: must be a whole number from 1 to 255 (got 256)"]),
        ({"memory_mib": None}, ["one: memory_mib: missing; required with state=present"]),
        ({"memory_mib": 1}, ["one: memory_mib: must be a whole number from 128 to 16777216 (got 1)"]),
        ({"memory_mib": -5}, ["one: memory_mib: must be a whole number from 128 to 16777216 (got -5)"]),
        ({"memory_mib": 10**19}, ["one: memory_mib: must be a whole number from 128 to 16777216 (got a huge number)"]),
        ({"machine": "pc"}, ["which have a SATA drive for the BMC's media (got 'pc')"]),
        ({"machine": ""}, ["one: machine: must be q35 or a version of it such as pc-q35-7.2"]),
        (
            {"domain_type": "qemu", "cpu_mode": "host-passthrough"},
            ["one: cpu_mode: must be maximum for domain_type qemu, since it needs KVM (got 'host-passthrough')"],
        ),
        ({"disks": [{"size_bytes": MIB}] * 21}, ["one: disks: must have 0 to 20 items (got 21)"]),
        (
            {"disks": [{"size_bytes": 0}]},
            ["one: disks[0].size_bytes: must be a whole number from 1048576 to 70368744177664 (got 0)"],
        ),
        (
            {"disks": [{"size_bytes": -5}]},
            ["one: disks[0].size_bytes: must be a whole number from 1048576 to 70368744177664 (got -5)"],
        ),
        (
            {"disks": [{"size_bytes": 10**19}]},
            ["one: disks[0].size_bytes: must be a whole number from 1048576 to 70368744177664 (got a huge number)"],
        ),
        (
            {"disks": [{"size_bytes": MIB + 1}]},
            ["one: disks[0].size_bytes: must be a multiple of 512, the size of a sector (got 1048577)"],
        ),
        ({"disks": [{"size_bytes": MIB, "name": "a/b"}]}, ["first a letter or digit (got 'a/b')"]),
        ({"disks": [{"size_bytes": MIB, "name": ""}]}, ["one: disks[0].name: must be up to 200 letters"]),
        (
            {"disks": [{"size_bytes": MIB, "serial": "x" * 21}]},
            ["one: disks[0].serial: must be 1 to 20 letters, digits, hyphens, underscores (got 'xxx"],
        ),
        (
            {"disks": [{"size_bytes": MIB, "serial": ""}]},
            ["one: disks[0].serial: must be 1 to 20 letters, digits, hyphens, underscores (got '')"],
        ),
        (
            {"disks": [{"size_bytes": MIB, "bus": "virtio", "rotational": True}]},
            ["one: disks[0].rotational: must be left out: a disk shows it by the bus scsi or sata alone (got virtio)"],
        ),
        (
            {"disks": [{"size_bytes": MIB, "serial": "x"}] * 2},
            ["one: disks: must be unique (got serial x 2 times)"],
        ),
        ({"disks": [{"size_bytes": MIB, "name": "x"}] * 2}, ["one: disks: must be unique (got x 2 times)"]),
        (
            {"nics": [nic(mac="demo")]},
            ["one: nics[0].mac: must be six pairs of hex digits, such as 52:54:00:12:34:56 (got 'demo')"],
        ),
        (
            {"nics": [nic(mac="53:54:00:00:00:01")]},
            [
                (
                    "one: nics[0].mac: must be a unicast address, "
                    "whose first pair is an even number such as 52 (got '53:54:00:00:00:01')"
                )
            ],
        ),
        (
            {"nics": [nic(mac="00:00:00:00:00:00")]},
            [
                (
                    "one: nics[0].mac: must be a MAC address that a machine may have, "
                    "such as 52:54:00:12:34:56 (got '00:00:00:00:00:00')"
                )
            ],
        ),
        ({"nics": [nic(bridge=None)]}, ["one: nics[0]: must have a network or a bridge (got neither)"]),
        ({"nics": [nic(network="n")]}, ["one: nics[0]: must have a network or a bridge (got both)"]),
        (
            {"nics": [nic(bridge="")]},
            ["one: nics[0].bridge: must be an interface name: letters, digits, dot, hyphen, underscore (got '')"],
        ),
        (
            {"nics": [nic(bridge="../x")]},
            ["one: nics[0].bridge: must be an interface name: letters, digits, dot, hyphen, underscore (got '../x')"],
        ),
        (
            {"nics": [nic(bridge="b" * 16)]},
            ["one: nics[0].bridge: must be at most 15 characters long, the limit of Linux (got 'bbbb"],
        ),
        (
            {"nics": [nic(bridge=None, network="../x")]},
            ["one: nics[0].network: must be the name of a libvirt network, such as nometal-demo (got '../x')"],
        ),
        (
            {"nics": [nic(bridge=None, network="")]},
            ["one: nics[0].network: must be the name of a libvirt network, such as nometal-demo (got '')"],
        ),
        ({"nics": [nic(boot_order=0)]}, ["one: nics[0].boot_order: must be a whole number from 1 to 32 (got 0)"]),
        (
            {"nics": [nic(boot_order=10**19)]},
            ["one: nics[0].boot_order: must be a whole number from 1 to 32 (got a huge number)"],
        ),
        (
            {"nics": [nic(boot_order=1), nic(boot_order=1, mac="52:54:00:00:00:02")]},
            ["one: nics: must each have another boot_order (got 1 2 times)"],
        ),
        (
            {"nics": [nic(mac=f"52:54:00:00:00:{at:02x}") for at in range(33)]},
            ["one: nics: must have 0 to 32 items (got 33)"],
        ),
        (
            {"boot_mac": "52:54:00:00:00:01"},
            ["one: boot_mac: must be the MAC of one of its nics (got '52:54:00:00:00:01')"],
        ),
        ({"boot_mac": ""}, ["one: boot_mac: must be six pairs of hex digits, such as 52:54:00:12:34:56 (got '')"]),
        (
            {"root_device_hints": {"serialnumber": "x"}},
            ["root_device_hints.serialnumber: unknown key; did you mean serialNumber?"],
        ),
        (
            {"root_device_hints": {"minSizeGigabytes": 0}},
            ["one: root_device_hints.minSizeGigabytes: must be a whole number from 1 to 65536 (got 0)"],
        ),
        ({"bmc": {"adress": "x"}}, ["one: bmc.adress: unknown key; did you mean address?"]),
        ({"bmc": {"zzz": 1}}, ["one: bmc.zzz: unknown key; known keys: address, host, port, protocol"]),
        (
            {"bmc": {"address": "192.0.2.1", "port": 0, "host": ""}},
            [
                "one: bmc.host: must be one line of printable text (got '')",
                "one: bmc.port: must be a whole number from 1 to 65535 (got 0)",
                "one: bmc.address: must be a URL, such as ipmi://192.168.126.1:6230 (got '192.0.2.1')",
            ],
        ),
    ],
)
def test_what_is_wrong_on_any_host_is_named_in_a_line_each(others: dict[str, Any], complaints: list[str]) -> None:
    found = mistakes(item(**others))
    assert len(found) == len(complaints), found
    assert all(complaint in text for complaint, text in zip(complaints, found)), found


@pytest.mark.parametrize("pool", ["", "../p", ".p", "a\nb", "p" * 201])
def test_a_wrong_pool_is_named(pool: str) -> None:
    shown = repr(pool if len(pool) <= 60 else f"{pool[:60]}...")
    assert mistakes(item(), pool=pool) == [
        f"pool: must be the name of a storage pool, such as nometal-demo (got {shown})"
    ]


def test_what_may_be_there_once_names_all_that_have_it() -> None:
    same = {"uuid": UUID.upper(), "disks": [{"size_bytes": MIB, "name": "d"}], "nics": [nic(mac="52:54:00:00:00:0A")]}
    two = item(**{**same, "vm_name": "two", "nics": [nic(mac="52:54:00:00:00:0a")]})
    assert mistakes(item(**same), item(**same), two, pool=None) == [
        "pool: missing; must be the storage pool for the disks, such as nometal-demo",
        "one: vm_name: must be unique (got one 2 times)",
        f"one, two: uuid: must be unique (got {UUID} 3 times)",
        "one, two: nics: must be unique (got MAC 52:54:00:00:00:0a 3 times)",
        "one, two: disks: must be unique (got d 3 times)",
    ]


def told(host: Host, wanted: Fleet = FLEET, *, recreate: bool = False) -> list[str]:
    return [str(problem) for problem in vm_rules.problems(host, wanted, recreate=recreate)]


def domain(name: str = "one", **others: Any) -> dict[str, Domain]:
    mark = Mark("demo", "uefi", "nometal-demo", ("one-0.qcow2", "one-1.raw"))
    there = Domain(name=name, uuid=UUID, mark=mark, macs=(), root=made(VM))
    return {name: replace(there, **others)}


MADE_FOR = dict.fromkeys(FLEET.volumes, f"demo {UUID}")


def with_volumes(**others: Any) -> Host:
    pool = replace(HOST.pool, volumes=FLEET.volumes, **others)  # type: ignore[type-var]  # the pool is there
    return replace(HOST, pool=pool)


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        (replace(HOST, networks={}), "one: nics: network net is missing"),
        (replace(HOST, networks={"net": False}), "one: nics: network net is not started: role nometal.ipi.lab_network"),
        (replace(HOST, bridges=frozenset()), "one: nics: bridge baremetal is missing"),
        (replace(HOST, memory_mib=1000), "one: memory_mib: 1024 MiB exceed the host's 1000 MiB"),
        (replace(HOST, pool=None), "pool: nometal-demo is missing"),
        (
            replace(HOST, pool=Pool("nometal-demo", "/x", lost=True)),
            "pool: nometal-demo has lost its directory /x: role",
        ),
        (
            replace(HOST, pool=Pool("nometal-demo", "", active=False)),
            "pool: nometal-demo is not started: role nometal.ipi.host_prep (playbooks/host.yml) starts",
        ),
        (
            replace(HOST, pool=Pool("nometal-demo", "", kind="logical")),
            "pool: nometal-demo must be of type dir, fs, netfs (got logical)",
        ),
        (replace(HOST, pool=Pool("p", "/p", free_bytes=GIB // 2)), "one: disks: 0.5 GiB are free in pool p (/p)"),
        (
            replace(HOST, firmware={("uefi", "q35"): None}),
            "one: firmware: no descriptor in /usr/share/qemu/firmware offers uefi",
        ),
        (
            replace(HOST, capabilities={("q35", "qemu"): Capabilities(refusal="no")}),
            "one: machine: q35 of type qemu is not available: no",
        ),
        (
            replace(HOST, capabilities={("q35", "qemu"): replace(CAPABLE, buses=frozenset())}),
            "one: disks: the bus scsi is not available with this libvirt",
        ),
        (replace(HOST, domains=domain(mark=Mark("other"))), "one: vm_name: is owned by other, not by demo"),
        (replace(HOST, domains=domain(mark=Mark())), "one: vm_name: is owned by others, not by demo"),
        (replace(HOST, domains=domain(uuid="other")), f"one: uuid: is {UUID}, and the VM has other"),
        (replace(HOST, domains=domain("two")), f"one: uuid: {UUID} is VM two's"),
        (
            replace(HOST, domains=domain("two", macs=("52:54:00:00:00:02",))),
            "one: nics: MAC 52:54:00:00:00:02 is VM two's",
        ),
        (
            replace(HOST, domains=domain(mark=Mark("demo", pool="p", disks=("x",)))),
            "one: pool: is nometal-demo, and the VM has its disks in p",
        ),
        (with_volumes(), "one: disks[0]: one-0.qcow2 exists in pool nometal-demo, and nothing shows"),
        (with_volumes(), "`virsh vol-delete --pool nometal-demo one-0.qcow2`"),
        (with_volumes(made_for={"one-0.qcow2": "other"}), "one-0.qcow2 exists in pool nometal-demo, and nothing shows"),
        (
            replace(with_volumes(made_for=MADE_FOR), domains=domain("two")),
            "one: disks[1]: one-1.raw in pool nometal-demo is in use by VM two",
        ),
    ],
)
def test_what_is_wrong_on_this_host_is_named(host: Host, complaint: str) -> None:
    assert any(complaint in text for text in told(host)), told(host)


def test_disks_in_a_stopped_pool_go_only_where_it_is_a_mere_directory() -> None:
    stopped = Pool("p", "/p", active=False)
    assert list(vm_rules.stopped_pools([stopped, replace(stopped, kind="netfs", active=True)])) == []
    [problem] = vm_rules.stopped_pools([replace(stopped, kind="netfs")])
    assert str(problem).startswith("pool: p is not started, so the disks in it cannot be removed: `virsh pool-start p`")


def test_a_host_that_has_all_of_it_is_told_nothing() -> None:
    assert told(HOST) == []
    assert told(replace(with_volumes(), domains=domain())) == []
    assert told(with_volumes(made_for=MADE_FOR)) == []  # somebody has undefined it
    assert told(replace(HOST, domains=domain(mark=Mark("demo")))) == []  # it has had no disks, and so no pool
    assert told(replace(HOST, firmware={("bios", "q35"): Firmware()})) == []  # for another VM


def test_what_a_machine_of_this_host_cannot_have_is_named() -> None:
    wanted = Fleet({"one": replace(VM, tpm=True, cpu_mode="host-model", vcpus=17, disks=(), nics=())})
    poor = replace(HOST, capabilities={("q35", "qemu"): replace(CAPABLE, tpm=False)})
    assert told(poor, wanted) == [
        "one: cpu_mode: host-model is not available with type qemu; available: maximum",
        "one: tpm: this host emulates none; install swtpm",
        "one: vcpus: 17 exceed the 16 that machine q35 can have",
    ]


def test_vms_of_the_list_may_swap_their_macs() -> None:
    other = replace(VM, uuid="other", disks=(), nics=(replace(VM.nics[0], mac="52:54:00:00:00:03"),))
    there = {**domain(macs=("52:54:00:00:00:03",)), **domain("two", uuid="other", macs=("52:54:00:00:00:01",))}
    assert (
        told(replace(HOST, domains=there, memory_mib=9999), Fleet({"one": replace(VM, disks=()), "two": other})) == []
    )


def test_vms_that_are_too_much_together_are_told_from_where_on() -> None:
    three = Fleet({name: replace(VM, uuid=name, disks=(), nics=()) for name in ("a", "b", "c")})
    [text] = told(HOST, three)
    assert text.startswith("c: memory_mib: the VMs need 3072 MiB together, and the host has 2048 MiB: less memory")


@pytest.mark.parametrize(
    ("recreate", "live", "mounted", "complaint"),
    [
        (False, None, (), "`recreate: true` (of role node_vms: -e node_vms_recreate=true)"),
        (True, "it runs", (), "power the VM off by its BMC"),
        (True, None, ("one-0.qcow2",), f"unmount {DIRECTORY}/one-0.qcow2 before the disk is made anew"),
        (True, None, (), ""),
    ],
)
def test_a_disk_that_would_shrink(recreate: bool, live: str | None, mounted: tuple[str, ...], complaint: str) -> None:
    host = replace(with_volumes(mounted=frozenset(mounted)), domains=domain(live=live))
    found = told(host, replace(FLEET, volumes=fleet(size_bytes=512).volumes), recreate=recreate)
    assert [complaint in text for text in found] == ([True] if complaint else [])


@pytest.mark.parametrize(
    ("vm", "there", "failure", "expected"),
    [
        (VM, {}, "", "kvm"),
        (VM, {}, "it hung", "qemu"),
        (VM, domain(), "", "qemu"),
        (replace(VM, domain_type="kvm"), domain(), "", "kvm"),
    ],
)
def test_the_domain_type_is_decided_once(vm: Vm, there: dict[str, Domain], failure: str, expected: str) -> None:
    assert vm_rules.domain_type(replace(HOST, domains=there, kvm_failure=failure), "one", vm) == expected


def descriptor(directory: Path, name: str, *features: str, **others: Any) -> None:
    image = directory / "image.fd"
    image.touch()
    content = {
        "interface-types": ["uefi"],
        "mapping": {"device": "flash", "executable": {"filename": str(others.pop("image", image))}},
        "targets": [{"architecture": "x86_64", "machines": ["pc-q35-*"]}],
        "features": features,
        **others,
    }
    (directory / name).write_text(json.dumps(content), encoding="utf-8")


def test_firmware_is_what_the_descriptors_offer(tmp_path: Path) -> None:
    own, shipped = tmp_path / "etc", tmp_path / "usr"
    for directory in (own, shipped):
        directory.mkdir()
    where = (own, shipped)
    assert firmware.find("uefi", "q35", where) is None
    assert firmware.find("bios", "q35", where) == Firmware()

    descriptor(shipped, "50.json", "secure-boot", "requires-smm")
    assert firmware.find("uefi-secure", "q35", where) is None
    assert firmware.find("uefi", "q35", where) == Firmware(efi=True, features=(("enrolled-keys", False),), smm=True)
    descriptor(shipped, "60.json")
    assert firmware.find("uefi", "q35", where) == Firmware(efi=True, features=(("secure-boot", False),))
    descriptor(shipped, "40.json", "secure-boot", "enrolled-keys", "requires-smm")
    assert firmware.find("uefi-secure", "pc-q35-9.0", where) == Firmware(efi=True, features=SECURE, smm=True)
    assert firmware.find("uefi-secure", "pc-i440fx-9.0", where) is None

    (own / "40.json").touch()  # the administrator has hidden it
    assert firmware.find("uefi-secure", "q35", where) is None
    (own / "40.json").unlink()
    descriptor(shipped, "40.json", "secure-boot", "enrolled-keys", image="/none")
    assert firmware.find("uefi-secure", "q35", where) is None


def test_what_runs_have_left_goes_but_not_what_runs(tmp_path: Path) -> None:
    name, other = "demo-control-plane-0-and-more", "demo-control-plane"
    gone, alive, theirs = (f"domain-{run}" for run in (f"1-{name[:20]}", f"12-{name[:20]}", f"3-{other}"))
    for directory in (gone, alive, theirs, f"domain-x-{name[:20]}"):
        (tmp_path / directory).mkdir()
    (tmp_path / gone / "master-key.aes").touch()
    vm_leftovers.forget_runs(name, lambda: [12], [tmp_path, tmp_path / "none"])
    assert {path.name for path in tmp_path.iterdir()} == {alive, theirs, f"domain-x-{name[:20]}"}


def test_all_logs_of_a_vm_go_and_no_other(tmp_path: Path) -> None:
    ours = {"one.log", "one.log.0", "one-console.log", "one-console.log.12", "one-swtpm.log"}
    theirs = {"one.log.log", "one.log.0.log", "one-console.log.log", "one-1.log", "two.log"}
    for name in ours | theirs:
        (tmp_path / name).touch()
    vm_leftovers.forget_logs("one", tmp_path, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == theirs


def test_steps_of_a_kind_run_together_and_the_next_kind_waits_for_them() -> None:
    batch, seen = Batch(), list[str]()
    for step in (Step("define", "a"), Step("define", "b"), Step("create disk", "a")):
        batch.add(step, partial(seen.append, str(step)))
    batch.finish()
    assert sorted(seen[:2]) == ["define a", "define b"]
    assert seen[2] == "create disk a"


def test_what_fails_is_said_for_each_and_ends_it() -> None:
    def fail() -> None:
        raise OperatorError("no")

    batch = Batch()
    for name in ("a", "b"):
        batch.add(Step("define", name), fail)
    with pytest.raises(OperatorError, match="define a: no\ndefine b: no"):
        batch.add(Step("create disk", "a"), lambda: pytest.fail("it was not to begin"))
    batch.finish()


def test_an_error_of_our_own_is_not_taken_for_the_operators() -> None:
    batch = Batch()
    batch.add(Step("define", "a"), partial(int, "a"))
    with pytest.raises(ValueError, match="invalid literal"):
        batch.finish()


def test_check_mode_on_a_host_without_libvirt_foresees_all_steps(tmp_path: Path) -> None:
    nowhere = f"qemu+unix:///system?socket={tmp_path}/none"
    params = arguments(item(disks=[{"size_bytes": MIB}]), libvirt_uri=nowhere)
    result = LabVms.run(params, check_mode=True)
    assert result["steps"] == ["define one", "create disk one-0.qcow2"]
    assert result["vms"][0]["uuid"] == UUID
    with pytest.raises(OperatorError, match="Nothing answers for qemu"):
        LabVms.run(params, check_mode=False)
    with pytest.raises(OperatorError, match="one: vcpus: missing"):
        LabVms.run(arguments(item(vcpus=None), libvirt_uri=nowhere), check_mode=True)
