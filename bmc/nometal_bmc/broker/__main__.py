# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""python -m nometal_bmc.broker <broker.json>: the broker of a lab, in the foreground."""

from __future__ import annotations

import logging
import sys

from nometal_bmc.broker.server import Server
from nometal_bmc.config.reading import CurrentBrokerConfig
from nometal_bmc.config.sections import ConfigError

LOG = logging.getLogger("nometal_bmc.broker")


def main(arguments: list[str]) -> int:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    if len(arguments) != 1:
        LOG.error("usage: python -m nometal_bmc.broker <broker.json>")
        return 2
    try:
        Server(CurrentBrokerConfig(arguments[0])).serve()
    except ConfigError as error:
        LOG.error("%s", error)  # noqa: TRY400 - the text says it all
    except OSError as error:
        LOG.error("The broker cannot listen: %s", error)  # noqa: TRY400 - as above
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
