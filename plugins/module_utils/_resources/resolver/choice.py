# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import re
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, noting, refuse_all
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import host_server, lookup
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.network_manager import NetworkManager
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.resolv_conf import ResolvConf
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import (
    HostResolver,
    SplitDnsPort,
    lab_from,
    plan,
    refuse_taken_domains,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.systemd_resolved import SystemdResolved

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Means

MEANS: dict[str, Means] = {
    SystemdResolved.name: SystemdResolved(),
    NetworkManager.name: NetworkManager(),
    ResolvConf.name: ResolvConf(),
}


@dataclass(frozen=True)
class Resolution:
    """Whom this host asks for a name."""

    nameservers: tuple[str, ...]
    resolv_conf: str  # the file that /etc/resolv.conf is, or leads to
    nss_resolve: bool
    resolved_runs: bool
    manager_has_dnsmasq: bool


def measure() -> Resolution:
    text = host_server.without_line(host_server.read_resolv_conf())
    return Resolution(
        nameservers=tuple(re.findall(r"^nameserver[ \t]+(\S+)", text, re.MULTILINE)),
        resolv_conf=os.path.realpath(host_server.RESOLV_CONF),
        nss_resolve=names_resolve(Path("/etc/nsswitch.conf")),
        resolved_runs=SystemdResolved.runs(),
        manager_has_dnsmasq=NetworkManager.dnsmasq() is not None,
    )


def names_resolve(nsswitch: Path) -> bool:
    text = nsswitch.read_text(encoding="utf-8") if nsswitch.exists() else ""
    return bool(re.search(r"^hosts:.*\bresolve\b", text, re.MULTILINE))


def choose(host: Resolution) -> str:
    """What a host asks first decides. Programs that do not go by nsswitch.conf, the installer too, read resolv.conf."""
    first = host.nameservers[0] if host.nameservers else ""
    if first in host_server.RESOLVED_STUBS or host.resolv_conf.startswith(host_server.RESOLVED):
        _refuse_unusable_resolved(host, by_stub=first in host_server.RESOLVED_STUBS)
        return SystemdResolved.name
    if first == "127.0.0.1" and host.manager_has_dnsmasq:
        return NetworkManager.name
    return ResolvConf.name


def _refuse_unusable_resolved(host: Resolution, *, by_stub: bool) -> None:
    if not host.resolved_runs:
        raise OperatorError(
            "/etc/resolv.conf leads to systemd-resolved, which does not run: start it, "
            "or have /etc/resolv.conf name the host's name servers."
        )
    if not (by_stub or host.nss_resolve):
        raise OperatorError(
            f"/etc/resolv.conf is systemd-resolved's list of name servers ({host.resolv_conf}), where names cannot be "
            "split by domain: let it lead to /run/systemd/resolve/stub-resolv.conf."
        )


class SplitDns(Resource[HostResolver, SplitDnsPort]):
    def desired(self) -> HostResolver:
        self._lab = lab_from(self.params)
        if not self.is_wanted:
            return HostResolver({})
        self._means = self._usable_means()
        return HostResolver({self._means.name: self._means.wanted(self._lab)})

    def _usable_means(self) -> Means:
        """What is desired depends on it, so what stands in the way is refused first."""
        problems: list[str] = []
        with noting(problems):
            refuse_taken_domains(self._lab, chain.from_iterable(means.held() for means in MEANS.values()))
        with noting(problems):
            chosen = MEANS[choose(measure())]
            if isinstance(chosen, ResolvConf):
                chosen.refuse_conflicts()
        refuse_all(problems)
        return chosen

    def open(self) -> AbstractContextManager[SplitDnsPort]:
        return nullcontext(SplitDnsPort(self._lab, MEANS))

    def plan(self, current: HostResolver, desired: HostResolver) -> Sequence[Step]:
        return plan(current, desired)

    def finish(self, steps: Sequence[Step]) -> None:
        if steps and self.is_wanted:
            lookup.wait_until_known(self._lab, self._means.evidence(self._lab))

    def result(self) -> dict[str, Any]:
        return {"means": self._means.name} if self.is_wanted else {}
