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
    names_of,
    problems_of,
    problems_of_owner,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.port import Request, VmPort
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import (
    boot_mac,
    console_of,
    destroyed,
    fleet_from,
    plain_uuid,
    plan,
    root_device_hints,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

MADE_EARLIER = ("network.missing", "network.stopped", "bridge.missing", "pool.missing", "pool.lost", "pool.stopped")
"""What earlier stages make, which in check mode have made nothing."""


class LabVms(Resource["Fleet | None", VmPort]):
    alone = partial(one_at_a_time, "bmh_vm")

    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        self._declared = problems_of_owner(params["owner"])
        self._declared += problems_of(params["vms"], params["pool"]) if self.is_wanted else names_of(params["vms"])
        self._passing: list[Finding] = []
        self._former: list[str] = []
        self._pending: dict[str, list[str]] = {}
        self._kept: list[str] = []

    def desired(self) -> Fleet:
        self._request = request_from(self.params)
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
        if not self.is_wanted:
            return {}
        vms = [host_of(item, self._pending.get(item["vm_name"], [])) for item in self.params["vms"]]
        return {"vms": vms, "former": self._former}

    def warnings(self) -> list[str]:
        passing = [f"Nothing would be made yet: {finding}." for finding in self._passing]
        return [*passing, *removal.warnings(self._kept)]


def request_from(params: dict[str, Any]) -> Request:
    names = frozenset(item["vm_name"] for item in params["vms"])
    if params["state"] == "absent":
        return Request(params["owner"], None, Fleet(), removed=names or None)
    return Request(
        owner=params["owner"],
        pool=params["pool"],
        wanted=fleet_from(params["vms"], params["owner"], params["pool"] or ""),
        removed=None if params["exclusive"] else frozenset(),
        recreate=params["recreate"],
    )


def _refusal(found: Iterable[Finding]) -> list[str]:
    wrong = dict.fromkeys(f"- {finding}" for finding in found)
    return ["No VM was changed, because of this:", *wrong] if wrong else []


def _refuse_to_destroy(doomed: list[str], why: str) -> None:
    if doomed and why:
        raise OperatorError(f"No VM was changed, for this would be destroyed: {', '.join(doomed)}. {why}")


def host_of(item: dict[str, Any], pending: list[str]) -> dict[str, Any]:
    return {
        "name": item["name"] or item["vm_name"],
        "vm_name": item["vm_name"],
        "uuid": plain_uuid(item["uuid"]),
        "boot_mac": boot_mac(item),
        "boot_mode": BOOT_MODES[item["firmware"]],
        "root_device_hints": root_device_hints(item),
        "bmc_address": (item["bmc"] or {}).get("address"),
        "console": console_of(item["vm_name"]),
        "pending": pending,
    }
