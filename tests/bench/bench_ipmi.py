# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Twenty IPMI BMCs: what their memory is beside as many that share nothing, after a flood, how soon one is back,
and how long an answer takes when many clients ask one of them, or one each.

python3 tests/bench/bench_ipmi.py
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.ipmi_lab import IpmiLab

NODES, PACKETS = 20, 12_000
MOST_MEMORY, MOST_AFTER_FLOOD, MOST_TO_BE_BACK = 0.5, 1.05, 1.0
CLIENTS, QUESTIONS = 16, 200
MOST_TOGETHER = MOST_APART = 2.0
# Each opens a session from a port of its own.
FLOOD = """
import socket
opening = bytes.fromhex("0600ff07" "0610" "00000000" "00000000" "2000" "00040000" "a4a3a2a0"
                        "0000000801000000" "0100000801000000" "0200000801000000")
for turn in range({packets}):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(opening, ("{address}", {port}))
"""


def kilobytes(pid: int, kind: str) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(map(int, re.findall(rf"^{kind}:\s+(\d+) kB", rollup, re.MULTILINE)))


def seconds(action: Callable[[], object]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def memory(lab: IpmiLab) -> float:
    everyone = lab.processes("nometal_bmc.ipmi.supervisor")
    return sum(kilobytes(pid, "Pss") for pid in everyone) / sum(kilobytes(pid, "Rss") for pid in everyone)


def after_flood(lab: IpmiLab) -> float:
    from support import ipmi_lab  # noqa: PLC0415 - its place is known only now

    pid = lab.bmcs()[0]
    before = kilobytes(pid, "Rss")
    program = FLOOD.format(packets=PACKETS, address=ipmi_lab.ADDRESS, port=ipmi_lab.FIRST_PORT)
    lab.libvirtd.run([sys.executable, "-c", program])
    lab.tells(0, "power", "status")
    return kilobytes(pid, "Rss") / before


def to_be_back(lab: IpmiLab) -> float:
    """Beside a restart of the whole service."""
    from support.waiting import wait_until  # noqa: PLC0415 - as above

    def restart() -> None:
        lab.start_service()
        wait_until("all are there", lambda: len(lab.bmcs()) == NODES and lab.answers(0) and lab.answers(NODES - 1))

    def be_back() -> None:
        killed = lab.bmcs()[3]
        os.kill(killed, signal.SIGKILL)
        wait_until("it is back", lambda: lab.bmcs().get(3, killed) != killed and lab.answers(3))

    lab.stop_service()
    whole = seconds(restart)
    return seconds(be_back) / whole


def answers(lab: IpmiLab, nodes: Sequence[int]) -> float:
    """Milliseconds for each, where each of these nodes has a client that asks for its power, in one session."""
    from support.ipmi_lab import ADDRESS, FIRST_PORT, PASSWORD, USER  # noqa: PLC0415 - as above

    questions = lab.libvirtd.path("/run/libvirt/bmc/questions")
    questions.write_text("power status\n" * QUESTIONS)
    to_one = ["ipmitool", "-I", "lanplus", "-H", ADDRESS, "-U", USER, "-P", PASSWORD]
    commands = [[*to_one, "-p", str(FIRST_PORT + node), "exec", "/run/libvirt/bmc/questions"] for node in nodes]

    def ask() -> None:
        clients = [subprocess.Popen(lab.libvirtd.command(command), stdout=subprocess.PIPE) for command in commands]
        for client in clients:
            assert client.communicate()[0].count(b"Chassis Power is off") == QUESTIONS

    return seconds(ask) * 1000 / QUESTIONS / len(nodes)


def main() -> int:
    root = Path(__file__).parents[2]
    sys.path.append(str(root / "tests"))
    from support import ipmi_lab, private_libvirtd  # noqa: PLC0415 - as above

    with private_libvirtd.start() as libvirtd, ipmi_lab.start(libvirtd, nodes=NODES) as lab:
        for node in range(NODES):
            lab.tells(node, "power", "status")
        alone, together, apart = (answers(lab, nodes) for nodes in ([0], [0] * CLIENTS, range(CLIENTS)))
        sys.stdout.write(f"milliseconds of an answer: {alone:.1f}, {together:.1f}, {apart:.1f}\n")
        rows = [
            (f"an answer when {CLIENTS} clients ask one, beside one client", together / alone, MOST_TOGETHER),
            (f"an answer when {CLIENTS} clients ask one each, beside one client", apart / alone, MOST_APART),
            ("memory, beside BMCs that share none", memory(lab), MOST_MEMORY),
            (f"memory of one after {PACKETS} sessions", after_flood(lab), MOST_AFTER_FLOOD),
            ("a killed one is back, beside a restart of all", to_be_back(lab), MOST_TO_BE_BACK),
        ]
    for name, ratio, limit in rows:
        sys.stdout.write(f"{NODES} IPMI BMCs, {name}: ratio {ratio:.2f} (limit {limit})\n")
    return 0 if all(ratio <= limit for _name, ratio, limit in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
