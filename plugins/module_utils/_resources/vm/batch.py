# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of one kind at the same time, kinds one after another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

AT_ONCE = 5  # what libvirtd takes on from one client at a time


class Batch:
    """A kind begins when all of the one before has ended, and only if all of it went well."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(AT_ONCE)
        self._running: dict[Step, Future[object]] = {}
        self._verb = ""

    def add(self, step: Step, action: Callable[[], object]) -> None:
        if step.verb != self._verb:
            self.finish()
        self._verb = step.verb
        self._running[step] = self._workers.submit(action)

    def finish(self) -> None:
        """Wait for all that runs, and say of everything that failed why."""
        running, self._running = self._running, {}
        errors = {step: error for step, future in running.items() if (error := future.exception())}
        for error in errors.values():
            if not isinstance(error, (OperatorError, OSError, libvirt.libvirtError)):
                raise error
        if errors:
            raise OperatorError("\n".join(f"{step}: {_words(error)}" for step, error in errors.items()))


def _words(error: BaseException) -> str:
    return error.get_error_message() if isinstance(error, libvirt.libvirtError) else str(error)
