# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .host import output_of, program, text_if_there
from .needs import Needs
from .verdict import Verdict, ok, warning


@dataclass(frozen=True)
class Firewalld:
    running: bool
    default_zone: str = ""
    zones: tuple[str, ...] = ()


def measure_firewalld(_needs: Needs) -> Firewalld:
    firewall_cmd = program("firewall-cmd")
    if not firewall_cmd or not _runs("firewalld"):
        return Firewalld(running=False)
    zones = output_of(firewall_cmd, "--get-zones").split()
    return Firewalld(True, output_of(firewall_cmd, "--get-default-zone").strip(), tuple(zones))


def _runs(name: str) -> bool:
    return any(text_if_there(comm) == name for comm in Path("/proc").glob("[0-9]*/comm"))


def judge_firewalld(found: Firewalld, needs: Needs) -> Verdict:
    if not found.running:
        return ok("firewalld does not run")
    measured = f"firewalld runs, default zone {found.default_zone}"
    if "libvirt" in found.zones:
        return ok(f"{measured}; the lab's bridges belong to its zone libvirt, where lab_network opens the BMC ports")
    if not needs.prepared:
        return ok(f"{measured}; zone libvirt comes with the packages")
    return warning(
        f"{measured}, without a zone libvirt",
        f"The lab's bridges fall into zone {found.default_zone}, which may refuse DHCP, DNS and the BMC: "
        "reload firewalld after installing libvirt.",
    )
