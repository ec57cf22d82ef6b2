# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import re
import socket
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, program, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, noting, refuse_all
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import host_server
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import (
    Settings,
    dnsmasq_domains,
    dnsmasq_lines,
    read_lines,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Lab

ENTRY = HookEntry(host_server.ENTRY)


class ResolvConf:
    """A name server of the host's own, put first in resolv.conf while a lab's network is up. All labs share it."""

    name = "resolv.conf"

    def wanted(self, lab: Lab) -> Settings:
        return Settings(lines=_lines(lab))

    def read(self, lab: Lab) -> Settings | None:
        lines = read_lines(_file(lab))
        # Removal may have been cut short when only what the labs share was left.
        if lines is None and (host_server.labs() or not _remains()):
            return None
        return Settings(
            lines or (), kept=ENTRY.read() == program.text_of(host_server), in_force=host_server.is_settled()
        )

    def held(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        return ((file.stem, dnsmasq_domains(file)) for file in host_server.LABS.glob("*.lab"))

    def refuse_conflicts(self) -> None:
        """Say what stands in the way, before anything is changed."""
        problems: list[str] = []
        with noting(problems):
            _refuse_unusable_resolv_conf()
        with noting(problems):
            if not host_server.pid():
                _refuse_taken_port()
        refuse_all(problems)

    def write(self, lab: Lab) -> None:
        ENTRY.write(program.text_of(host_server))
        files.write_whole(_file(lab), text_of(_lines(lab)), 0o644)

    def evidence(self, _lab: Lab) -> str:
        server = f"dnsmasq on {host_server.ADDRESS}, the first name server in {host_server.RESOLV_CONF}"
        return f"{server}, goes by {host_server.SERVERS}, and `journalctl -t dnsmasq` shows its log"

    def apply(self, _lab: Lab, *, anew: bool) -> None:
        try:
            host_server.settle(anew=anew)
        except host_server.HostServerError as error:
            raise OperatorError(f"The host's own name server for the labs: {error}") from error

    def remove(self, lab: Lab) -> None:
        files.remove(_file(lab))
        self.apply(lab, anew=False)
        if not host_server.labs():
            removal.remove_known(host_server.STATE, host_server.KNOWN)
            ENTRY.remove()
            files.remove_empty(host_server.LABS)
            files.remove_empty(host_server.LABS.parent)


def _file(lab: Lab) -> Path:
    return host_server.LABS / f"{lab.owner}.lab"


def _lines(lab: Lab) -> tuple[str, ...]:
    made = f"# Made by nometal.ipi for lab {lab.owner} and removed with it."
    return (made, f"link {lab.link}", *dnsmasq_lines(lab))


def _remains() -> bool:
    text = host_server.read_resolv_conf()
    return bool(
        ENTRY.read()
        or removal.has_known(host_server.STATE, host_server.KNOWN)
        or host_server.without_line(text) != text
    )


def _refuse_unusable_resolv_conf() -> None:
    file = host_server.RESOLV_CONF
    if not file.exists():
        raise OperatorError(f"{file} is missing: write one that names the host's name servers.")
    problems = []
    if re.search(r"^options\s.*\brotate\b", host_server.read_resolv_conf(), re.MULTILINE):
        problems.append(
            f"{file} has `options rotate`, with which questions for the lab's names go to other servers too: "
            "take `rotate` out."
        )
    if not os.access(file, os.W_OK):
        problems.append(
            f"{file} cannot be written, but has to tell the host where to ask for the lab's names: "
            "make it writable (`lsattr` shows whether it is immutable)."
        )
    refuse_all(problems)


def _refuse_taken_port() -> None:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                # Under TCP, else connections that were just closed would stand in the way.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(kind == socket.SOCK_STREAM))
                probe.bind((host_server.ADDRESS, 53))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise OperatorError(
                        f"Another name server holds port 53 of {host_server.ADDRESS}, or of all addresses "
                        "(`ss -lnp sport = 53` names it): have it listen on its own addresses only "
                        "(dnsmasq: bind-interfaces; unbound: interface)."
                    ) from error
                raise
