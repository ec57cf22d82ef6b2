# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes and their BMCs have shown, against what the lab says. Pure."""

from __future__ import annotations

import errno
import ipaddress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._agent.redfish import NOTHING_HEARD
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.judge_bootstrap import (
    few,
    foreign_servers,
    given_by,
    names_check,
)
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    OK,
    Check,
    Observations,
    compared,
    plain,
    skipped,
    verdict,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BOOT_MODES, Firmware, NetworkRole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab, Node, Provisioning

    Report = Mapping[str, Any]

READ_ONLY = (errno.EROFS, errno.EPERM, errno.EACCES)
KERNEL_MIB = 192
"""What of a VM's memory the firmware and the kernel have for themselves, at most."""
SLOW_MS = 10.0
"""What etcd can live with, for 99 of 100 writes."""
OF_BMC = {
    "BMC answers": ("it answers without a login", "bmc"),
    "BMC login": ("its own account is let in", "login"),
    "wrong password refused": ("it is refused", "wrong password"),
    "other VMs hidden": ("404 for VMs that are not its own", "confinement"),
    "power and media": (
        "it switches, inserts, sets the boot device",
        "power off",
        "insert",
        "boot from medium",
        "power on",
    ),
}
"""What is expected, and the steps that show it."""
AFTER = ("power off again", "eject", "boot from disk", "power on again")
STAGES = {
    "BMC answers": ("bmc",),
    "boots from its medium": ("booted from medium",),
    "boots from its disk": (*AFTER, "booted from disk"),
}


def judge(lab: Lab, node: Node, observed: Observations, *, can_secure_boot: bool = True) -> Iterator[Check]:
    who = node.name
    for check, (expected, *steps) in OF_BMC.items():
        step = observed.step(who, *steps)
        if step:
            yield verdict(check, who, _trouble(step), expected, str(step["said"]), **_failure(step))
    yield from _from_medium(lab, node, observed, can_secure_boot=can_secure_boot)
    yield from _from_disk(node, observed)
    yield from _not_tried(who, observed)


def _not_tried(who: str, observed: Observations) -> Iterator[Check]:
    reason = f"not tried: {observed.hindrance or 'what comes before it has failed'}"
    for check, steps in STAGES.items():
        if observed.step(who, *steps) is None:
            yield skipped(check, who, reason)


def _trouble(step: Mapping[str, Any]) -> str:
    if step["ok"]:
        return ""
    return f"{step['step']}: {step['said']}"


def _failure(step: Mapping[str, Any]) -> dict[str, Any]:
    return {} if step["ok"] else {"step": step["step"], "failure": step.get("failure", "")}


def _is_silent(step: Mapping[str, Any]) -> bool:
    return step.get("failure") == NOTHING_HEARD


def _from_medium(lab: Lab, node: Node, observed: Observations, *, can_secure_boot: bool) -> Iterator[Check]:
    who, step = node.name, observed.step(node.name, "booted from medium")
    if step is None:
        return
    said, expected = "" if step["ok"] else step["said"], "it boots the image and reports"
    yield verdict("boots from its medium", who, said, expected, silent=_is_silent(step))
    report = observed.report(who, "medium")
    if report is None:
        return
    yield from _identity(lab, node, report)
    if lab.provisioning and lab.boots_by_network:
        yield _provisioning_address(lab.provisioning, node, report)
    yield _firmware(node, report, can_secure_boot=can_secure_boot)
    yield _hardware(node, report)
    yield _disks(node, report)
    seen = observed.report(who, "seen")
    if seen is not None:
        yield from _surroundings(lab, node, seen["seen"], observed)
    written = observed.report(who, "written")
    if written is not None:
        yield from _writing(node, report, written)


def _identity(lab: Lab, node: Node, report: Report) -> Iterator[Check]:
    cards = {card["mac"]: card for card in report["cards"]}
    mac = machine_mac(node)
    if mac not in cards:
        yield compared("MAC address", node.name, mac, list(cards), macs=list(cards))
        return
    wanted = node.ips
    got = [
        address
        for address in cards[mac]["addresses"]
        if address in wanted or not _is_made_by_itself(address, cards[mac])
    ]
    servers = foreign_servers(lab, cards[mac])
    address = compared("address", node.name, wanted, got, addresses=got, servers=servers)
    yield replace(address, seen=address.seen + given_by(servers))
    names = {node.name, node.fqdn}
    hostname = report["hostname"]
    yield verdict("hostname", node.name, "" if hostname in names else hostname, node.name, hostname)


def _provisioning_address(told: Provisioning, node: Node, report: Report) -> Check:
    """Of the card that it boots from; who gives it is the bootstrap VM."""
    got = [address for card in report["cards"] if card["mac"] == node.boot_mac for address in card["addresses"]]
    network = ipaddress.ip_network(told.cidr)
    fitting = [address for address in got if ipaddress.ip_address(address) in network]
    return verdict("provisioning address", node.name, "" if fitting else plain(got) or "none", str(network), plain(got))


def machine_mac(node: Node) -> str:
    return next((nic.mac for nic in node.nics if nic.role == NetworkRole.MACHINE), node.boot_mac)


def _is_made_by_itself(address: str, card: Mapping[str, Any]) -> bool:
    """From a router's advertisement and the MAC address, beside the one that DHCP gives."""
    return ":" in address and "ff:fe" in address and address != (card["dhcp6"] or {}).get("address")


def _firmware(node: Node, report: Report, *, can_secure_boot: bool) -> Check:
    """A guest sees its boot mode alone."""
    wanted = node.firmware
    found = report["firmware"]
    if found == Firmware.UEFI and report["secure_boot"]:
        found = Firmware.UEFI_SECURE
    if wanted == Firmware.UEFI_SECURE and not can_secure_boot:
        return skipped("firmware", node.name, "the distribution's signed boot loaders are not to be had here")
    return compared("firmware", node.name, wanted, wanted if BOOT_MODES[found] == BOOT_MODES[wanted] else found)


def _hardware(node: Node, report: Report) -> Check:
    fewer = report["vcpus"] != node.vcpus
    less = not node.memory_mib * 0.9 - KERNEL_MIB <= report["memory_mib"] <= node.memory_mib
    found = f"{report['vcpus']} vCPUs, {report['memory_mib']} MiB"
    return verdict(
        "hardware",
        node.name,
        found if fewer or less else "",
        f"{node.vcpus} vCPUs, {node.memory_mib} MiB",
        found,
    )


def _disks(node: Node, report: Report) -> Check:
    wanted = [f"{disk.serial} ({disk.size_bytes // 1024**2} MiB)" for disk in node.disks]
    found = [f"{disk['serial']} ({disk['size_bytes'] // 1024**2} MiB)" for disk in report["disks"]]
    return compared("disks", node.name, wanted, found)


def _surroundings(lab: Lab, node: Node, seen: Mapping[str, Any], observed: Observations) -> Iterator[Check]:
    asked = {name for name, *_rest in seen["names"]}
    wanted = {name: addresses for name, addresses in lab.names().items() if name in asked}
    yield names_check("names", node.name, wanted, seen["names"])
    never_up = {ip for other in lab.nodes if not observed.report(other.name, "medium") for ip in other.ips}
    silent = {
        address: f"{_who_is(lab, address)}: {finding}"
        for address, finding in seen["peers"].items()
        if finding and address not in never_up
    }
    asked_of = [address for address in seen["peers"] if address not in never_up]
    rest = f"; {len(never_up)} of nodes that are not up were left out" if never_up else ""
    wanted_answers = f"{len(asked_of)} addresses answer{rest}"
    yield verdict("other nodes", node.name, few([*silent.values()]), wanted_answers, addresses=[*silent])
    broken = [f"{url}: {finding}" for url, finding in seen["vips"].items() if finding]
    urls = [url for url, error in seen["vips"].items() if error]
    expected = f"{', '.join(lab.all_vips)} lead to the bootstrap VM"
    yield verdict("virtual addresses", node.name, few(broken), expected, urls=urls)


def _who_is(lab: Lab, address: str) -> str:
    name = next((other.name for other in lab.nodes if address in other.ips), "the host")
    return f"{name} ({address})"


def _writing(node: Node, report: Report, written: Mapping[str, Any]) -> Iterator[Check]:
    who = node.name
    chosen = next((disk for disk in report["disks"] if disk["device"] == written["device"]), None)
    told = ", ".join(f"{name} {value}" for name, value in (node.root_device_hints or {}).items()) or "the first disk"
    yield verdict("root disk", who, "" if chosen else "no disk is as the hints say", told, _disk_named(chosen))
    if chosen:
        device, said = written["device"], written.get("trouble", "")
        is_read_only = written.get("errno") in READ_ONLY
        yield verdict("disk written", who, said, f"{device} can be written", device=device, is_read_only=is_read_only)
    if written.get("syncs"):
        slow = written["syncs"][int(len(written["syncs"]) * 0.99)]
        late = f"; etcd wants less than {SLOW_MS:.0f} ms" if slow > SLOW_MS else ""
        yield Check("small writes", who, OK, f"etcd wants 99 of 100 within {SLOW_MS:.0f} ms", f"{slow:.1f} ms{late}")


def _disk_named(disk: Mapping[str, Any] | None) -> str:
    return f"{disk['device']}, serial {disk['serial']}" if disk else ""


def _from_disk(node: Node, observed: Observations) -> Iterator[Check]:
    who = node.name
    step = observed.step(who, *AFTER, "booted from disk")
    if step is None:
        return
    report = observed.report(who, "disk")
    if report is None:
        seen = "it booted its medium again" if observed.report(who, "medium again") else ""
        yield verdict(
            "boots from its disk",
            who,
            seen or _trouble(step) or "nothing heard",
            "it boots from its disk and reports",
            silent=not seen and (step["ok"] or _is_silent(step)),
        )
        return
    from_disk = report["medium"].startswith("/dev/") and not report["late"]
    yield verdict(
        "boots from its disk",
        who,
        "" if from_disk else f"it booted from {report['medium']}",
        "its disk",
        report["medium"],
    )
    again = [card["addresses"] for card in report["cards"] if card["mac"] == machine_mac(node)]
    if not again:  # another MAC address, as has been told
        return
    lost = [ip for ip in node.ips if not any(ip in addresses for addresses in again)]
    error = ", ".join(f"lacks {ip}" for ip in lost)
    yield verdict("address from its disk", who, error, ", ".join(node.ips), missing=lost)
