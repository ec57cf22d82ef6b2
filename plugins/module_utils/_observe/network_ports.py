# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a network's bridge has when it was made anew: what was plugged in, and IPv6 addresses that can be used."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import ports_of, read_links

RUN = Path("/run/nometal")
HOOK_TEXT = """\
#!/usr/bin/python3
# Made by nometal.ipi and removed with its network.
# libvirt makes a network's bridge anew when it starts the network, and leaves running guests unplugged: this plugs
# those back in that were on it, unless they are plugged in elsewhere by now. It also ends IPv6's search for duplicates
# of the host's addresses: as long as that lasts, without a port on the bridge for ever, they cannot be used.
import sys

NETWORK, BRIDGE, SHARES_LAN = {network!r}, {bridge!r}, {shares_lan!r}
if sys.argv[1:] != [NETWORK, "started"]:
    sys.exit()  # at once: each network's start waits for the entries of all others

import glob
import os
import subprocess
from xml.etree import ElementTree


def taps():
    for guest in glob.glob("/run/libvirt/qemu/*.xml"):
        try:
            interfaces = ElementTree.parse(guest).findall("domain/devices/interface")
        except (OSError, ElementTree.ParseError):  # the guest is just ending
            continue
        for interface in interfaces:
            if any(source.get("bridge") == BRIDGE for source in interface.iter("source")):
                yield from (target.get("dev") for target in interface.findall("target"))


def ip(*words):
    return subprocess.run(["ip", *words], check=False, stdout=subprocess.PIPE, universal_newlines=True).stdout


if os.path.isdir(f"/sys/class/net/{{BRIDGE}}/bridge"):
    shown = ip("-6", "-oneline", "address", "show", "dev", BRIDGE, "scope", "global", "tentative")
    for address in [line.split()[3] for line in shown.splitlines()]:
        ip("address", "delete", address, "dev", BRIDGE)
        ip("address", "add", address, "nodad", "dev", BRIDGE)
    if SHARES_LAN:  # where the host has another address, for which it is not to answer here as well
        with open(f"/proc/sys/net/ipv4/conf/{{BRIDGE}}/arp_ignore", "w") as setting:
            setting.write("1")
    for tap in taps():
        if os.path.exists(f"/sys/class/net/{{tap}}") and not os.path.exists(f"/sys/class/net/{{tap}}/master"):
            ip("link", "set", "dev", tap, "master", BRIDGE)
"""


def hook_text(network: str, bridge: str, *, shares_lan: bool = False) -> str:
    return HOOK_TEXT.format(network=network, bridge=bridge, shares_lan=shares_lan)


@dataclass(frozen=True)
class PortsNote:
    """The ports of a bridge, written down while its network is stopped: a run that is killed then leaves it behind."""

    network: str

    def read(self) -> tuple[str, ...]:
        with suppress(FileNotFoundError, ValueError):
            return tuple(json.loads(self._path.read_text(encoding="utf-8")))
        return ()

    def take(self, bridge: str) -> None:
        """Beside what an earlier run has noted: its ports may be unplugged still."""
        ports = sorted({*self.read(), *ports_of(bridge, read_links())})
        files.write_whole(self._path, json.dumps(ports), 0o644)

    def forget(self) -> None:
        files.remove(self._path)
        files.remove_empty(RUN)

    @property
    def _path(self) -> Path:
        return RUN / f"{self.network}.ports"


def reconnect(ports: tuple[str, ...], bridge: str) -> None:
    """Those that still exist, and are not plugged in elsewhere meanwhile."""
    links = read_links()
    for port in ports:
        if port in links and not links[port].master:
            run("ip", "link", "set", "dev", port, "master", bridge)
