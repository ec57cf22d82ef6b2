# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import Finding, blocker, blocker_if, ok
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
        return ok(f"the daemon answers on {SOCKET}")
    if daemon.socket == FORBIDDEN:
        return blocker(f"no permission to open {SOCKET}", "Run as root: become: true.")
    if daemon.socket == SILENT:
        return blocker(f"nothing answers on {SOCKET} within {SECONDS} s", f"The daemon hangs: {_restart()}")
    if not daemon.installed:
        if needs.prepared:
            return blocker("libvirt is not installed", "Install the distribution's libvirt daemon.")
        return ok("libvirt is not installed yet; host_prep installs it")
    what = f"{SOCKET} does not exist" if daemon.socket == ABSENT else f"{SOCKET} refuses connections"
    advice = _restart() if needs.prepared else "host_prep starts it."
    return blocker_if(needs.prepared, f"libvirt is installed, but {what}", advice)


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
        return ok("not checked: no daemon answers")
    if not found.bindings:
        return ok("not checked: this Python has no libvirt bindings")
    if found.failure:
        return blocker_if(
            needs.prepared and needs.install,
            f"libvirt does not list the host's interfaces: {found.failure}",
            "The installer looks for its bridge there: start virtinterfaced.socket, or install "
            "libvirt's interface driver.",
        )
    return ok(f"libvirt lists the host's interfaces: {', '.join(found.names) or 'none'}")
