# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The BMC service of a lab, also for VMs that are not declared any more: only their BMCs can switch them off."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import config, credentials, readiness
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.arguments import lab_from
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.emulator import Emulator, EmulatorPort, desired, plan
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import IpmiBmc, Node, is_vm_name
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.service import service_of
from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.wait import CLOCK
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect_if_there

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab


def _undeclared(connection: Any, lab: Lab, former_config: str) -> dict[str, Node | None]:
    """By name, with the BMC that each goes on having. None: there is no place for it."""
    declared = {text for node in lab.nodes for text in (node.uuid, node.name)}
    ports = config.ipmi_ports(former_config)
    found = {
        domain.name(): domain.UUIDString()
        for domain in connection.listAllDomains()
        if declared.isdisjoint((domain.UUIDString(), domain.name())) and _is_of(lab, domain)
    }
    return {name: _node(lab, name, uuid, ports.get(uuid)) for name, uuid in sorted(found.items())}


def _is_of(lab: Lab, domain: Any) -> bool:
    return xml.mark_of(xml.parsed(domain.XMLDesc(0))).owner == lab.name


def _node(lab: Lab, name: str, uuid: str, port: int | None) -> Node | None:
    if not is_vm_name(name):  # it was renamed
        return None
    if lab.listen:
        return Node(uuid, name)
    declared = [place for _node, place in lab.by_ipmi]
    if port is None or not declared or port in {place.port for place in declared}:
        return None
    return Node(uuid, name, IpmiBmc(declared[0].address, port))


class BmcService(Resource["Emulator | None", EmulatorPort]):
    alone = partial(one_at_a_time, "redfish_emulator")

    def reconcile(self) -> dict[str, Any]:
        self._declared, self._wrong = lab_from(self.params)
        with connect_if_there(self._declared.libvirt_uri, self._note_missing) as self._connection:
            return super().reconcile()

    def _note_missing(self, why: NotThereYetError) -> None:
        """A lab that was stopped half-way may have no libvirt yet, and then no pool either."""
        self._missing = why

    def desired(self) -> Emulator | None:
        asks = self._connection and self.is_wanted and not self._wrong
        former = config.text_in(self._declared.config) if asks else ""
        self._others = _undeclared(self._connection, self._declared, former) if asks else {}
        self._lab = replace(self._declared, nodes=(*self._declared.nodes, *filter(None, self._others.values())))
        self._kept: list[str] = []
        return desired(self._lab) if self.is_wanted else None

    @contextmanager
    def open(self) -> Iterator[EmulatorPort]:
        # What is wrong is reported together with all else that is in the way, and where libvirt is missing too.
        if self._connection is None and self.is_wanted and not self._wrong:
            raise self._missing
        yield EmulatorPort(self._lab, self._connection, wanted=self.is_wanted)

    def conflicts(self) -> list[str]:
        if self.is_wanted:
            return self.port.conflicts(self._wrong, check_mode=self.check_mode)
        self._kept = self.port.stays()
        return list(self.port.users())

    def plan(self, current: Emulator | None, desired: Emulator | None) -> Sequence[Step]:
        steps = plan(current, desired)
        # A real run ends with this question. Without it, preflight.yml would leave out a service that hangs.
        if self.check_mode and self.is_wanted and not steps and not self._answers():
            return [Step("await", "service")]
        return steps

    def _answers(self) -> bool:
        return readiness.answers(self._lab, credentials.read(self._lab.credentials))

    def finish(self, steps: Sequence[Step]) -> None:
        if self.is_wanted:
            _wait(self._lab, steps)

    def result(self) -> dict[str, Any]:
        return _told(self._declared, self._others) if self.is_wanted else {"kept": self._kept}

    def warnings(self) -> list[str]:
        return removal.warnings(self._kept)


def _wait(lab: Lab, steps: Sequence[Step]) -> None:
    service_runs_on = not {Step("start", "service"), Step("restart", "service")} & {*steps}
    if service_runs_on and Step("write", "configuration") in steps:
        CLOCK.sleep(readiness.RELOAD_SECONDS)
    logins = credentials.read(lab.credentials)
    readiness.ensure_it_answers(lab, logins, service_of(lab), each=bool(steps))


def _told(lab: Lab, others: Mapping[str, Node | None]) -> dict[str, Any]:
    nodes = [
        {
            "name": node.name,
            "uuid": node.uuid,
            "address": lab.address_of(node),
            "credentials": {"file": str(lab.credentials), "key": node.name},
        }
        for node in lab.nodes
    ]
    left = [{"name": name, "address": lab.address_of(node) if node else None} for name, node in others.items()]
    return {"nodes": nodes, "undeclared": left, "ca_file": str(lab.ca) if lab.tls else None}
