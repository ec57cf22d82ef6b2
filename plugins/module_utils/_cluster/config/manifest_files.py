# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's own manifests beside the installer's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import yaml_text
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(yaml|yml|json)")
DIRECTORY, OTHER_DIRECTORY = "manifests", "openshift"


def texts_of(manifests: Mapping[str, Any]) -> dict[str, str]:
    """By file name. A manifest is text, or data that Ansible has parsed."""
    texts = {name: content if isinstance(content, str) else _dumped(content) for name, content in manifests.items()}
    for name, text in texts.items():
        _refuse_errors(name, text)
    return texts


def add(assets: Path, texts: Mapping[str, str]) -> str:
    """Write the manifests; return a note about the installer's own that were replaced."""
    replaced = []
    for name, text in texts.items():
        other = assets / OTHER_DIRECTORY / name
        file = other if other.exists() else assets / DIRECTORY / name
        if file.exists():
            replaced.append(name)
        files.write_whole(file, text, 0o600)
    return f"Instead of the installer's own manifests, yours are used: {', '.join(replaced)}." if replaced else ""


def _dumped(content: Any) -> str:
    return yaml_text.dump(*content) if isinstance(content, list) else yaml_text.dump(content)


def _refuse_errors(name: str, text: str) -> None:
    """An invalid manifest would stop the bootstrap VM for an hour without an error message."""
    if not NAME.fullmatch(name):
        raise OperatorError(f"Manifest {name}: the name must be a plain file name that ends in .yaml, .yml or .json.")
    documents = yaml_text.documents_in(text, f"Manifest {name}")
    if not documents:
        raise OperatorError(f"Manifest {name} must not be empty.")
    for document in documents:
        if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
            raise OperatorError(f"Manifest {name} must have an apiVersion and a kind.")
