# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import FREE, blocker, ok
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.ports import Taken


def judge_ports(taken: tuple[Taken, ...], needs: Needs) -> Finding:
    strange = [busy for busy in taken if not _is_own(busy, needs)]
    conflicts = [f"{busy.port} by {', '.join(map(str, busy.holders)) or 'an unknown process'}" for busy in strange]
    if conflicts:
        return blocker(
            "ports.in-use",
            f"in use: {'; '.join(conflicts[:4])}",
            "Stop that service, bind it to its own addresses only, or use another port for the lab. "
            "For the dnsmasq of another libvirt network, use another machine_network.cidr.",
            ports=[str(busy.port) for busy in strange],
        )
    return ok("ports.free", f"{len(needs.ports)} requested: {FREE}", requested=len(needs.ports))


def _is_own(busy: Taken, needs: Needs) -> bool:
    names = [*(network.name for network in needs.networks), *busy.own_networks]
    marks = [*needs.own_processes, *(f"/dnsmasq/{name}.conf" for name in names)]
    return bool(busy.holders) and all(any(mark in holder.marks for mark in marks) for holder in busy.holders)
