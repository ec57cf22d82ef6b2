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

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt import domain_edit as edit
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt import firmware, vm_rules
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.domain_xml import Mark
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.firmware import Firmware
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm import (
    Disk,
    Fleet,
    Nic,
    Vm,
    Volume,
    pending,
    plan,
)
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm_batch import Batch
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm_host import Capabilities, Domain, Host, Pool
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm_wanted import problems_of
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import Step
from ansible_collections.nometal.ipi.plugins.modules import bmh_vm as module

GOLDEN = sorted((Path(__file__).parents[1] / "lab" / "golden").glob("*.json"))
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
    networks=frozenset({"net"}),
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


def test_sata_disks_keep_off_the_port_of_the_cdrom() -> None:
    disks = tuple(Disk(f"{number}", "raw", "sata") for number in range(7))
    root = made(replace(VM, disks=disks))
    names = [target.get("dev") for target in root.iterfind("devices/disk[@device='disk']/target")]
    assert names == ["sda", "sdb", "sdc", "sdd", "sde", "sdg", "sdh"]


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
    checked = ArgumentSpecValidator(module.ARGUMENTS).validate(
        {"owner": "demo", "pool": "p", "vms": list(vms), **others}
    )
    assert not checked.error_messages
    return checked.validated_parameters


def item(**others: Any) -> dict[str, Any]:
    return {"vm_name": "one", "uuid": UUID, "vcpus": 1, "memory_mib": 1024, **others}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_the_nodes_of_the_model_are_taken_as_they_are(golden: Path) -> None:
    nodes = json.loads(golden.read_text(encoding="utf-8"))["nodes"]
    items = arguments(*nodes)["vms"]
    assert problems_of(items, "p") == []
    for node, given in zip(nodes, items):
        host = module.host_of(given, [])
        assert host["boot_mac"] == node["boot_mac"]
        assert host["root_device_hints"] == node["root_device_hints"]
        assert host["bmc_address"] == node["bmc"]["address"]


@pytest.mark.parametrize(
    ("others", "complaint"),
    [
        ({"vm_name": "../one"}, "../one: vm_name: up to 200 letters"),
        ({"uuid": None}, "one: uuid is missing"),
        ({"uuid": "demo"}, "one: uuid: demo is no UUID"),
        ({"vcpus": 0}, "one: vcpus: 1 or more is right"),
        ({"memory_mib": None}, "one: memory_mib is missing"),
        ({"machine": "pc"}, "one: machine: pc has no SATA drive"),
        ({"domain_type": "qemu", "cpu_mode": "host-passthrough"}, "one: cpu_mode: host-passthrough needs KVM"),
        ({"disks": [{"size_bytes": 512}] * 16}, "one: disks: 16 are too many"),
        ({"disks": [{"size_bytes": 100}]}, "one: disks[0].size_bytes: 100 is no multiple of 512 bytes"),
        ({"disks": [{"size_bytes": 512, "name": "a/b"}]}, "one: disks[0].name: a/b is no name of a volume"),
        ({"disks": [{"size_bytes": 512, "serial": "x" * 21}]}, "one: disks[0].serial: 1 to 20 letters"),
        ({"disks": [{"size_bytes": 512, "bus": "virtio", "rotational": True}]}, "cannot be shown by the bus virtio"),
        ({"disks": [{"size_bytes": 512, "serial": "x"}] * 2}, "one: serial x is there 2 times"),
        ({"nics": [{"mac": "demo", "bridge": "b"}]}, "one: nics[0].mac: demo is no MAC address"),
        ({"nics": [{"mac": "53:54:00:00:00:01", "bridge": "b"}]}, "is a multicast address"),
        ({"nics": [{"mac": "52:54:00:00:00:01"}]}, "one: nics[0]: either network or bridge is right"),
        ({"nics": [{"mac": "52:54:00:00:00:01", "bridge": "b", "boot_order": 0}]}, "boot_order: 1 or more is right"),
        ({"nics": [{"mac": "52:54:00:00:00:01", "bridge": "b", "boot_order": 1}] * 2}, "two have boot_order 1"),
        ({"boot_mac": "52:54:00:00:00:01"}, "one: boot_mac: no NIC has 52:54:00:00:00:01"),
    ],
)
def test_what_is_wrong_on_any_host_is_named(others: dict[str, Any], complaint: str) -> None:
    found = problems_of(arguments(item(**others))["vms"], "p")
    assert any(complaint in str(problem) for problem in found), found


def test_what_may_be_there_once_names_all_that_have_it() -> None:
    nic = {"mac": "52:54:00:00:00:0A", "bridge": "b"}
    same = {"uuid": UUID.upper(), "disks": [{"size_bytes": 512, "name": "d"}], "nics": [nic]}
    items = arguments(item(**same), item(**same), item(**{**same, "nics": [{**nic, "mac": nic["mac"].lower()}]}))["vms"]
    items[2]["vm_name"] = "two"
    assert [str(problem) for problem in problems_of(items, None)] == [
        "pool is missing: name the storage pool that the disks are to lie in",
        "one: the name one is there 2 times; once is right",
        f"one, two: uuid {UUID} is there 3 times; once is right",
        "one, two: MAC 52:54:00:00:00:0a is there 3 times; once is right",
        "one, two: disk d is there 3 times; once is right",
    ]


def told(host: Host, wanted: Fleet = FLEET, *, recreate: bool = False) -> list[str]:
    return [str(problem) for problem in vm_rules.problems(host, wanted, recreate=recreate)]


def domain(name: str = "one", **others: Any) -> dict[str, Domain]:
    mark = Mark("demo", "uefi", "nometal-demo", ("one-0.qcow2", "one-1.raw"))
    there = Domain(name=name, uuid=UUID, mark=mark, macs=(), root=made(VM))
    return {name: replace(there, **others)}


def with_volumes(**others: Any) -> Host:
    pool = replace(HOST.pool, volumes=FLEET.volumes, **others)  # type: ignore[type-var]  # the pool is there
    return replace(HOST, pool=pool)


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        (replace(HOST, networks=frozenset()), "one: network net is missing"),
        (replace(HOST, bridges=frozenset()), "one: bridge baremetal is missing"),
        (replace(HOST, memory_mib=1000), "one: 1024 MiB are more than the host's 1000 MiB"),
        (replace(HOST, pool=None), "storage pool nometal-demo is missing"),
        (replace(HOST, pool=Pool("nometal-demo", "", active=False)), "storage pool nometal-demo is not started"),
        (replace(HOST, pool=Pool("p", "/p", free_bytes=GIB // 2)), "one: 0.5 GiB are free in pool p (/p)"),
        (replace(HOST, firmware={("uefi", "q35"): None}), "one: firmware uefi: no descriptor"),
        (replace(HOST, capabilities={("q35", "qemu"): Capabilities(refusal="no")}), "of type qemu cannot be had: no"),
        (
            replace(HOST, capabilities={("q35", "qemu"): replace(CAPABLE, buses=frozenset())}),
            "no disks on the bus scsi",
        ),
        (replace(HOST, domains=domain(mark=Mark("other"))), "one: is not demo's but other's"),
        (replace(HOST, domains=domain(mark=Mark())), "one: is not demo's but somebody's"),
        (replace(HOST, domains=domain(uuid="other")), "one: has uuid other and keeps it"),
        (replace(HOST, domains=domain("two")), f"one: its uuid {UUID} is VM two's"),
        (replace(HOST, domains=domain("two", macs=("52:54:00:00:00:02",))), "its MAC 52:54:00:00:00:02 is VM two's"),
        (
            replace(HOST, domains=domain(mark=Mark("demo", pool="p", disks=("x",)))),
            "one: has its disks in pool p, not nometal-demo",
        ),
        (with_volumes(), "one: disk one-0.qcow2 exists in pool nometal-demo and is not this VM's"),
    ],
)
def test_what_is_wrong_on_this_host_is_named(host: Host, complaint: str) -> None:
    assert any(complaint in text for text in told(host)), told(host)


def test_a_host_that_has_all_of_it_is_told_nothing() -> None:
    assert told(HOST) == []
    assert told(replace(with_volumes(), domains=domain())) == []
    assert told(replace(HOST, domains=domain(mark=Mark("demo")))) == []  # it has had no disks, and so no pool
    assert told(replace(HOST, firmware={("bios", "q35"): Firmware()})) == []  # for another VM


def test_what_a_machine_of_this_host_cannot_have_is_named() -> None:
    wanted = Fleet({"one": replace(VM, tpm=True, cpu_mode="host-model", vcpus=17, disks=(), nics=())})
    poor = replace(HOST, capabilities={("q35", "qemu"): replace(CAPABLE, tpm=False)})
    assert told(poor, wanted) == [
        "one: cpu_mode host-model cannot be had with type qemu; maximum can",
        "one: tpm: this host emulates none; install swtpm",
        "one: vcpus: 17 are more than the 16 that machine q35 can have",
    ]


def test_vms_of_the_list_may_swap_their_macs() -> None:
    other = replace(VM, uuid="other", disks=(), nics=(replace(VM.nics[0], mac="52:54:00:00:00:03"),))
    there = {**domain(macs=("52:54:00:00:00:03",)), **domain("two", uuid="other", macs=("52:54:00:00:00:01",))}
    assert (
        told(replace(HOST, domains=there, memory_mib=9999), Fleet({"one": replace(VM, disks=()), "two": other})) == []
    )


def test_vms_that_are_too_much_together_are_told_from_where_on() -> None:
    three = Fleet({name: replace(VM, uuid=name, disks=(), nics=()) for name in ("a", "b", "c")})
    assert told(HOST, three) == [
        "c: the VMs need 3072 MiB together, and the host has 2048 MiB: less memory, fewer VMs, or a larger host"
    ]


@pytest.mark.parametrize(
    ("recreate", "live", "complaint"),
    [
        (False, None, "lose what it holds with `recreate: true`"),
        (True, "it runs", "power the VM off by its BMC"),
        (True, None, ""),
    ],
)
def test_a_disk_that_would_shrink(recreate: bool, live: str | None, complaint: str) -> None:
    host = replace(with_volumes(), domains=domain(live=live))
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
    with pytest.raises(OperatorError, match="define a: no; define b: no"):
        batch.add(Step("create disk", "a"), lambda: pytest.fail("it was not to begin"))
    batch.finish()


def test_an_error_of_our_own_is_not_taken_for_the_operators() -> None:
    batch = Batch()
    batch.add(Step("define", "a"), partial(int, "a"))
    with pytest.raises(ValueError, match="invalid literal"):
        batch.finish()


def test_check_mode_on_a_host_without_libvirt_foresees_all_steps(tmp_path: Path) -> None:
    nowhere = f"qemu+unix:///system?socket={tmp_path}/none"
    params = arguments(item(disks=[{"size_bytes": 512}]), libvirt_uri=nowhere)
    result = module.run(params, check_mode=True)
    assert result["steps"] == ["define one", "create disk one-0.qcow2"]
    assert result["vms"][0]["uuid"] == UUID
    with pytest.raises(OperatorError, match="Nothing answers for qemu"):
        module.run(params, check_mode=False)
    with pytest.raises(OperatorError, match="one: vcpus is missing"):
        module.run(arguments(item(vcpus=None), libvirt_uri=nowhere), check_mode=True)
