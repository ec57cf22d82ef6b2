# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node made to give back the address of the API that it has taken too early."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

USER = "core"
STOP_KEEPALIVED = "sudo crictl ps --quiet --name '^keepalived$' | xargs --no-run-if-empty sudo crictl stop"
"""The kubelet starts it again, and it looks for its peers anew."""
CONNECT_SECONDS, LIMIT_SECONDS = 10, 60
# Its host key was made a few minutes ago, and nobody has seen it.
OPTIONS = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")


@dataclass(frozen=True)
class Healer:
    enabled: bool = False
    key: str | None = None
    """The file of a private key."""

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Healer:
        return cls(params["heal"], params["ssh_key"])

    def give_back(self, address: str) -> str:
        """What became of it."""
        options = [word for option in (*OPTIONS, f"ConnectTimeout={CONNECT_SECONDS}") for word in ("-o", option)]
        key = ["-i", self.key] if self.key else []
        command = ["ssh", *options, *key, f"{USER}@{address}", STOP_KEEPALIVED]
        try:
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=LIMIT_SECONDS,
            )
        except subprocess.CalledProcessError as error:
            why = (error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"])[-1]
            advice = f"ssh_key must name a key that {USER} has"
            raise OperatorError(f"its keepalived was not stopped: {why}. {advice}.") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise OperatorError(f"its keepalived was not stopped: {error}.") from error
        return "held the address of the API too early, and its keepalived was stopped. It will not be again in this run"


def shown(address: str) -> str:
    return f"ssh {USER}@{address} {shlex.quote(STOP_KEEPALIVED)}"
