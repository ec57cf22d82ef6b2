# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""python -m nometal_bmc <config.json>: the service of a lab, in the foreground."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nometal_bmc.config.reading import CurrentConfig
from nometal_bmc.config.sections import ConfigError
from nometal_bmc.front.server import NotServing, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = logging.getLogger("nometal_bmc")


def run(path: str) -> None:
    current = CurrentConfig(path)
    server = Server(current)
    # Only the broker has libvirt: sushy-tools' driver, which would load it, is not used.
    sys.modules["libvirt"] = None  # type: ignore[assignment]
    from nometal_bmc.app import make_app  # noqa: PLC0415 - takes a second, in which clients can wait already

    app = make_app(current)
    with _ipmi(current):
        server.serve(app)


@contextmanager
def _ipmi(current: CurrentConfig) -> Iterator[None]:
    if not current.config.ipmi:
        yield
        return
    from nometal_bmc.ipmi.processes import IpmiBmcs  # noqa: PLC0415 - most labs have none

    bmcs = IpmiBmcs(current)
    bmcs.start()
    try:
        yield
    finally:
        bmcs.stop()


def main(arguments: list[str]) -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    if len(arguments) != 1:
        LOG.error("usage: python -m nometal_bmc <config.json>")
        return 2
    try:
        run(arguments[0])
    except (ConfigError, NotServing) as error:
        LOG.error("%s", error)  # noqa: TRY400 - the text says it all
        return 1
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    logging.shutdown()
    os._exit(status)  # whoever still waits for a download in a thread has had its time
