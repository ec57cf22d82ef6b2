# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GET of a system with 16 clients and 100 VMs: our service with TLS and logins beside sushy-emulator without either.

Then the same beside 500 connections that never come to a request, and what a body without end costs.

python3 tests/bench/bench_redfish.py [requests], 50000 of them unless told otherwise
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd
    from support.redfish_service import Node, Service

ROOT = Path(__file__).parents[2]
LOAD = "load"
VMS, CLIENTS, REQUESTS, WARM_UP = 100, 16, 50_000, 2000
STOCK_PORT, STOCK_REQUESTS = 8000, 3000
LEAST_RATIO, MOST_P99_MS, MOST_MIB = 1.0, 60.0, 120.0
MOST_MORE_MIB, MOST_MORE_FDS = 4.0, 4
BESIDE_REQUESTS, MOST_P99_BESIDE = 2000, 4.0  # times the p99 without them
MOST_KIB_EACH = 120.0  # of memory for such a connection: most of it is OpenSSL's
MOST_MIB_FOR_BODY = 16.0
HEAD_END, MARK, CLOSING, OK = b"\r\n\r\n", b"content-length:", b"connection: close", b"HTTP/1.1 20"


class Client(asyncio.Protocol):
    """Asks one thing after the other, on one connection if the server keeps it."""

    def __init__(self, where: dict[str, Any], requests: list[bytes], count: int) -> None:
        self.where, self.requests, self.left = where, requests, count
        self.times: list[float] = []
        self.done = asyncio.get_running_loop().create_future()
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.ask()

    def ask(self) -> None:
        self.asked = time.perf_counter()
        self.transport.write(self.requests[self.left % len(self.requests)])

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, end, body = self.received.partition(HEAD_END)
        if not end or len(body) < int(head.lower().partition(MARK)[2].partition(b"\r\n")[0] or b"0"):  # none with 204
            return
        self.times.append(time.perf_counter() - self.asked)
        if not head.startswith(OK):
            self.done.set_exception(RuntimeError(self.received.decode()))
            return
        self.received, self.left = b"", self.left - 1
        if self.left and CLOSING not in head.lower():
            self.ask()
        elif not self.left:
            self.transport.close()
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.done.done():
            return
        if exc or self.received:
            self.done.set_exception(exc or RuntimeError("The connection was closed"))
        else:
            self.connecting = asyncio.create_task(self.connect())

    async def connect(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, **self.where)


async def load(port: int, ca: str | None, authorization: str, count: int, paths: list[str]) -> dict[str, float]:
    """As a program beside the service; prints what `main` reads."""
    context = ssl.create_default_context(cafile=ca) if ca else None
    headers = f"Host: 127.0.0.1\r\nConnection: keep-alive\r\nAuthorization: {authorization}\r\n\r\n"
    requests = [f"GET {path} HTTP/1.1\r\n{headers}".encode() for path in paths]
    start = time.perf_counter()
    where = {"host": "127.0.0.1", "port": port, "ssl": context}
    clients = [Client(where, requests[at:] + requests[:at], count // CLIENTS) for at in range(CLIENTS)]
    await asyncio.gather(*(client.connect() for client in clients))
    await asyncio.gather(*(client.done for client in clients))
    times = sorted(taken for client in clients for taken in client.times)
    return {
        "requests/s": len(times) / (time.perf_counter() - start),
        "p50 ms": times[len(times) // 2] * 1000,
        "p99 ms": times[len(times) * 99 // 100] * 1000,
    }


@dataclass(frozen=True)
class Server:
    """One of the two that are compared."""

    libvirtd: PrivateLibvirtd
    pid: int
    arguments: tuple[Any, ...]

    def load(self, count: int) -> dict[str, float]:
        words = json.dumps([*self.arguments[:3], count, self.arguments[3]])
        return json.loads(self.libvirtd.run([sys.executable, __file__, LOAD], input=words, timeout=900).stdout)

    @property
    def mib(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    @property
    def fds(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def text(self, figures: dict[str, float]) -> str:
        times = ", ".join(f"{value:.1f} {name}" for name, value in figures.items())
        return f"{times}; {self.mib:.0f} MiB, {self.fds} file descriptors\n"


@contextmanager
def ours(libvirtd: PrivateLibvirtd, directory: Path, nodes: list[Node]) -> Iterator[tuple[Server, Service]]:
    from support import redfish_service  # noqa: PLC0415 - its place is known only now

    with redfish_service.Service(libvirtd, directory, nodes) as service:
        authorization = redfish_service.basic(*service.operator)
        arguments = (redfish_service.PORT, str(service.authority.ca), authorization, paths(nodes))
        yield Server(libvirtd, service.pid, arguments), service


@contextmanager
def stock(libvirtd: PrivateLibvirtd, directory: Path, nodes: list[Node]) -> Iterator[Server]:
    from support import processes  # noqa: PLC0415 - as above

    program = Path(sys.executable).with_name("sushy-emulator")
    words = [str(program), "--interface", "127.0.0.1", "--port", str(STOCK_PORT), "--libvirt-uri", "qemu:///system"]
    with (directory / "stock.log").open("wb") as log:
        process = subprocess.Popen(libvirtd.command(words), stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{STOCK_PORT}/redfish/v1/"
        libvirtd.run(["curl", "-s", "--retry", "50", "--retry-connrefused", "--retry-delay", "1", url])
        pid = processes.descendants(process.pid)[-1]
        yield Server(libvirtd, pid, (STOCK_PORT, None, "none", paths(nodes)))
        os.kill(pid, 9)
    finally:
        process.kill()
        process.wait()


def paths(nodes: list[Node]) -> list[str]:
    return [f"/redfish/v1/Systems/{node.uuid}" for node in nodes]


def main(count: int) -> int:
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bmc")]
    from support import private_libvirtd, redfish_service  # noqa: PLC0415 - as above

    with private_libvirtd.start() as libvirtd, tempfile.TemporaryDirectory() as directory:
        nodes = [redfish_service.Node(f"vm{at}") for at in range(VMS)]
        redfish_service.define(libvirtd, nodes)
        with stock(libvirtd, Path(directory), nodes) as server:
            server.load(WARM_UP)
            yardstick = server.load(STOCK_REQUESTS)
            sys.stdout.write(f"{VMS} VMs, {CLIENTS} clients, sushy-emulator, plain: {server.text(yardstick)}")
        with ours(libvirtd, Path(directory), nodes) as (server, service):
            server.load(WARM_UP)
            mib, fds = server.mib, server.fds
            figures = server.load(count)
            sys.stdout.write(f"{VMS} VMs, {CLIENTS} clients, ours, TLS and login: {server.text(figures)}")
            good = [
                judge(figures, yardstick, server, server.mib - mib, server.fds - fds),
                beside_unfinished(figures, server, service),
                body_without_end(server, service),
            ]
            return 0 if all(good) else 1


def judge(
    figures: dict[str, float], yardstick: dict[str, float], server: Server, more_mib: float, more_fds: int
) -> bool:
    ratio = figures["requests/s"] / yardstick["requests/s"]
    sys.stdout.write(
        f"requests/s: ratio {ratio:.2f} (limit {LEAST_RATIO}); p99 limit {MOST_P99_MS:.0f} ms; limit {MOST_MIB:.0f} MiB"
        f"; after the requests {more_mib:+.1f} MiB, {more_fds:+d} file descriptors\n"
    )
    good = ratio >= LEAST_RATIO and figures["p99 ms"] <= MOST_P99_MS and server.mib <= MOST_MIB
    return good and more_mib <= MOST_MORE_MIB and more_fds <= MOST_MORE_FDS


def beside_unfinished(figures: dict[str, float], server: Server, service: Service) -> bool:
    from support import unfinished  # noqa: PLC0415 - as above
    from support.waiting import wait_until  # noqa: PLC0415 - as above

    count, now_open, before = sum(group.count for group in unfinished.GROUPS.values()), [0], server.mib

    def count_open(more: int) -> None:
        now_open[0] += more

    with ThreadPoolExecutor(1) as attacker:
        attack = attacker.submit(service.inside, asyncio.run, unfinished.attack(service, count_open))
        wait_until("all are open", lambda: now_open[0] == count, seen=lambda: now_open)
        beside = server.load(BESIDE_REQUESTS)
        each = (server.mib - before) * 1024 / count
        attack.result()
    ratio = beside["p99 ms"] / figures["p99 ms"]
    sys.stdout.write(
        f"beside {count} unfinished connections: p99 {beside['p99 ms']:.1f} ms, ratio {ratio:.2f} "
        f"(limit {MOST_P99_BESIDE}); {each:.0f} KiB each (limit {MOST_KIB_EACH:.0f})\n"
    )
    return ratio <= MOST_P99_BESIDE and each <= MOST_KIB_EACH


def body_without_end(server: Server, service: Service) -> bool:
    from support import unfinished  # noqa: PLC0415 - as above

    before = server.mib
    service.inside(unfinished.send_without_end, service, unfinished.PROMISE + b"Transfer-Encoding: chunked\r\n\r\n")
    more = server.mib - before
    sys.stdout.write(f"after a body without end {more:+.1f} MiB (limit {MOST_MIB_FOR_BODY:.0f})\n")
    return more <= MOST_MIB_FOR_BODY


if __name__ == "__main__":
    if LOAD in sys.argv:
        sys.stdout.write(json.dumps(asyncio.run(load(*json.load(sys.stdin)))))
        sys.exit(0)
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS))
