# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the arguments of redfish_emulator to the service that is wanted, and what is wrong with them on any host."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import LONGEST_SOCKET, Lab
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Section
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

OF_SERVICE = ("media.max_bytes", "media.timeout", "user", "broker_user")
"""What does not matter of a service that is to be gone."""


def lab_from(params: Mapping[str, Any]) -> tuple[Lab, list[str]]:
    """Also of what is wrong, as far as it can be read: so all that is wrong can be said at once."""
    problems = Problems.none()
    lab = Section(Lab, ignores_others=True).parse(params, "", problems)
    if params["state"] == "absent":
        problems.found = [found for found in problems.found if found.subject not in OF_SERVICE]
    if not isinstance(lab, Lab) or (problems.found and params["state"] == "absent"):
        raise OperatorError("\n".join(lines_of(problems)))
    # To remove a lab's service, its name is enough.
    contradictions = list(_contradictions(lab, problems)) if params["state"] == "present" else []
    return replace(lab, tls=lab.tls and bool(lab.listen)), [*lines_of(problems), *contradictions]


def _contradictions(lab: Lab, problems: Problems) -> Iterator[str]:
    yield from _duplicates(lab)
    if lab.user == lab.broker_user:
        yield f"broker_user: must be another user than that of the service (got {lab.user} for both)"
    if problems.knows("home") and len(str(lab.socket)) > LONGEST_SOCKET:
        yield f"home: must be shorter: a socket below it has a name of at most {LONGEST_SOCKET} bytes (got {lab.home})"
    if problems.knows("listen") and not lab.listen:
        if lab.by_redfish:
            names = ", ".join(node.name for node in lab.by_redfish)
            yield f"listen: must have an address and a port, since the BMC of {names} is by Redfish (got none)"
        elif problems.knows("nodes") and not lab.nodes:
            yield "nodes: must name what to serve, or listen where (got neither)"


def _duplicates(lab: Lab) -> Iterator[str]:
    given: dict[str, Iterable[str]] = {
        "nodes[].uuid": (node.uuid for node in lab.nodes),
        "nodes[].vm_name": (node.name for node in lab.nodes),
        "listen": map(str, lab.listen),
        "nodes[].bmc.port": (str(place) for _node, first in lab.by_ipmi for place in lab.places(first)),
    }
    for key, values in given.items():
        counts = Counter(values).items()
        yield from (f"{key}: must be unique (got {value} {count} times)" for value, count in counts if count > 1)
