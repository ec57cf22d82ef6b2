# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster says of itself, once it has an API."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.log import masked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECONDS = 10
GRACE_SECONDS = 5
LONGEST = 400


@dataclass(frozen=True)
class MetalHost:
    """A BareMetalHost."""

    name: str
    state: str = ""
    error_type: str = ""
    error: str = ""


@dataclass(frozen=True)
class Oc:
    program: str
    kubeconfig: Path

    def get(self, *what: str) -> list[Mapping[str, Any]]:
        """Nothing if there is no answer."""
        words = ("get", *what, "--output=json", f"--request-timeout={SECONDS}s", f"--kubeconfig={self.kubeconfig}")
        try:
            # oc keeps a cache.
            done = subprocess.run(
                [self.program, *words], check=True, capture_output=True, timeout=SECONDS + GRACE_SECONDS, umask=0o077
            )
            return list(json.loads(done.stdout)["items"])
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
            return []


def oc_of(tools: str | None, kubeconfig: Path) -> Oc | None:
    program = shutil.which("oc", path=tools) if tools else shutil.which("oc")
    return Oc(program, kubeconfig) if program and kubeconfig.exists() else None


def metal_hosts(oc: Oc) -> list[MetalHost]:
    return list(_metal_hosts(oc.get("baremetalhosts", "--namespace=openshift-machine-api")))


def _metal_hosts(items: list[Mapping[str, Any]]) -> Iterator[MetalHost]:
    for item in items:
        status = item.get("status") or {}
        yield MetalHost(
            name=str((item.get("metadata") or {}).get("name", "")),
            state=str((status.get("provisioning") or {}).get("state", "")),
            error_type=str(status.get("errorType") or ""),
            error=_short(str(status.get("errorMessage") or "")),
        )


def operators(oc: Oc) -> dict[str, str]:
    """Those that are degraded or not available, and what they say."""
    return dict(_operators(oc.get("clusteroperators")))


def _operators(items: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for item in items:
        wrong = [
            condition
            for condition in (item.get("status") or {}).get("conditions") or []
            if (condition.get("type"), condition.get("status")) in (("Degraded", "True"), ("Available", "False"))
        ]
        if wrong:
            message = next(filter(None, (str(condition.get("message") or "") for condition in wrong)), "")
            yield str((item.get("metadata") or {}).get("name", "")), _short(message)


def _short(text: str) -> str:
    line = " ".join(masked(text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
