# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host forwards packets: noted before the first lab, and as before after the last one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._observe.forwarding import Host

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VALUES = "forwarding"
DID_WITHOUT = "did_without_forwarding"


def note(host: Host, memory: HostMemory, *, check_mode: bool) -> dict[str, Any]:
    """Only for a switch that is noted for the first time: what came later has never done without."""
    noted = memory.recall().get(VALUES, {})
    values = {switch: value for switch, value in host.switched_off().items() if switch not in noted}
    if values and not check_mode:
        memory.note({VALUES: values, DID_WITHOUT: {switch: host.needs(switch) for switch in values}})
    return {
        "changed": bool(values),
        "steps": [f"note {switch}={value}" for switch, value in values.items()],
        "diff": {"before": "", "after": _text(values)},
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
    diff = {"before": _text({switch: host.value(switch) for switch in steps}), "after": _text(steps)}
    for switch, value in {} if check_mode else steps.items():
        host.switch(switch, value)
    return {
        "changed": bool(steps),
        "steps": [f"set {switch} to {value}" for switch, value in steps.items()],
        "kept_for": {switch: reasons for switch, reasons in needs.items() if reasons},
        "diff": diff,
    }


def _text(values: Mapping[str, str | None]) -> str:
    return "".join(f"{switch}={value}\n" for switch, value in values.items())


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    act = note if params["state"] == "noted" else restore
    return act(Host(), HostMemory(Path(params["memory"])), check_mode=check_mode)
