# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of all that can be wrong with an installation, and what to do: a row for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.causes import (
    BMC,
    BMC_LOG,
    CONSOLE,
    METAL,
    PASSWORDS,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import DOING, Stage
from ansible_collections.nometal.ipi.plugins.module_utils._core.explanations import Explanation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

NETWORK = "playbooks/network.yml repairs it."
NODES = "playbooks/nodes.yml repairs it."
START_OVER = "With ipi_install_restart=true all is removed and it starts over."
SAID_BY_CONSOLE = "Its console ends with: {console}"
SAID_BY_SERVICE = "Its {unit}.service says: {said}"
NO_API = "{vip} does not answer on port 6443: {error}."
FILTERED = {"dhcp": "the DHCP server", "api": "the API", "images": "images", "bmcs": "the BMCs"}


def _overload(
    load: float | None = None,
    cores: int = 0,
    memory_available: float | None = None,
    waiting: Sequence[str] = (),
) -> str:
    signs = [
        *([] if load is None else [f"load {load:.1f} on {cores} processors"]),
        *([] if memory_available is None else [f"{memory_available:.0%} of its memory left"]),
        *([f"programs wait for {' and '.join(waiting)}"] if waiting else []),
    ]
    return f"It is overloaded: {', '.join(signs)}. Everything takes longer, and nodes may hang."


def _filtered(rule: str, port: int, serves: str) -> str:
    return f"The packet filter drops packets to {FILTERED[serves]} on port {port}: {rule}."


def _name(name: str, addresses: Sequence[str], wanted: Sequence[str]) -> str:
    known = f"says that {name} is {', '.join(addresses)}" if addresses else f"does not know {name}"
    return f"The host's resolver {known}; it must be {', '.join(wanted)}."


def _get_an_address(is_filtered: bool, **_others: Any) -> str:
    """Where a rule of the packet filter is to be removed, nothing else helps."""
    return "" if is_filtered else NETWORK


def _silence(seconds: float, console: str) -> str:
    return f"Its console is silent for {usual.words(seconds)}{f', since: {console}' if console else ''}"


def _off(nodes: Sequence[str], **_others: Any) -> str:
    verb, them = ("is", "it") if len(nodes) == 1 else ("are", "them")
    return f"{', '.join(nodes)} {verb} switched off, and the cluster cannot come up without {them}:"


def _switch_on(vms: Sequence[str], **_others: Any) -> str:
    them, their = ("it", "its BMC") if len(vms) == 1 else ("them", "their BMCs")
    return f"switch {them} on with `{'; '.join(f'virsh start {vm}' for vm in vms)}` on the host, or by {their}."


def _no_api_of_nodes(vip: str, error: str, **off: Any) -> str:
    return f"{vip} does not answer on port 6443: {error}. Control plane nodes hold the address by now: {_off(**off)}"


def _see_why(address: str, **_others: Any) -> str:
    where = f"`ssh core@{address} journalctl -b -u release-image -u bootkube`" if address else "its journal"
    return f"{where} shows why: most often the pull secret, or no connection to the registries."


def _failed_service(unit: str, said: str, exited: Sequence[str]) -> str:
    ended = f" Containers that have ended: {', '.join(exited)}." if exited else ""
    return f"Its {unit}.service fails again and again: {said.rstrip('.')}.{ended}"


def _of_bmcs(text: str) -> Any:
    def said(nodes: Sequence[str], error: str) -> str:
        return f"{'Those of all nodes' if len(nodes) > 1 else 'Its BMC'}: {text.format(error=error)}"

    return said


def _of_metal(advice: str) -> Any:
    def said(also: Sequence[str], **_others: Any) -> str:
        return f"{advice} The same goes for {', '.join(also)}." if also else advice

    return said


def _stands_still(stage: str, seconds: float, **_others: Any) -> str:
    return f"{DOING[Stage(stage)]}, and nothing has changed for {usual.words(seconds)}"


def _is_slow(state: str, seconds: float, **_others: Any) -> str:
    return f"is {state} for {usual.words(seconds)}"


def _has_an_error(error: str, seconds: float, **_others: Any) -> str:
    return f"has had an error for {usual.words(seconds)}: {error}"


def _hangs(seconds: float, **_others: Any) -> str:
    return f"has been on for {usual.words(seconds)} without a sign on its console or in the network"


def _stopped(seconds: float, **_others: Any) -> str:
    return f"has stopped booting: for {usual.words(seconds)}, nothing on its console or in the network"


def _operator(name: str, message: str) -> str:
    return f"{name}: {message}" if message else f"{name} is not available"


EXPLANATIONS: dict[str, Explanation] = {
    "installer.stands-still": Explanation(_stands_still),
    "node.slow": Explanation(_is_slow),
    "node.error": Explanation(_has_an_error),
    "node.hangs": Explanation(_hangs),
    "node.boot-stopped": Explanation(_stopped),
    "host.overloaded": Explanation(
        _overload, "End what else runs there, or give the lab fewer or smaller nodes.", has_figures=True
    ),
    "host.filtered": Explanation(_filtered, "Remove that rule."),
    "host.libvirt-silent": Explanation(
        "libvirt does not answer: {error}", "See `systemctl status libvirtd`, or virtqemud."
    ),
    "names.wrong": Explanation(_name, NETWORK),
    "bootstrap.gone": Explanation("Its VM is gone, and the installation still needs it.", START_OVER),
    "bootstrap.disk-full": Explanation(
        "{name} is paused, as its disk cannot be written.", "Make room on the host (`df`)."
    ),
    "bootstrap.not-running": Explanation(
        "{name} is {state}.", "Start it with `virsh start {name}`, or see why in its qemu's log."
    ),
    "bootstrap.no-address": Explanation(
        "{name}, MAC address {macs}, has no address. The lab's DHCP server has given it none, and the host does not "
        "see it.",
        _get_an_address,
    ),
    "bootstrap.no-carrier": Explanation(
        "{name}, MAC address {macs}, has no link: its card is not on a bridge that is up.", NETWORK
    ),
    "bootstrap.static-silent": Explanation(
        "{name}, MAC address {macs}, does not answer at its static address {ips}.",
        "See its console, and whether lab_spec.bootstrap has the network's gateway and prefix.",
    ),
    "bootstrap.other-mac": Explanation(
        "{name} has MAC address {macs}, but the lab reserves {ips} for {mac}.",
        "Remove externalMACAddress from lab_spec.install.config, or set lab_spec.bootstrap.mac to it.",
    ),
    "bootstrap.silent": Explanation(_silence, has_figures=True),
    "api.held-by-stranger": Explanation(
        "{vip} is held by {mac}, which is not a machine of this lab.",
        "Free the address, or choose another one in lab_spec.machine_network.vips.",
    ),
    "api.nodes-off": Explanation(_no_api_of_nodes, _switch_on),
    "api.held-early": Explanation(
        "{vip} is held by {node} before bootstrapping is over, and the API is not there: its keepalived does not see "
        "that of the bootstrap VM.",
        "Have it give the address back: `{command}`. ipi_install_heal=true does so.",
    ),
    "api.held-by-nodes": Explanation(f"{NO_API} Control plane nodes hold the address by now:", "see their consoles."),
    "api.nothing-comes-back": Explanation(
        f"{NO_API} The address is held, but nothing comes back:",
        "see what filters packets, and the bootstrap VM's console.",
    ),
    "api.not-held": Explanation(
        f"{NO_API} No machine holds the address yet:", "the bootstrap VM takes it once it has pulled its first images."
    ),
    "api.not-up": Explanation(f"{NO_API} The bootstrap VM is there, but has no API yet:", _see_why),
    "api.other-cluster": Explanation(
        "Another cluster answers there: {error}.",
        "Stop what listens at {vips}, such as another cluster, or set the clocks if they differ.",
    ),
    "nodes.off": Explanation(_off, _switch_on),
    "bmc.not-known": Explanation("{error}"),
    "bmc.password": Explanation(_of_bmcs("The password of the account `operator` is refused."), PASSWORDS),
    "bmc.timeout": Explanation(
        _of_bmcs("No answer, not even on the host itself: {error}."),
        f"Packets are filtered, or the service hangs. {BMC_LOG}",
    ),
    "bmc.no-answer": Explanation(_of_bmcs("No answer, not even on the host itself: {error}."), BMC),
    **{row.code: Explanation(f"{{error}}. {row.message}", _of_metal(row.advice)) for row in METAL},
    "metal.other": Explanation("{error}.", _of_metal("")),
    "node.no-vm": Explanation("Its VM {vm} is not there.", NODES),
    "node.not-on": Explanation(
        "It is {state}, while Ironic has it {wanted}:", "its BMC got no request, or did not act."
    ),
    "node.empty-drive": Explanation(
        "Its drive is empty, so Ironic's agent, which is to inspect it, cannot start.", BMC
    ),
    "node.console": Explanation(SAID_BY_CONSOLE),
    **{row.code: Explanation(row.message, f"{row.advice} {SAID_BY_CONSOLE}") for row in CONSOLE},
    **{
        row.code.replace("console", "service"): Explanation(row.message, f"{row.advice} {SAID_BY_SERVICE}")
        for row in CONSOLE
    },
    "service.failed": Explanation(_failed_service, START_OVER),
    "operators.not-ready": Explanation(_operator),
    "operators.hindered": Explanation("{error}"),
}


def found(code: str, subject: str, **facts: Any) -> Finding:
    return EXPLANATIONS[code].of(code, subject, facts)


def key_of(finding: Finding) -> tuple[str, str]:
    """What another finding has in common with it that says the same, maybe with other figures."""
    explanation = EXPLANATIONS.get(finding.code)
    has_figures = explanation is not None and explanation.has_figures
    return finding.subject, finding.code if has_figures else finding.text
