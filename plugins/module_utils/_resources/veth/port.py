# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import network_hook
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, joined
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._observe.veth_entries import (
    entry_of,
    entry_text,
    plugged_by_entries,
    wirings_of,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import MARK
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth import kernel
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.conflicts import refuse_conflicts
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.declared import Declared, Removed
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.link_managers import (
    LINK_MANAGERS,
    UnmanagedFile,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.site import Site, links_found
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.state import (
    Bridge,
    VethPair,
    current_bridges,
    current_ends,
    desired_ends,
    plan,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import Wiring


DELETING = ("delete", "delete bridge")


class VethPairPort:
    """One pair on this host: its links in the kernel, and its files."""

    def __init__(self, site: Site, *, wanted: bool) -> None:
        self._wiring = wiring = site.wiring
        self._links = site.links
        self._ends = site.ends
        self._our_bridges = wiring.bridges_made(site.links) if wanted else site.bridges_left_over()
        self._former_bridges = site.former_bridges() if wanted else ()
        ours = (*(plug.name for plug in wiring.plugs), *self._our_bridges)
        self._hook = entry_of(wiring.name)
        self._unmanaged = {
            str(file.path): file for manager in LINK_MANAGERS for file in [UnmanagedFile(manager, wiring.name, ours)]
        }

    def read(self) -> VethPair | None:
        found = VethPair(
            name=self._wiring.name,
            ends=current_ends(self._ends, self._links),
            bridges=current_bridges([*self._our_bridges, *self._former_bridges], self._links),
            hook=_lines({str(self._hook.path): self._hook.read()}),
            unmanaged=_lines({path: file.read() for path, file in self._unmanaged.items()}),
        )
        return None if found == VethPair(self._wiring.name) else found

    def wanted(self) -> VethPair:
        unmanaged = {path: file.text() for path, file in self._unmanaged.items() if file.manager.is_in_use()}
        return VethPair(
            name=self._wiring.name,
            ends=desired_ends(self._wiring),
            bridges=tuple(Bridge(name, self._wiring.mtu) for name in self._our_bridges),
            hook=_lines({str(self._hook.path): entry_text(self._wiring, self._our_bridges)}),
            unmanaged=_lines(unmanaged),
        )

    def apply(self, step: Step) -> None:
        try:
            if step.verb in ("write", "remove"):
                self._apply_to_file(step)
            elif step.verb in DELETING:
                kernel.delete(step.target)
            else:
                with kernel.changing(str(step)) as route:
                    self._apply_to_link(route, step.verb, step.target)
        except OSError as error:
            raise OperatorError(f"`{step}` failed: {error}.") from error

    def _apply_to_file(self, step: Step) -> None:
        writing = step.verb == "write"
        if step.target in self._unmanaged:
            file = self._unmanaged[step.target]
            (file.write if writing else file.remove)()
        elif writing:
            self._hook.write(entry_text(self._wiring, self._our_bridges))
        else:
            self._hook.remove()

    def _apply_to_link(self, route: Any, verb: str, name: str) -> None:
        {
            "add bridge": lambda: self._add_bridge(route, name),
            "add": lambda: self._add_pair(route),
            "join": lambda: kernel.enslave(route, name, self._bridge_of(name)),
            "release": lambda: kernel.set_link(route, name, master=0),
            "mark": lambda: kernel.set_link(route, name, ifalias=MARK),
            "set mtu of": lambda: kernel.set_link(route, name, mtu=self._wiring.mtu),
            "set forward delay of": lambda: kernel.set_forward_delay(route, name, 0),
            "silence": lambda: kernel.silence(name),
            "up": lambda: kernel.set_link(route, name, state="up"),
        }[verb]()

    def _add_bridge(self, route: Any, name: str) -> None:
        kernel.add_bridge(route, name)
        # One that is given its MTU when it is made still takes on that of its ports later.
        kernel.set_link(route, name, ifalias=MARK, mtu=self._wiring.mtu)
        kernel.silence(name)
        kernel.set_link(route, name, state="up")

    def _add_pair(self, route: Any) -> None:
        a, b = self._wiring.plugs
        kernel.add_veth(route, a.name, b.name)
        for end in (a, b):
            kernel.set_link(route, end.name, mtu=self._wiring.mtu)

    def _bridge_of(self, end: str) -> str:
        return next(plug.bridge for plug in self._wiring.plugs if plug.name == end and plug.bridge)


def _lines(texts: Mapping[str, str | None]) -> dict[str, list[str]]:
    return {path: text.splitlines() for path, text in texts.items() if text is not None}


class Pair(Resource["VethPair | None", VethPairPort]):
    def __init__(self, wiring: Wiring, *, wanted: bool, check_mode: bool) -> None:
        super().__init__({"state": "present" if wanted else "absent"}, check_mode=check_mode)
        self._wiring = wiring

    def desired(self) -> VethPair | None:
        """It depends on what is there: the bridges that are for the pair to make."""
        links = links_found(foreseeing=self.check_mode, removing=not self.is_wanted)
        site = Site(self._wiring, links, plugged_by_entries())
        if self.is_wanted:
            refuse_conflicts(site, foreseeing=self.check_mode)
        self.port = VethPairPort(site, wanted=self.is_wanted)
        return self.port.wanted() if self.is_wanted else None

    def open(self) -> AbstractContextManager[VethPairPort]:
        return nullcontext(self.port)

    def plan(self, current: VethPair | None, desired: VethPair | None) -> Sequence[Step]:
        return plan(current, desired)


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    with one_at_a_time("veth_pair", check_mode=check_mode):
        result = _changed(params, check_mode=check_mode)
    return {**result, "warnings": warnings(params, check_mode=check_mode)}


def _changed(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    if params["name"] is None:
        owner = from_dict(Removed, params).owner
        return joined([_act(wiring, wanted=False, check_mode=check_mode) for wiring in wirings_of(owner)])
    return _act(from_dict(Declared, params).wiring, wanted=params["state"] == "present", check_mode=check_mode)


def _act(wiring: Wiring, *, wanted: bool, check_mode: bool) -> dict[str, Any]:
    result = Pair(wiring, wanted=wanted, check_mode=check_mode).reconcile()
    if result["changed"] and not check_mode:
        # A link manager that was told to let go of the links may have put them down since they were read.
        result["steps"] += Pair(wiring, wanted=wanted, check_mode=False).reconcile()["steps"]
    return result


def warnings(params: dict[str, Any], *, check_mode: bool) -> list[str]:
    if params["state"] == "absent":
        return []
    if not check_mode:
        return _silence_of_hook(params["name"])
    return _bridges_awaited(from_dict(Declared, params).wiring, params["awaited"])


def _bridges_awaited(wiring: Wiring, awaited: Collection[str]) -> list[str]:
    return [
        f"{plug.key}.bridge: there is no bridge {plug.bridge} yet. The run needs it by then: "
        "if nothing before it makes that bridge, it will be refused."
        for plug in wiring.bridges_missing(links_found(foreseeing=True))
        if plug.bridge not in awaited
    ]


def _silence_of_hook(pair: str) -> list[str]:
    silence = network_hook.silence()
    remedy = "Run module nometal.ipi.libvirt_service, as role nometal.ipi.host_prep does."
    return [f"{pair} will not be back after a reboot: {silence}. {remedy}"] if silence else []
