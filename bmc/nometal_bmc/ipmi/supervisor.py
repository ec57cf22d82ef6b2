# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that starts a process for each IPMI BMC and starts it again when it has ended: see processes.py.

`python -m nometal_bmc.ipmi.supervisor <descriptor> <file>`: the descriptor is a pipe by which configurations come, the
file is theirs: the faults on purpose are beside it, and those who look at processes know by it whose these are.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import multiprocessing
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from nometal_bmc.faults.decisions import CurrentFaults
from nometal_bmc.faults.rules import FILE
from nometal_bmc.ipmi.bmc import serve

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

    from nometal_bmc.config.settings import Config, Ipmi

LOG = logging.getLogger("nometal_bmc.ipmi.supervisor")
LOOK_SECONDS = 0.5
PR_SET_PDEATHSIG = 1
# All BMCs are forks of this process and share its memory.
FORK = multiprocessing.get_context("fork")


@dataclass
class Running:
    """A BMC and its process."""

    node: Ipmi
    process: ForkProcess


class Supervisor:
    """Starts and ends the processes so that they are the ones that the configuration wants."""

    def __init__(self, faults: CurrentFaults) -> None:
        self._faults = faults
        self._running: dict[str, Running] = {}

    def adjust(self, config: Config) -> None:
        wanted = {node.uuid: node for node in config.ipmi}
        for uuid, running in list(self._running.items()):
            if running.node != wanted.get(uuid):
                self._end(uuid)
            elif not running.process.is_alive():
                LOG.error("The BMC of %s has ended with %s; restarted", running.node.name, running.process.exitcode)
                self._end(uuid)
        for uuid, node in wanted.items():
            if uuid not in self._running:
                self._running[uuid] = _start(config, node, self._faults)

    def _end(self, uuid: str) -> None:
        process = self._running.pop(uuid).process
        process.kill()  # it holds nothing that would be lost
        process.join()
        process.close()


def _start(config: Config, node: Ipmi, faults: CurrentFaults) -> Running:
    # A daemon in multiprocessing's sense: it is ended when this process ends in good order.
    process = FORK.Process(target=_be_bmc, args=(config, node, faults, os.getpid()), name=node.name, daemon=True)
    process.start()
    return Running(node, process)


def _be_bmc(config: Config, node: Ipmi, faults: CurrentFaults, supervisor: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == supervisor:  # else it was gone before the kernel knew whom to watch
        serve(config, node, faults)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a keyboard it is for the service, which then closes the pipe
    orders = Connection(int(sys.argv[1]), writable=False)
    gc.freeze()  # what is there now is never looked at again, and so stays shared with the forks
    supervisor = Supervisor(CurrentFaults(Path(sys.argv[2]).with_name(FILE)))
    try:
        config: Config = orders.recv()
        while True:
            supervisor.adjust(config)
            if orders.poll(LOOK_SECONDS):
                config = orders.recv()
    except EOFError:
        pass


if __name__ == "__main__":
    main()
