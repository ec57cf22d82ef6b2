# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit of systemd that brings the labs back when a service of the host has written the packet filter anew.

One for all labs: it comes with the first one's rules and goes with the last one's.
"""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import ENTRIES
from ansible_collections.nometal.ipi.plugins.module_utils._observe.network_filter import RELOADED, SYSTEMD
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.host import run

UNITS = Path("/etc/systemd/system")
NAME = "nometal-packet-filter"
TEMPLATE = f"{NAME}@.service"
SERVICES = ("nftables", "iptables", "ip6tables", "netfilter-persistent", "ufw", "firewalld")
TEXT = f"""\
# Made by nometal.ipi and removed with the last lab.
# %i writes the packet filter anew when it starts, restarts or reloads. Then libvirt is to write its rules again, which
# it does when firewalld says that it has reloaded, and so are the labs.
[Unit]
Description=Rules of libvirt and of the labs of nometal.ipi, after %i
After=%i.service libvirtd.service virtnetworkd.service
PartOf=%i.service
ReloadPropagatedFrom=%i.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-/bin/sh -c '{RELOADED.replace("$", "$$")}'
ExecStart=-/bin/sh -c 'for entry in {ENTRIES}/*.firewall; do "$$entry" - started; done'
ExecReload=-/bin/sh -c '{RELOADED.replace("$", "$$")}'
ExecReload=-/bin/sh -c 'for entry in {ENTRIES}/*.firewall; do "$$entry" - started; done'

[Install]
WantedBy=%i.service
"""


def wanted() -> tuple[str, ...]:
    """The unit, and its instances for those services that the host has."""
    return (TEMPLATE, *map(_instance, _services())) if SYSTEMD.is_dir() else ()


def read() -> tuple[str, ...]:
    there = files.text_of(UNITS / TEMPLATE)
    links = sorted(UNITS.glob(f"*.service.wants/{NAME}@*.service"))
    outdated = f"{TEMPLATE}, which is outdated"
    return (*([TEMPLATE if there == TEXT else outdated] if there is not None else []), *(link.name for link in links))


def write() -> None:
    files.write_whole(UNITS / TEMPLATE, TEXT, 0o644)
    run("systemctl", "daemon-reload")


def enable(instance: str) -> None:
    run("systemctl", "--quiet", "enable", instance)
    service = instance[len(NAME) + 1 :]
    if _property(service, "ActiveState") == "active":
        run("systemctl", "start", instance)


def disable(instance: str) -> None:
    run("systemctl", "--quiet", "disable", "--now", instance)


def delete() -> None:
    files.remove(UNITS / TEMPLATE)
    run("systemctl", "daemon-reload")


def _services() -> list[str]:
    """By their own names: one that is an alias of another would be there twice."""
    shown = run("systemctl", "show", "--property=Id,LoadState", *(f"{name}.service" for name in SERVICES))
    found = re.findall(r"^Id=(.*)\.service\nLoadState=loaded$", shown, re.MULTILINE)
    return [name for name in SERVICES if name in found]


def _instance(service: str) -> str:
    return f"{NAME}@{service}.service"


def _property(unit: str, name: str) -> str:
    return run("systemctl", "show", f"--property={name}", "--value", unit).strip()
