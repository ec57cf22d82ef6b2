# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All VMs that a module is given, as one thing."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    NotThereYetError,
    OperatorError,
    refuse_all,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BOOT_MODES
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Fleet
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.declared import (
    Declared,
    Removed,
    fleet_from,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.port import Request, VmPort
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.reading import declared_from
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import (
    console_of,
    destroyed,
    plan,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.declared import Vm

MADE_EARLIER = ("network.missing", "network.stopped", "bridge.missing", "pool.missing", "pool.lost", "pool.stopped")
"""What earlier stages make, which in check mode have made nothing."""


class LabVms(Resource["Fleet | None", VmPort]):
    alone = partial(one_at_a_time, "bmh_vm")

    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        self._given: Declared | Removed | None
        self._given, self._declared = declared_from(params, Declared if self.is_wanted else Removed)
        self._passing: list[Finding] = []
        self._former: list[str] = []
        self._pending: dict[str, list[str]] = {}
        self._kept: list[str] = []

    def desired(self) -> Fleet:
        if self._given is None:  # it has no valid owner
            raise OperatorError("\n".join(_refusal(self._declared)))
        self._request = request_from(self._given, self.params)
        return self._request.wanted

    @contextmanager
    def open(self) -> Iterator[VmPort]:
        try:
            with connect(self.params["libvirt_uri"]) as connection:
                port = VmPort(connection, self._request)
                yield port
                port.finish()
                self._kept = port.kept
        except NotThereYetError:
            refuse_all(_refusal(self._declared))
            raise

    def conflicts(self) -> list[str]:
        """What is wrong anywhere is not measured against this host."""
        known = {finding.subject for finding in self._declared}
        measured = (finding for finding in self.port.problems() if finding.subject not in known)
        found = [*self._declared, *measured]
        self._passing = [finding for finding in found if self.check_mode and finding.code in MADE_EARLIER]
        refused = _refusal(finding for finding in found if finding not in self._passing)
        if not refused:
            self._former, self._pending = self.port.former(), self.port.pending()
        return refused

    def plan(self, current: Fleet | None, desired: Fleet | None) -> list[Step]:
        wanted = desired or Fleet()
        _refuse_to_destroy(destroyed(current, wanted), self.params["protect"])
        return plan(current, wanted)

    def result(self) -> dict[str, Any]:
        if not isinstance(self._given, Declared):
            return {}
        vms = [host_of(vm, self._pending.get(vm.vm_name, [])) for vm in self._given.vms]
        return {"vms": vms, "former": self._former}

    def warnings(self) -> list[str]:
        passing = [f"Nothing would be made yet: {finding}." for finding in self._passing]
        return [*passing, *removal.warnings(self._kept)]


def request_from(given: Declared | Removed, params: dict[str, Any]) -> Request:
    if isinstance(given, Removed):
        names = frozenset(vm.vm_name for vm in given.vms)
        return Request(given.owner, None, Fleet(), removed=names if params["vms"] else None)
    return Request(
        owner=given.owner,
        pool=given.pool,
        wanted=fleet_from(given.vms, given.owner, given.pool or ""),
        removed=None if params["exclusive"] else frozenset(),
        recreate=params["recreate"],
    )


def _refusal(found: Iterable[Finding]) -> list[str]:
    wrong = dict.fromkeys(f"- {finding}" for finding in found)
    return ["No VM was changed, because of this:", *wrong] if wrong else []


def _refuse_to_destroy(doomed: list[str], why: str) -> None:
    if doomed and why:
        raise OperatorError(f"No VM was changed, for this would be destroyed: {', '.join(doomed)}. {why}")


def host_of(vm: Vm, pending: list[str]) -> dict[str, Any]:
    return {
        "name": vm.name or vm.vm_name,
        "vm_name": vm.vm_name,
        "uuid": vm.uuid,
        "boot_mac": vm.boot_mac,
        "boot_mode": BOOT_MODES[vm.firmware],
        "root_device_hints": vm.root_device_hints,
        "bmc_address": vm.bmc.address if vm.bmc else None,
        "console": console_of(vm.vm_name),
        "pending": pending,
    }
