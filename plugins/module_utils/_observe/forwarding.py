# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the host forwards packets, and what on it needs that. It is read from files; no program has to be there."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Callable
from xml.etree import ElementTree

from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import WAYS_OUT
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_links

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link

SWITCHES = ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding")
# The other names that sysctl files may use for them.
SYNONYMS = {
    "net/ipv4/ip_forward": ("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"),
    "net/ipv6/conf/all/forwarding": ("net/ipv6/conf/all/forwarding",),
}
# By the names that their makers give them.
MAKERS = {
    "docker*": "Docker",
    "br-" + "[0-9a-f]" * 12: "Docker",
    "podman*": "Podman",
    "cni*": "a CNI plugin",
    "flannel*": "Kubernetes",
    "cali*": "Kubernetes",
    "cilium*": "Kubernetes",
    "nerdctl*": "containerd",
    "lxcbr*": "LXC",
    "lxdbr*": "LXD",
    "incusbr*": "Incus",
    "tailscale*": "Tailscale",
    "wg*": "WireGuard",
}
# Of the same name, a file in an earlier directory replaces those in later ones.
SYSCTL_DIRECTORIES = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d")
SYSCTL_FILES = ("etc/sysctl.conf", "etc/ufw/sysctl.conf")
OWN_SYSCTL_FILE = "60-nometal.conf"
SETTINGS = {
    "etc/systemd/network/*.network": r"^\s*(IPForward|IPMasquerade|IPv[46]Forwarding)\s*=\s*(?!no\b|false\b|0\b)\S",
    "etc/systemd/networkd.conf": r"^\s*IPv[46]Forwarding\s*=\s*(?!no\b|false\b|0\b)\S",
    "etc/NetworkManager/system-connections/*": r"^\s*method\s*=\s*shared\s*$",
}
NAT_RULE = re.compile(r"\bmasquerade\b|\bsnat\b", re.IGNORECASE)
# The older iptables makes a table when it is asked for it, so it is asked only where the kernel lists the table.
NAT_SHOWN = {
    "nft": (("list", "ruleset"), ""),
    "iptables-legacy-save": (("-t", "nat"), "proc/net/ip_tables_names"),
    "ip6tables-legacy-save": (("-t", "nat"), "proc/net/ip6_tables_names"),
}


@dataclass(frozen=True)
class Host:
    root: Path = Path("/")
    links: Callable[[], Mapping[str, Link]] = read_links

    def switched_off(self) -> dict[str, str]:
        return {switch: value for switch in SWITCHES if (value := self.value(switch)) == "0"}

    def value(self, switch: str) -> str | None:
        path = self._path(switch)
        return path.read_text(encoding="ascii").strip() if path.exists() else None

    def switch(self, switch: str, value: str) -> None:
        self._path(switch).write_text(value, encoding="ascii")

    def needs(self, switch: str) -> list[str]:
        """What needs it switched on; nothing of the labs' is there any more, or none is yet."""
        found = chain(
            self._libvirt_networks(), self._links(), self._sysctl_files(switch), self._settings(), self._nat_rules()
        )
        return sorted(dict.fromkeys(found))

    def _path(self, switch: str) -> Path:
        return self.root / "proc/sys" / switch

    def _libvirt_networks(self) -> Iterator[str]:
        for status in self.root.glob("run/libvirt/network/*.xml"):
            with suppress(ElementTree.ParseError):
                forward = ElementTree.fromstring(_text(status)).find("network/forward")  # noqa: S314 - libvirt's own file
                if forward is not None and forward.get("mode", "nat") in WAYS_OUT:
                    yield f"libvirt network {status.stem} is running"

    def _links(self) -> Iterator[str]:
        for link in self.links().values():
            makers = [maker for name, maker in MAKERS.items() if fnmatch.fnmatch(link.name, name)]
            if link.kind == "wireguard":
                makers = ["WireGuard"]
            if makers:
                yield f"there is {link.name}, as of {makers[0]}"

    def _sysctl_files(self, switch: str) -> Iterator[str]:
        """The last that sets it decides."""
        by_name: dict[str, Path] = {}
        for directory in SYSCTL_DIRECTORIES:
            for file in (self.root / directory).glob("*.conf"):
                by_name.setdefault(file.name, file)
        by_name.pop(OWN_SYSCTL_FILE, None)
        files = [by_name[name] for name in sorted(by_name)] + [self.root / file for file in SYSCTL_FILES]
        setting = [(file, value) for file in files for value in _sysctl_values(_text(file), switch)]
        if setting and setting[-1][1] != "0":
            yield f"{setting[-1][0]} sets {switch}"

    def _settings(self) -> Iterator[str]:
        for pattern, sets in SETTINGS.items():
            for file in self.root.glob(pattern):
                if re.search(sets, _text(file), re.MULTILINE):
                    yield f"{file} asks for it"

    def _nat_rules(self) -> Iterator[str]:
        for program, (arguments, tables) in NAT_SHOWN.items():
            found = shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin") if self.root == Path("/") else None
            if found and (not tables or "nat" in _text(self.root / tables).split()):
                shown = subprocess.run([found, *arguments], check=False, capture_output=True, text=True).stdout
                yield from nat_rules(program, shown)


def nat_rules(program: str, shown: str) -> Iterator[str]:
    """By table, or for the older iptables, by chain."""
    where = "table nat"
    for line in shown.splitlines():
        if line.startswith("table "):
            where = line.rstrip(" {")
        if NAT_RULE.search(line.partition("comment")[0]):
            yield f"{where} has rules for network address translation ({program})"


def _sysctl_values(text: str, switch: str) -> Iterator[str]:
    for name, value in re.findall(r"^\s*-?\s*([\w./*]+)\s*=\s*(\S+)", text, re.MULTILINE):
        pattern = name.replace(".", "/").lstrip("/")
        if any(fnmatch.fnmatch(synonym, pattern) for synonym in SYNONYMS[switch]):
            yield value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
