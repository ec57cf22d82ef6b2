# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPMI BMCs of a lab, as the service sees them: one process that starts the others and keeps them alive."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from nometal_bmc.config.reading import CurrentConfig

LOG = logging.getLogger(__name__)
LOOK_SECONDS = 0.5
SUPERVISOR = (sys.executable, "-m", "nometal_bmc.ipmi.supervisor")


class IpmiBmcs:
    """A process for each BMC, because pyghmi keeps its sessions in a class, below one supervisor process.

    The supervisor is a program of its own: with one thread, so that it may fork, and without the service's memory.
    It learns everything, passwords included, through a pipe, and ends, with all BMCs, when the other end is closed.
    """

    def __init__(self, current: CurrentConfig) -> None:
        self._current = current
        self._stopped = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="ipmi", daemon=True)

    def start(self) -> None:
        """Have the BMCs that are configured, from now on. Each answers as soon as its address exists."""
        self._keeper.start()

    def stop(self) -> None:
        """End all BMCs. When this returns, their ports are free."""
        self._stopped.set()
        self._keeper.join()

    def _keep(self) -> None:
        """Have a supervisor at all times: one that was killed has a successor when its end is seen."""
        while not self._stopped.is_set():
            theirs, ours = Pipe(duplex=False)
            with ours:
                with theirs:
                    supervisor = subprocess.Popen(
                        [*SUPERVISOR, str(theirs.fileno()), str(self._current.path)],
                        stdin=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                    )
                with suppress(OSError):  # it has ended
                    self._tell(supervisor, ours)
            code = supervisor.wait()
            if not self._stopped.is_set():
                LOG.error("The supervisor of the IPMI BMCs has ended with %s; starting another", code)

    def _tell(self, supervisor: subprocess.Popen[bytes], orders: Connection) -> None:
        """Send the configuration now and whenever it is another."""
        sent = None
        while supervisor.poll() is None and not self._stopped.wait(LOOK_SECONDS if sent else 0):
            config = self._current.config
            if config is not sent:
                orders.send(config)
                sent = config
