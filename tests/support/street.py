"""The world outside a lab host: a network namespace with a switch, a router's address and one address far away."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Addresses reserved for documentation: no lab uses them.
ROUTER = "198.51.100.1"
ROUTER_V6 = "2001:db8:51::1"
OUTSIDE = "203.0.113.1"
OUTSIDE_V6 = "2001:db8:113::1"
SWITCH = "street"

_SETUP = f"""
ip link set lo up
ip address add {OUTSIDE}/32 dev lo
ip address add {OUTSIDE_V6}/128 dev lo
ip link add {SWITCH} type bridge
ip address add {ROUTER}/24 dev {SWITCH}
ip address add {ROUTER_V6}/64 dev {SWITCH} nodad
ip link set {SWITCH} up
"""


def house_address(number: int) -> str:
    return f"198.51.100.{number}"


def house_address_v6(number: int) -> str:
    return f"2001:db8:51::{number}"


class Street:
    """Held by a descriptor only: it ends with the last process that has it open, its creator or a lab host on it."""

    def __init__(self) -> None:
        setup = ["unshare", "--net", "sh", "-ec", f"{_SETUP}\necho ready; read -r _"]
        with subprocess.Popen(setup, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            if holder.stdout is None or holder.stdout.readline() != b"ready\n":
                raise RuntimeError("The street's network namespace could not be set up; see the messages above.")
            self.fd = os.open(f"/proc/{holder.pid}/ns/net", os.O_RDONLY)

    @property
    def network(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command out there."""
        return ["nsenter", f"--net={self.network}", *command]

    def run(
        self, command: Sequence[str], *, check: bool = True, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command out there, with this machine's files."""
        return subprocess.run(self.command(command), check=check, timeout=timeout, text=True, capture_output=True)

    def close(self) -> None:
        os.close(self.fd)
