# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import shlex
import socket
import subprocess
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import ENTRIES, HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Lab


class SystemdResolved:
    """Settings of the lab's link. They vanish with it, so a hook entry sets them whenever a network has started."""

    name = "systemd-resolved"

    @staticmethod
    def runs() -> bool:
        ask = ["systemctl", "is-active", "--quiet", "systemd-resolved.service"]
        return Path("/run/systemd/system").is_dir() and subprocess.run(ask, check=False).returncode == 0

    def wanted(self, lab: Lab) -> Settings:
        return Settings(lines=tuple(_script(lab).splitlines()))

    def read(self, lab: Lab) -> Settings | None:
        text = _entry(lab).read()
        return None if text is None else Settings(tuple(text.splitlines()), in_force=_is_in_force(lab))

    def write(self, lab: Lab) -> None:
        _entry(lab).write(_script(lab))

    def apply(self, lab: Lab, *, anew: bool) -> None:
        if _exists(lab.link):
            for command in _commands(lab):
                run(*command)
        if anew:
            run("resolvectl", "flush-caches")

    def evidence(self, lab: Lab) -> str:
        return f"`resolvectl status {lab.link}` shows what systemd-resolved goes by"

    def remove(self, lab: Lab) -> None:
        """The link is that of the entry: the lab may have another one by now, or be known by its name alone."""
        link = _link_in(_entry(lab).read() or "") or lab.link
        if _exists(link) and self.runs():
            run("resolvectl", "revert", link)
        _entry(lab).remove()

    def held(self) -> Iterator[tuple[str, list[str]]]:
        return ((entry.stem, _domains_in(entry)) for entry in ENTRIES.glob("*.resolver"))


def _entry(lab: Lab) -> HookEntry:
    return HookEntry(f"{lab.owner}.resolver")


def _commands(lab: Lab) -> list[list[str]]:
    return [
        ["resolvectl", "dns", lab.link, *lab.servers],
        ["resolvectl", "domain", lab.link, *(f"~{domain}" for domain in lab.domains)],
        ["resolvectl", "default-route", lab.link, "no"],
        ["resolvectl", "dnssec", lab.link, "no"],  # the lab's zone is not signed
        ["resolvectl", "dnsovertls", lab.link, "no"],
    ]


def _script(lab: Lab) -> str:
    commands = "".join(f"{shlex.join(command)}\n" for command in _commands(lab))
    return (
        f"#!/bin/sh\n# Made by nometal.ipi for lab {lab.owner} and removed with it.\n"
        "# systemd-resolved forgets the settings of a link when the link goes.\n"
        f"[ -e /sys/class/net/{lab.link} ] || exit 0\n{commands}"
    )


def _link_in(script: str) -> str:
    found = re.search(r"^\[ -e /sys/class/net/(\S+) \]", script, re.MULTILINE)
    return found[1] if found else ""


def _domains_in(entry: Path) -> list[str]:
    commands = re.findall(r"^resolvectl domain .*", entry.read_text(encoding="utf-8"), re.MULTILINE)
    return [word[1:] for command in commands for word in shlex.split(command) if word.startswith("~")]


def _is_in_force(lab: Lab) -> bool:
    """So is nothing, as long as the link is down."""
    if not _exists(lab.link):
        return True
    return SystemdResolved.runs() and all(_answer(command) == _values(command[3:]) for command in _commands(lab))


def _answer(command: list[str]) -> frozenset[str]:
    """What resolvectl says when it is given no value, as in `Link 3 (nm-ha): 192.168.126.1`."""
    return _values(run(*command[:3]).partition("): ")[2].split())


def _values(words: list[str]) -> frozenset[str]:
    return frozenset(_canonical(word) for word in words)


def _canonical(word: str) -> str:
    try:
        return str(ip_address(word))
    except ValueError:
        return word


def _exists(link: str) -> bool:
    return link in (name for _index, name in socket.if_nameindex())
