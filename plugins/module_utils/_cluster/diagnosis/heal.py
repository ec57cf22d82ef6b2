# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node made to give back the address of the API that it has taken too early."""

from __future__ import annotations

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import ssh
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

STOP_KEEPALIVED = "sudo crictl ps --quiet --name '^keepalived$' | xargs --no-run-if-empty sudo crictl stop"
"""The kubelet starts it again, and it looks for its peers anew."""


def give_back(address: str, key: str | None) -> str:
    """What became of it."""
    try:
        ssh.run(address, STOP_KEEPALIVED, key)
    except OperatorError as error:
        raise OperatorError(f"its keepalived was not stopped: {error}") from error
    return "held the address of the API too early, and its keepalived was stopped. It will not be again in this run"


def shown(address: str) -> str:
    return ssh.shown(address, STOP_KEEPALIVED)
