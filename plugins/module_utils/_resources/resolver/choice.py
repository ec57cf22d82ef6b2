# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import host_server
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.network_manager import NetworkManager
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.resolv_conf import ResolvConf
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.systemd_resolved import SystemdResolved


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
