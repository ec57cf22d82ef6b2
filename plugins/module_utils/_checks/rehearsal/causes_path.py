# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is broken between the two bridges: nothing of the lab reaches anything then. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.cause import Facts, Look
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Check
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab, VethEnd

NETWORK = "playbooks/network.yml repairs it."
CHECKS = (
    *("installer's bridge", "address", "address from its disk", "DHCP servers", "gateway"),
    *("names", "reverse names", "names on the host", "full-size frames", "way out"),
    *("virtual addresses", "other nodes", "BMC answers", "boots from its medium", "boots from its disk"),
)
STOPPED, GONE, DOWN, ELSEWHERE, NO_BRIDGE = (
    *("path.network-stopped", "path.link-gone", "path.link-down", "path.link-elsewhere"),
    "path.bridge-down",
)


def is_broken_by(code: str) -> Look:
    def look(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
        found, facts = next(_broken(lab, evidence), ("", None))
        return facts if found == code else None

    return look


def _broken(lab: Lab, evidence: Evidence) -> Iterator[tuple[str, Mapping[str, Any]]]:
    network = lab.machine_network
    bridges = [network.bridge, lab.bridge]
    if not evidence.networks.get(network.name):
        yield STOPPED, {"network": network.name}
    for end in ends(lab):
        name, link = end.name, evidence.links.get(end.name)
        if link is None:
            yield GONE, {"link": name, "bridges": bridges}
        elif not link.up:
            yield DOWN, {"link": name}
        elif link.master != end.bridge:
            yield ELSEWHERE, {"link": name, "on": link.master or "no bridge", "bridge": end.bridge}
    for bridge in bridges:
        if bridge not in evidence.links or not evidence.links[bridge].up:
            yield NO_BRIDGE, {"bridge": bridge}


def ends(lab: Lab) -> list[VethEnd]:
    return [end for pair in lab.veth_pairs for end in pair.ends]


ROWS = tuple(
    Cause(code, CHECKS, is_broken_by(code), message, NETWORK)
    for code, message in (
        (STOPPED, "libvirt network {network} is not running."),
        (GONE, "Link {link} is gone, which ties {bridges[0]} and {bridges[1]} together."),
        (DOWN, "Link {link} is down."),
        (ELSEWHERE, "Link {link} is on {on} rather than on {bridge}."),
        (NO_BRIDGE, "Bridge {bridge} is down or gone."),
    )
)
