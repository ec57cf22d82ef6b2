# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands on the cluster's machines, as the user `core`."""

from __future__ import annotations

import shlex
import subprocess

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

PROGRAM, USER = "ssh", "core"
CONNECT_SECONDS, LIMIT_SECONDS = 10, 60
# Its host key was made a few minutes ago, and nobody has seen it.
OPTIONS = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")


def run(address: str, command: str, key: str | None = None) -> str:
    """What the command prints. The key is the file of a private one; otherwise it is one of this user's."""
    options = [word for option in (*OPTIONS, f"ConnectTimeout={CONNECT_SECONDS}") for word in ("-o", option)]
    identity = ["-i", key] if key else []
    try:
        done = subprocess.run(
            [PROGRAM, *options, *identity, f"{USER}@{address}", command],
            check=True,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_SECONDS,
            umask=0o077,
        )
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"])[-1]
        raise OperatorError(f"{why}. ssh_key must name a key that {USER} has.") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise OperatorError(f"{error}.") from error
    return done.stdout


def shown(address: str, command: str) -> str:
    return f"ssh {USER}@{address} {shlex.quote(command)}"
