# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes' VMs while an installation runs: power, medium, and signs of life."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.log import masked
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import consoles, domain_xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Callable

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation


PIDS = Path("/run/libvirt/qemu")
BOOTED_AT = Path("/proc/stat")
AT_POWER_ON = 2.0
"""Seconds: opening its console's log file touches that, and clocks are not exact."""
START_TIME = 19
"""Among the words of /proc/<pid>/stat behind the command."""
SENT = 5
"""Packets, as the VM sees it, among the figures that libvirt gives for a card."""
CONSOLE_LINES = 3
OFF = "off"
STATES = {1: "running", 2: "running", 3: "paused", 4: "shutting down", 5: OFF, 6: "crashed", 7: "suspended"}


@dataclass(frozen=True)
class Node:
    name: str
    vm_name: str
    state: str = "missing"
    on_since: float | None = None
    """None: it is not on, or that cannot be told."""
    spoke_at: float | None = None
    """When its console last grew."""
    packets: int | None = None
    """Sent since it was switched on; None: it has no card to send by."""
    quiet_since: float | None = None
    """Since when it has sent no packet and its console has not grown; None: that was not watched."""
    by_medium: bool = False
    """Whether it is installed from virtual media, and not from the network."""
    medium: str = ""
    macs: Sequence[str] = ()
    address: str = ""
    console: str = ""
    """The file that holds what it says."""

    @property
    def is_off(self) -> bool:
        return self.state == OFF

    @property
    def has_spoken(self) -> bool:
        """Whether its console shows what runs now: what was written before it was switched on is of something else."""
        return self.on_since is not None and self.spoke_at is not None and self.spoke_at >= self.on_since + AT_POWER_ON

    @property
    def is_silent(self) -> bool:
        """Since it was switched on. Systems without a serial console are not, as they send something."""
        if self.on_since is None or self.spoke_at is None:
            return False
        return self.spoke_at < self.on_since + AT_POWER_ON and not self.packets


def nodes_of(installation: Installation) -> list[Node]:
    """Of a libvirt that is being restarted there is nothing to be seen."""
    with suppress(OperatorError):
        return list(asked(installation.libvirt_uri, lambda there: look(there, installation.nodes)))
    return []


def look(connection: Any, nodes: Iterable[Mapping[str, Any]]) -> list[Node]:
    return [_node(connection, node) for node in nodes]


def _node(connection: Any, node: Mapping[str, Any]) -> Node:
    name, vm_name = node["name"], node["vm_name"]
    try:
        domain = connection.lookupByName(vm_name)
        state = STATES.get(domain.state()[0], "unknown")
        root = domain_xml.parsed(domain.XMLDesc())
    except libvirt.libvirtError:
        return Node(name, vm_name)
    console = console_of(root)
    return Node(
        name=name,
        vm_name=vm_name,
        state=state,
        console=console,
        on_since=_on_since(vm_name) if state == "running" else None,
        spoke_at=touched(console),
        packets=_packets(domain, root),
        by_medium=str((node.get("bmc") or {}).get("protocol", "")).endswith("-virtualmedia"),
        medium=domain_xml.medium_of(root),
        macs=domain_xml.macs_of(root),
        address=next(iter(node.get("ips") or ()), ""),
    )


def console_of(root: Any) -> str:
    log = root.find("devices/serial/log")
    return "" if log is None else log.get("file", "")


def last_words(path: str) -> str:
    lines = consoles.console(Path(path)) if path else []
    return " / ".join(filter(None, map(masked, lines[-CONSOLE_LINES:])))


def touched(path: str) -> float | None:
    with suppress(OSError):
        return Path(path).stat().st_mtime if path else None
    return None


def _on_since(vm_name: str) -> float | None:
    """When its qemu started, on the clock of files."""
    with suppress(OSError, ValueError, IndexError):
        pid = int((PIDS / f"{vm_name}.pid").read_text(encoding="ascii"))
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        booted = next(line for line in BOOTED_AT.read_text(encoding="ascii").splitlines() if line.startswith("btime "))
        return int(booted.split()[1]) + int(words[START_TIME]) / os.sysconf("SC_CLK_TCK")
    return None


def _packets(domain: Any, root: Any) -> int | None:
    found = [target.get("dev", "") for target in root.iterfind("devices/interface/target")]
    sent = []
    for device in found:
        with suppress(libvirt.libvirtError):
            sent.append(int(domain.interfaceStats(device)[SENT]))
    return sum(sent) if sent else None


ANSWER_SECONDS = 30.0
WAITING = "waits for libvirt at"


def asked(uri: str, look: Callable[[Any], Any]) -> Any:
    """A libvirt that hangs lets callers wait without end, so a thread of its own waits, and is left behind."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            with connect(uri) as connection:
                answers.append(look(connection))
        except Exception as error:  # it is raised below
            answers.append(error)

    if not any(thread.name == f"{WAITING} {uri}" for thread in threading.enumerate()):
        thread = threading.Thread(target=ask, name=f"{WAITING} {uri}", daemon=True)
        thread.start()
        thread.join(ANSWER_SECONDS)
    if not answers:
        raise OperatorError(f"{uri} has said nothing for {ANSWER_SECONDS:.0f} seconds.")
    if isinstance(answers[0], Exception):
        raise answers[0]
    return answers[0]
