# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run leaves in the job of AWX, for those who cannot log in to the host. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.cluster import API, PORTS

VARIABLE = "nometal_lab"
"""In a workflow, the jobs that follow have it as a variable."""


def artifacts(status: Mapping[str, Any], headline: str) -> dict[str, Any]:
    """Of what module lab_status returns: addresses, the names of files, and what is wrong, but no content of files."""
    installation, bmcs, rehearsal = status["installation"], status["bmcs"], status["rehearsal"]
    has_api = installation["state"] != outcome.NOTHING and status["domain"]
    return {
        "lab": status["lab"],
        "host": status["host"]["name"],
        "state": status["state"],
        "summary": headline,
        "time": status["time"],
        "api_url": f"https://api.{status['domain']}:{PORTS[API]}" if has_api else "",
        "console_url": installation["console_url"],
        "release": installation["version"],
        "kubeconfig": installation["kubeconfig"],
        "password_file": installation["password_file"],
        "failure_bundle": installation["bundle"],
        "bmc_url": bmcs["url"],
        "bmc_accounts": bmcs["credentials"],
        "rehearsal": dict(rehearsal),
        "findings": list(status["findings"]),
        "next": list(status["next"]),
    }
