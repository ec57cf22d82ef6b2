# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long stages usually take in labs, and after what time without any change something is wrong.

The installer gives up after 20 minutes without an API, and after 60 in most other stages: what is to be noticed before,
and fixed in time, must be noticed early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE = 60.0


@dataclass(frozen=True)
class Usual:
    seconds: float
    limit: float
    """Without any change."""


STAGES: Mapping[Stage, Usual] = {
    Stage.PREPARE: Usual(1 * MINUTE, 15 * MINUTE),
    Stage.INFRASTRUCTURE: Usual(5 * MINUTE, 15 * MINUTE),
    Stage.API: Usual(10 * MINUTE, 14 * MINUTE),
    Stage.BOOTSTRAP: Usual(15 * MINUTE, 30 * MINUTE),
    Stage.CONTROL_PLANE: Usual(20 * MINUTE, 20 * MINUTE),
    Stage.ETCD: Usual(3 * MINUTE, 10 * MINUTE),
    Stage.DESTROY_BOOTSTRAP: Usual(0.5 * MINUTE, 3 * MINUTE),
    Stage.INITIALIZE: Usual(25 * MINUTE, 20 * MINUTE),
    Stage.OPERATORS: Usual(5 * MINUTE, 15 * MINUTE),
    Stage.CONSOLE: Usual(0.5 * MINUTE, 1.5 * MINUTE),
}
HOSTS: Mapping[str, float] = {
    "registering": 5 * MINUTE,
    "inspecting": 15 * MINUTE,
    "preparing": 10 * MINUTE,
    "provisioning": 15 * MINUTE,
}
"""After how long in a state something is wrong with a host. In others it may wait for other hosts."""
TROUBLE = 2 * MINUTE
"""An error of metal3's that lasts: it tries again and again."""
SILENCE = 10 * MINUTE
"""A node that has been on for so long without a sign of life hangs."""
ASK_AGAIN = 10 * MINUTE
"""What is wrong is looked for again while it lasts."""


def words(seconds: float) -> str:
    return f"{seconds / MINUTE:.0f} min" if seconds >= MINUTE else f"{seconds:.0f} s"
