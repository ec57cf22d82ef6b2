# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual media over http, for BMCs that cannot verify the certificate with which the cluster serves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import yaml_text
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

SINCE = (4, 10)
"""Before, virtual media was always served over http."""
DIRECTORIES = ("openshift", "manifests")


def switch_off(assets: Path) -> None:
    """In the manifests that the installer has made."""
    found = False
    for file in [file for directory in DIRECTORIES for file in sorted((assets / directory).glob("*.y*ml"))]:
        text = without_tls(file.read_text(encoding="utf-8"), file.name)
        if text:
            files.write_whole(file, text, 0o600)
            found = True
    if not found:
        raise OperatorError(
            "The installer made no manifest of kind Provisioning, in which virtual media over http is asked for: "
            "a cluster without the capability baremetal has none. Use media_tls: true for it."
        )


def without_tls(text: str, name: str) -> str:
    """Empty if it is about something else."""
    if "Provisioning" not in text:
        return ""
    documents = yaml_text.documents_in(text, name)
    meant = [document for document in documents if _is_provisioning(document)]
    for document in meant:
        document["spec"] = {**(document.get("spec") or {}), "disableVirtualMediaTLS": True}
    return yaml_text.dump(*documents) if meant else ""


def _is_provisioning(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    return document.get("kind") == "Provisioning" and str(document.get("apiVersion", "")).startswith("metal3.io/")
