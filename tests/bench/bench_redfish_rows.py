# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our service beside sushy-emulator, row by row, as ratios of one run; both without TLS, and ours with logins.

GET of a system by 1 to 64 clients, on connections that are kept and on a new one for each request; VMs that are
switched on at once, and GET meanwhile; the memory of all processes. Of ours alone, nodes that insert one image at once.
On an overloaded host (docs/bmc.md) ours starts VMs one after another, so power-ons are to be measured on an idle one.

python3 tests/bench/bench_redfish_rows.py [--short] [--image-mib 1024]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_redfish import STOCK_PORT, Client, paths, stock  # type: ignore[import-not-found] # beside this file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd
    from support.redfish_service import Node

ROOT = Path(__file__).parents[2]
LOAD, POWER_ON = "load", "power-on"
CLIENTS = (1, 4, 16, 64)
ROUNDS = 3
READ_PAUSE = 0.2  # or the service that answers faster has more to do beside the starts
INSERTING = 5
BUSIEST, AIM_OF_BUSIEST = 16, 4.0
MOST_TIME, MOST_READ_MS = 1.25, 250.0
"""For power-ons at once: of sushy-emulator's time, and of the median of reads meanwhile."""
READ_ROW = "GET beside power-ons: median ms"


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    vms: int
    powered: int
    requests: int
    image_mib: int


WHOLE, SHORT = Size(100, 20, 2000, 64), Size(10, 5, 200, 16)


@dataclass(frozen=True)
class Server:
    """One of the two that are compared."""

    libvirtd: PrivateLibvirtd
    port: int
    authorization: str
    pids: tuple[int, ...]

    def load(self, wishes: list[list[Any]], clients: int, *, keep: bool) -> dict[str, float]:
        """Ask `wishes` (a method, a path, a body) by so many clients at once, in a process of its own."""
        return self._run(LOAD, wishes, clients, keep)

    def power_on(self, systems: list[str]) -> dict[str, float]:
        """The fastest of some rounds, after each of which the VMs are off again."""
        return min((self._run(POWER_ON, systems) for _round in range(ROUNDS)), key=lambda found: found["seconds"])

    def _run(self, what: str, *arguments: Any) -> dict[str, float]:
        words = json.dumps([self.port, self.authorization, *arguments])
        command = [sys.executable, __file__, what]
        found: dict[str, float] = json.loads(self.libvirtd.run(command, input=words, timeout=900).stdout)
        return found

    @property
    def mib(self) -> float:
        """Of all its processes, in which what they share counts once."""
        texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self.pids]
        return sum(int(text.partition("\nPss:")[2].split()[0]) for text in texts) / 1024


async def load(port: int, authorization: str, wishes: list[list[Any]], clients: int, keep: bool) -> dict[str, float]:
    connection = "keep-alive" if keep else "close"
    head = f"HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: {connection}\r\nAuthorization: {authorization}\r\n"
    requests = []
    for method, path, body in wishes:
        text = json.dumps(body) if body else ""
        content = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n" if body else ""
        requests.append(f"{method} {path} {head}{content}\r\n{text}".encode())
    where = {"host": "127.0.0.1", "port": port}
    start = time.perf_counter()
    each = [requests[at::clients] for at in range(clients)]
    running = [Client(where, own, len(own)) for own in each if own]
    await asyncio.gather(*(client.connect() for client in running))
    await asyncio.gather(*(client.done for client in running))
    taken = time.perf_counter() - start
    times = sorted(seconds for client in running for seconds in client.times)
    return {"requests/s": len(times) / taken, "p99 ms": times[len(times) * 99 // 100] * 1000, "seconds": taken}


async def power_on(port: int, authorization: str, systems: list[str]) -> dict[str, float]:
    """All at once, while one client reads."""

    async def reset(kind: str) -> float:
        wishes = [["POST", f"{path}/Actions/ComputerSystem.Reset", {"ResetType": kind}] for path in systems]
        return (await load(port, authorization, wishes, len(wishes), keep=True))["seconds"]

    reads: list[float] = []
    starting = asyncio.create_task(reset("On"))
    while not starting.done() or not reads:
        get = ["GET", systems[len(reads) % len(systems)], None]
        reads.append((await load(port, authorization, [get], 1, keep=False))["seconds"] * 1000)
        await asyncio.wait([starting], timeout=READ_PAUSE)
    await reset("ForceOff")
    return {"seconds": starting.result(), "median ms": statistics.median(reads), "longest ms": max(reads)}


@contextmanager
def ours(libvirtd: PrivateLibvirtd, directory: Path, nodes: list[Node]) -> Iterator[Server]:
    from support import redfish_service  # noqa: PLC0415 - its place is known only now

    service = redfish_service.Service(libvirtd, directory, nodes, tls=False)
    service.config["media"]["networks"] = ["127.0.0.0/8"]
    with service:
        pids = (service.pid, service.broker.pid)
        yield Server(libvirtd, redfish_service.PORT, redfish_service.basic(*service.operator), pids)


@contextmanager
def theirs(libvirtd: PrivateLibvirtd, directory: Path, nodes: list[Node]) -> Iterator[Server]:
    with stock(libvirtd, directory, nodes) as server:
        yield Server(libvirtd, STOCK_PORT, "none", (server.pid,))


def measure(server: Server, nodes: list[Node], size: Size) -> dict[str, float]:
    """What is better the larger it is, ends with /s."""
    rows: dict[str, float] = {}
    systems = paths(nodes)
    gets = [["GET", path, None] for path in (systems * (size.requests // len(systems) + 1))[: size.requests]]
    server.load(gets[: len(systems)], 1, keep=True)  # they are known from now on
    for clients in CLIENTS:
        for keep, name in ((True, "kept"), (False, "new")):
            found = server.load(gets, clients, keep=keep)
            rows[f"GET, {clients} clients, connections {name}: requests/s"] = found["requests/s"]
            rows[f"GET, {clients} clients, connections {name}: p99 ms"] = found["p99 ms"]
    found = server.power_on(systems[: size.powered])
    rows[f"{size.powered} power-ons at once: seconds"] = found["seconds"]
    rows[READ_ROW] = found["median ms"]
    rows["GET beside power-ons: longest ms"] = found["longest ms"]
    rows[f"memory with {size.vms} VMs: MiB"] = server.mib
    return rows


def insert(server: Server, nodes: list[Node], size: Size, image: str) -> str:
    """Several at once, at which sushy-emulator answers 500, as its database is locked."""
    action = "VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
    inserts = [["POST", f"{path}/{action}", {"Image": image}] for path in paths(nodes)[:INSERTING]]
    seconds = server.load(inserts, INSERTING, keep=True)["seconds"]
    return f"{INSERTING} nodes insert {size.image_mib} MiB at once: {seconds:.1f} seconds\n"


def compare(size: Size) -> int:
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bmc")]
    from support import image_server, private_libvirtd, redfish_service  # noqa: PLC0415 - as above

    with private_libvirtd.start() as libvirtd, tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        image_server.write_iso(directory / "boot.iso", size.image_mib << 20)
        nodes = [redfish_service.Node(f"vm{at}") for at in range(size.vms)]
        redfish_service.define(libvirtd, nodes)
        with theirs(libvirtd, directory, nodes) as server:
            yardstick = measure(server, nodes, size)
        with image_server.start(libvirtd, directory) as web, ours(libvirtd, directory, nodes) as server:
            found = measure(server, nodes, size)
            sys.stdout.write(insert(server, nodes, size, web.url("/boot.iso")))
    return judge(found, yardstick)


def judge(found: dict[str, float], yardstick: dict[str, float]) -> int:
    """Aims that are missed are reported; too few requests, slow power-ons and slow reads meanwhile fail."""
    fails = 0
    for row, value in found.items():
        served = row.endswith("/s")
        better = value / yardstick[row] if served else yardstick[row] / value
        aim = AIM_OF_BUSIEST if served and row.startswith(f"GET, {BUSIEST} clients, connections kept") else 1.0
        verdict = "" if better >= aim else f" (aim {aim} is missed)"
        fails += served and better < 1
        fails += "power-ons at once" in row and value > MOST_TIME * yardstick[row]
        fails += row == READ_ROW and value > MOST_READ_MS
        sys.stdout.write(
            f"{row}: {value:.1f}, sushy-emulator {yardstick[row]:.1f}: {better:.2f} times as good{verdict}\n"
        )
    return 1 if fails else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="few VMs and requests, to see that it works")
    parser.add_argument("--image-mib", type=int, help="how large the image is that nodes insert")
    chosen = parser.parse_args()
    size = SHORT if chosen.short else WHOLE
    if chosen.image_mib:
        size = Size(size.vms, size.powered, size.requests, chosen.image_mib)
    return compare(size)


if __name__ == "__main__":
    if sys.argv[1:] in ([LOAD], [POWER_ON]):
        measured = load if sys.argv[1] == LOAD else power_on
        sys.stdout.write(json.dumps(asyncio.run(measured(*json.load(sys.stdin)))))
        sys.exit(0)
    sys.exit(main())
