#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_forwarding
short_description: Whether a host forwards packets, before the labs and after
version_added: 0.1.0
description:
  - libvirt has the host forward packets as soon as a network is started, and leaves it at that.
  - Before the first lab, it is noted where the host does not, and what there is that might need it but did without.
  - After the last lab, the host forwards as before, unless something that is not a lab's has come to need it meanwhile.
    That may be a running libvirt network, bridges of container engines, WireGuard, a sysctl file, a setting of
    systemd-networkd or NetworkManager, or a rule for network address translation.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.host_memory
options:
  state:
    description: V(noted) before the first lab, V(restored) after the last one.
    type: str
    choices: [noted, restored]
    default: noted
"""

EXAMPLES = r"""
- name: Note whether the host forwards packets
  nometal.ipi.host_forwarding:

- name: Forward packets as before
  nometal.ipi.host_forwarding:
    state: restored
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done.
  returned: success
  type: list
  elements: str
  sample: [set net/ipv4/ip_forward to 0]
kept_for:
  description: Of each switch that stays on, for what.
  returned: when O(state=restored)
  type: dict
  sample:
    net/ipv4/ip_forward: [libvirt network default is running]
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._observe.forwarding import Host

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VALUES = "forwarding"
DID_WITHOUT = "did_without_forwarding"
ARGUMENTS = {
    "memory": {"type": "path", "default": "/var/lib/nometal/host.json"},
    "state": {"type": "str", "choices": ["noted", "restored"], "default": "noted"},
}


def note(host: Host, memory: HostMemory, *, check_mode: bool) -> dict[str, Any]:
    """Only for a switch that is noted for the first time: what came later has never done without."""
    noted = memory.recall().get(VALUES, {})
    values = {switch: value for switch, value in host.switched_off().items() if switch not in noted}
    if values and not check_mode:
        memory.note({VALUES: values, DID_WITHOUT: {switch: host.needs(switch) for switch in values}})
    return {
        "changed": bool(values),
        "steps": [f"note {switch}={value}" for switch, value in values.items()],
        "diff": {"before": "", "after": text(values)},
    }


def restore(host: Host, memory: HostMemory, *, check_mode: bool) -> dict[str, Any]:
    notes = memory.recall()
    differing = {
        switch: value for switch, value in notes.get(VALUES, {}).items() if host.value(switch) not in (value, None)
    }
    did_without = notes.get(DID_WITHOUT, {})
    needs = {
        switch: [need for need in host.needs(switch) if need not in did_without.get(switch, [])] for switch in differing
    }
    steps = {switch: value for switch, value in differing.items() if not needs[switch]}
    diff = {"before": text({switch: host.value(switch) for switch in steps}), "after": text(steps)}
    for switch, value in {} if check_mode else steps.items():
        host.switch(switch, value)
    return {
        "changed": bool(steps),
        "steps": [f"set {switch} to {value}" for switch, value in steps.items()],
        "kept_for": {switch: reasons for switch, reasons in needs.items() if reasons},
        "diff": diff,
    }


def text(values: Mapping[str, str | None]) -> str:
    return "".join(f"{switch}={value}\n" for switch, value in values.items())


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    act = note if params["state"] == "noted" else restore
    return act(Host(), HostMemory(Path(params["memory"])), check_mode=check_mode)


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
