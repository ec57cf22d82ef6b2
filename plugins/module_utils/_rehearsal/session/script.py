# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bootstrap VM is to do. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._agent.reports import TOGETHER_SECONDS
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import PORT, Lab, Node, Span, url_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol, BootstrapAddress, Firmware
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import waiting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

V6 = 6
MOST_STRANGERS = 30
"""A BMC service makes whoever is wrong too often wait."""
HIDDEN = "/redfish/v1/Systems/{}"
BOOT_SECONDS, MORE_PER_NODE = 45, 15
"""Emulated, nodes that boot at the same time share the host's processors."""


@dataclass(frozen=True)
class Secrets:
    """Goes to the bootstrap VM through its channel, and nowhere else."""

    logins: Mapping[str, Mapping[str, str]]
    """By VM name."""
    ca: str

    def __repr__(self) -> str:
        return "Secrets()"


@dataclass(frozen=True)
class Surroundings:
    """What only the host can know."""

    strangers: Sequence[str] = ()
    """UUIDs of VMs that are not this lab's."""
    outside: Sequence[Mapping[str, str]] = ()
    """What answers the host itself, beyond it."""


def boot_seconds(lab: Lab) -> int:
    """For which a node that makes no progress is waited for."""
    return BOOT_SECONDS + MORE_PER_NODE * len(lab.nodes)


def script(  # noqa: PLR0913 - one caller, and names say what is what
    lab: Lab,
    play: str,
    macs: Sequence[str],
    secrets: Secrets,
    surroundings: Surroundings,
    *,
    patience: float = 1.0,
) -> dict[str, Any]:
    """Macs: of the bootstrap VM's cards, in the machine network and in the provisioning network."""
    machine = lab.machine_network
    return {
        "play": play,
        "mac": macs[0],
        "families": lab.families,
        "static": _static(lab),
        "provisioning": _provisioning(lab, macs[1:]),
        "dns": lab.bootstrap_gateways,
        "names": list(lab.names()),
        "reverse": list(lab.reverse_names()),
        "ntp": list(lab.ntp_servers),
        "frames": [{"address": gateway, "bytes": machine.mtu} for gateway in lab.bootstrap_gateways],
        "outside": list(surroundings.outside),
        "vips": lab.all_vips,
        "vip_urls": [url_of(address) for address in lab.all_vips],
        "port": PORT,
        "path": path_of(lab.name, play),
        "urls": lab.urls,
        # The host says sooner when a node does nothing any more.
        "seconds": waiting.limits(patience, boot_seconds(lab)).whole,
        "together": TOGETHER_SECONDS * patience,
        "patience": patience,
        "nodes": [
            _node(lab, node, secrets, surroundings, ask_wrongly=number < MOST_STRANGERS)
            for number, node in enumerate(lab.nodes)
        ],
    }


def _provisioning(lab: Lab, macs: Sequence[str]) -> dict[str, Any] | None:
    """Where something else serves DHCP in it, the rehearsal plays that too."""
    if not (lab.provisioning and macs and lab.boots_by_network):
        return None
    network = ipaddress.ip_network(lab.provisioning.cidr)
    span = lab.provisioning.dhcp_range or Span(lab.provisioning.cluster_ip, str(network[-2]))
    return {
        "mac": macs[0],
        "address": lab.provisioning.bootstrap_ip,
        "prefix": network.prefixlen,
        "prefix_or_mask": network.prefixlen if network.version == V6 else str(network.netmask),
        "start": span.start,
        "end": span.end,
    }


def path_of(lab: str, play: str) -> str:
    """By this name a BMC shows whose medium it is."""
    return f"/nometal-rehearsal-{lab}-{play}.iso"


def is_our_medium(lab: str, url: str) -> bool:
    return f"/nometal-rehearsal-{lab}-" in url


def _static(lab: Lab) -> dict[str, Any] | None:
    told = lab.bootstrap
    if told.mode != BootstrapAddress.STATIC:
        return None
    of_family = {":" in address.cidr: address for address in lab.machine_network.addresses}
    addresses = [
        {"address": ip, "prefix": of_family[":" in ip].prefix, "gateway": _gateway(lab, ip)} for ip in told.ips
    ]
    return {"addresses": addresses}


def _gateway(lab: Lab, ip: str) -> str:
    told = lab.bootstrap.gateway
    own = next(gateway for gateway in lab.gateways if (":" in gateway) == (":" in ip))
    return told if told and (":" in told) == (":" in ip) else own


def _node(lab: Lab, node: Node, secrets: Secrets, surroundings: Surroundings, *, ask_wrongly: bool) -> dict[str, Any]:
    hidden = [HIDDEN.format(uuid) for uuid in _hidden(lab, node, surroundings)]
    return {
        "name": node.name,
        "uuid": node.uuid,
        "hints": dict(node.root_device_hints or {}),
        "names": [name for name in lab.names() if not name.startswith("api-int.")],
        "dns": lab.gateways,
        "peers": [ip for other in lab.nodes if other is not node for ip in other.ips] + lab.gateways,
        "bmc": {**_bmc(lab, node, secrets), "try_strangers": ask_wrongly, "hidden": hidden},
    }


def _hidden(lab: Lab, node: Node, surroundings: Surroundings) -> list[str]:
    """VMs that a node's own account must not see: one that does not exist, one of another owner, one of the lab."""
    if lab.bmc.protocol == BmcProtocol.IPMI:
        return []
    sisters = [other.uuid for other in lab.nodes if other is not node]
    return ["00000000-0000-0000-0000-000000000000", *list(surroundings.strangers)[:1], *sisters[:1]]


def _bmc(lab: Lab, node: Node, secrets: Secrets) -> dict[str, Any]:
    bmc, login = node.bmc, secrets.logins.get(node.vm_name, {"username": "", "password": ""})
    host = f"[{bmc.host}]" if ":" in bmc.host else bmc.host
    return {
        "protocol": "ipmi" if lab.bmc.protocol == BmcProtocol.IPMI else "redfish",
        "url": f"{'https' if lab.bmc.tls else 'http'}://{host}:{bmc.port}/redfish/v1/Systems/{node.uuid}",
        "host": bmc.host,
        "port": bmc.port,
        "username": login["username"],
        "password": login["password"],
        "ca": secrets.ca,
        "mode": "bios" if node.firmware == Firmware.BIOS else "uefi",
        "boot": "Pxe" if lab.boots_by_network else "Cd",
    }
