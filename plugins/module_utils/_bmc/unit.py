# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service as systemd runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

UNIT = """\
# Made by nometal.ipi for lab {name} and removed with it.
[Unit]
Description=BMCs of lab {name} (nometal.ipi)
Wants=nometal-libvirt.target
After=network.target libvirtd.service virtnetworkd.service virtqemud.service virtstoraged.service
# However long libvirt is missing: it is never given up.
StartLimitIntervalSec=0

[Service]
ExecStart={command}
User={user}
SupplementaryGroups=libvirt
WorkingDirectory={state}
Environment=HOME={state} LANG=C.UTF-8
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
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
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


def guarded(text: str) -> dict[str, str]:
    """The values that a unit gives to these."""
    entries = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name: entries[name] for name in GUARDED}


def writable(lab: Lab) -> list[str]:
    return [str(lab.state), *([lab.pool.path] if lab.listen else [])]


def unit_text(lab: Lab) -> str:
    return UNIT.format(
        name=lab.name, command=" ".join(lab.command), user=lab.user, state=lab.state, writable=" ".join(writable(lab))
    )
