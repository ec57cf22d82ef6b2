# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of the two processes of a lab's BMCs: the service, and the broker that uses libvirt for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

SERVICE = """\
# Made by nometal.ipi for lab {name} and removed with it.
[Unit]
Description=BMCs of lab {name} (nometal.ipi)
Wants={broker}
After=network.target {broker}
# However long its broker is missing: it is never given up.
StartLimitIntervalSec=0

[Service]
ExecStart={command}
User={user}
# Of others for reading only, which is too much.
InaccessiblePaths=-/run/libvirt
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
"""
BROKER = """\
# Made by nometal.ipi for lab {name} and removed with it.
[Unit]
Description=Broker of the BMCs of lab {name} (nometal.ipi)
Wants=nometal-libvirt.target
# After what ends the VMs of a host that shuts down: this ends before, and so knows them as being on.
After=libvirt-guests.service
After=libvirtd.service virtnetworkd.service virtqemud.service virtstoraged.service
# However long libvirt is missing: it is never given up.
StartLimitIntervalSec=0

[Service]
ExecStart={command}
User={user}
Environment=HOST_BOOT_ID=%b
SupplementaryGroups=libvirt
PrivateNetwork=yes
RestrictAddressFamilies=AF_UNIX
"""
CONFINEMENT = """\
WorkingDirectory={state}
# A thread of Python's needs no arena of memory of its own, which would keep what was freed.
Environment=HOME={state} LANG=C.UTF-8 MALLOC_ARENA_MAX=2
Restart=always
RestartSec=200ms
TimeoutStopSec=40
LimitNOFILE=8192
UMask=0022

ReadWritePaths={writable}
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=pid
CapabilityBoundingSet=
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""


# What drop-ins may not change. systemd shows others of the kind in words of its own.
GUARDED = (
    "User",
    "NoNewPrivileges",
    "CapabilityBoundingSet",
    "ProtectSystem",
    "ProtectHome",
    "PrivateTmp",
    "PrivateDevices",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectProc",
    "ProcSubset",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "RemoveIPC",
    "RestrictRealtime",
    "RestrictSUIDSGID",
)


@dataclass(frozen=True)
class Unit:
    """`template`: what it has of its own. `writable`: the directories that it writes to, its home first."""

    name: str
    lab: Lab
    user: str
    command: tuple[str, ...]
    template: str
    writable: tuple[str, ...]

    @property
    def text(self) -> str:
        own = self.template.format(
            name=self.lab.name,
            command=" ".join(self.command),
            user=self.user,
            broker=f"{self.lab.broker_unit}.service",
        )
        return own + CONFINEMENT.format(state=self.writable[0], writable=" ".join(self.writable))


def units(lab: Lab) -> tuple[Unit, Unit]:
    """In the order in which they start."""
    writable = (str(lab.broker_state), *([lab.pool.path] if lab.listen else []))
    return (
        Unit(f"{lab.broker_unit}.service", lab, lab.broker_user, lab.broker_command, BROKER, writable),
        Unit(f"{lab.unit}.service", lab, lab.user, lab.command, SERVICE, (str(lab.state),)),
    )


def guarded(text: str) -> dict[str, str]:
    """The values that a unit gives to these."""
    entries = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name: entries[name] for name in GUARDED}
