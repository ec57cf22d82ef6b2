# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first process of a guest. A guest with a channel to its host plays the bootstrap VM, every other one a node."""

from __future__ import annotations

import sys
import time
import traceback

from . import machine


def main() -> None:
    machine.prepare()
    try:
        port = machine.channel()
        if port:
            from . import bootstrap  # noqa: PLC0415 - a node has no use for what it imports

            bootstrap.play(port)
        else:
            from . import node  # noqa: PLC0415 - nor the other way round

            node.play()
    except Exception:
        traceback.print_exc()
    sys.stdout.flush()
    while True:  # power is the affair of the BMC, or of the host
        time.sleep(3600)


if __name__ == "__main__":
    main()
