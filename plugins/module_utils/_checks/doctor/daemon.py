# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import blocker, blocker_if, ok
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import UnmeasurableError, program, within

# The path is fixed in the installer.
SOCKET = "/var/run/libvirt/libvirt-sock"
SECONDS = 4

ANSWERS, ABSENT, REFUSES, SILENT, FORBIDDEN = "answers", "absent", "refuses", "silent", "forbidden"

# One call of libvirt's protocol: length, program, version, procedure, type, serial, status.
CALL = struct.Struct(">IIIiIIi")
REMOTE_PROGRAM, REMOTE_VERSION, AUTH_LIST = 0x20008086, 1, 66


@dataclass(frozen=True)
class Interfaces:
    """As the daemon lists them; `bindings`: whether Python can import libvirt at all."""

    bindings: bool
    names: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class Daemon:
    installed: bool
    socket: str
    interfaces: Interfaces | None = None  # only if the daemon answers


def measure_daemon(_needs: Needs) -> Daemon:
    state = _state_of_socket()
    return Daemon(bool(program("libvirtd", "virtqemud")), state, _interfaces() if state == ANSWERS else None)


def _state_of_socket() -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(SECONDS)
        try:
            client.connect(SOCKET)
            client.sendall(CALL.pack(CALL.size, REMOTE_PROGRAM, REMOTE_VERSION, AUTH_LIST, 0, 0, 0))
            return ANSWERS if client.recv(CALL.size) else REFUSES
        except FileNotFoundError:
            return ABSENT
        except PermissionError:
            return FORBIDDEN
        except (ConnectionError, BrokenPipeError):
            return REFUSES
        except (TimeoutError, socket.timeout, BlockingIOError):
            return SILENT


def judge_daemon(daemon: Daemon, needs: Needs) -> Finding:
    if daemon.socket == ANSWERS:
        return ok("libvirt.answers", f"the daemon answers on {SOCKET}")
    if daemon.socket == FORBIDDEN:
        return blocker("libvirt.forbidden", f"no permission to open {SOCKET}", "Run as root: become: true.")
    if daemon.socket == SILENT:
        silent = f"nothing answers on {SOCKET} within {SECONDS} s"
        return blocker("libvirt.hangs", silent, f"The daemon hangs: {_restart()}")
    if not daemon.installed:
        if needs.prepared:
            return blocker(
                "libvirt.not-installed", "libvirt is not installed", "Install the distribution's libvirt daemon."
            )
        return ok("libvirt.not-installed-yet", "libvirt is not installed yet; host_prep installs it")
    what = f"{SOCKET} does not exist" if daemon.socket == ABSENT else f"{SOCKET} refuses connections"
    advice = _restart() if needs.prepared else "host_prep starts it."
    code = "libvirt.no-socket" if daemon.socket == ABSENT else "libvirt.refuses"
    return blocker_if(needs.prepared, code, f"libvirt is installed, but {what}", advice)


def _restart() -> str:
    return (
        "restart libvirtd (libvirtd.socket), or virtproxyd.socket where libvirt runs as modular daemons, and read "
        "its log (journalctl -u libvirtd -u virtproxyd)."
    )


def _interfaces() -> Interfaces:
    try:
        import libvirt  # noqa: PLC0415  absent on a fresh host
    except ImportError:
        return Interfaces(bindings=False)
    try:
        return Interfaces(True, tuple(within(SECONDS, lambda: _active_interfaces(libvirt))))
    except (libvirt.libvirtError, UnmeasurableError) as error:
        return Interfaces(True, failure=str(error))


def _active_interfaces(libvirt: Any) -> list[str]:
    libvirt.registerErrorHandler(lambda *_: None, None)  # it would print to stderr
    connection = libvirt.openReadOnly(f"qemu+unix:///system?socket={SOCKET}")
    try:
        return sorted(interface.name() for interface in connection.listAllInterfaces())
    finally:
        connection.close()


def judge_interfaces(daemon: Daemon, needs: Needs) -> Finding:
    found = daemon.interfaces
    if not found:
        return ok("libvirt_interfaces.no-daemon", "not checked: no daemon answers")
    if not found.bindings:
        return ok("libvirt_interfaces.no-bindings", "not checked: this Python has no libvirt bindings")
    if found.failure:
        return blocker_if(
            needs.prepared and needs.install,
            "libvirt_interfaces.not-listed",
            f"libvirt does not list the host's interfaces: {found.failure}",
            "The installer looks for its bridge there: start virtinterfaced.socket, or install "
            "libvirt's interface driver.",
            reason=found.failure,
        )
    names = ", ".join(found.names) or "none"
    return ok(
        "libvirt_interfaces.listed", f"libvirt lists the host's interfaces: {names}", interfaces=list(found.names)
    )
