# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""20 VMs switched on at once: our service beside sushy-emulator, and how long reads take meanwhile.

python3 tests/bench/bench_power.py
"""

from __future__ import annotations

import http.client
import json
import ssl
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SWITCH = "switch"
VMS, ROUNDS = 20, 3
MOST_TIME, MOST_READ_MS = 1.25, 250.0
"""Of stock's time, and of the median of reads while the VMs start."""
TIMEOUT = 300
READ_PAUSE = 0.2  # or who answers faster has more to do beside the starts


class Bmcs:
    """Clients of a service, as a program in its network."""

    def __init__(self, port: int, ca: str | None, authorization: str, paths: list[str]) -> None:
        self._port, self._authorization, self._paths = port, authorization, paths
        self._context = ssl.create_default_context(cafile=ca) if ca else None

    def switched_on(self) -> dict[str, float]:
        reads: list[float] = []
        over = threading.Event()
        reader = threading.Thread(target=self._read, args=[reads, over])
        reader.start()
        start = time.perf_counter()
        self._reset_all("On")
        seconds = time.perf_counter() - start
        over.set()
        reader.join()
        self._reset_all("ForceOff")
        return {"seconds": seconds, "read ms": statistics.median(reads) * 1000, "longest read ms": max(reads) * 1000}

    def _reset_all(self, kind: str) -> None:
        with ThreadPoolExecutor(len(self._paths)) as clients:
            list(clients.map(lambda path: self._ask("POST", f"{path}/Actions/ComputerSystem.Reset", kind), self._paths))

    def _read(self, reads: list[float], over: threading.Event) -> None:
        while not over.is_set() or not reads:
            start = time.perf_counter()
            self._ask("GET", self._paths[len(reads) % len(self._paths)])
            reads.append(time.perf_counter() - start)
            over.wait(READ_PAUSE)

    def _ask(self, method: str, path: str, reset_type: str | None = None) -> None:
        headers = {"Authorization": self._authorization, "Content-Type": "application/json"}
        where: dict[str, Any] = {"host": "127.0.0.1", "port": self._port, "timeout": TIMEOUT}
        connection = (
            http.client.HTTPSConnection(**where, context=self._context)
            if self._context
            else http.client.HTTPConnection(**where)
        )
        body = json.dumps({"ResetType": reset_type}) if reset_type else None
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 204):
            raise RuntimeError(f"{method} {path}: {answer.status} {text!r}")
        connection.close()


def switched_on(server: Any) -> dict[str, float]:
    words = json.dumps(server.arguments)
    done = server.libvirtd.run([sys.executable, __file__, SWITCH], input=words, timeout=2 * TIMEOUT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> int:
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bmc"), str(Path(__file__).parent)]
    from bench_redfish import ours, stock  # type: ignore[import-not-found]  # noqa: PLC0415 - its place is known only now
    from support import private_libvirtd, redfish_service  # noqa: PLC0415 - as above

    with private_libvirtd.start() as libvirtd, tempfile.TemporaryDirectory() as directory:
        nodes = [redfish_service.Node(f"vm{at}") for at in range(VMS)]
        redfish_service.define(libvirtd, nodes)
        figures: dict[str, list[dict[str, float]]] = {"sushy-emulator": [], "ours": []}
        for _round in range(ROUNDS):
            with stock(libvirtd, Path(directory), nodes) as server:
                figures["sushy-emulator"].append(switched_on(server))
            with ours(libvirtd, Path(directory), nodes) as (server, _service):
                figures["ours"].append(switched_on(server))
    best = {name: min(found, key=lambda one: one["seconds"]) for name, found in figures.items()}
    for name, found in best.items():
        text = ", ".join(f"{value:.1f} {what}" for what, value in found.items())
        sys.stdout.write(f"{VMS} VMs switched on at once, {name}: {text}\n")
    ratio, read = best["ours"]["seconds"] / best["sushy-emulator"]["seconds"], best["ours"]["read ms"]
    sys.stdout.write(f"time: ratio {ratio:.2f} (limit {MOST_TIME}); reads {read:.0f} ms (limit {MOST_READ_MS:.0f})\n")
    return 0 if ratio <= MOST_TIME and read <= MOST_READ_MS else 1


if __name__ == "__main__":
    if SWITCH in sys.argv:
        sys.stdout.write(json.dumps(Bmcs(*json.load(sys.stdin)).switched_on()))
        sys.exit(0)
    sys.exit(main())
