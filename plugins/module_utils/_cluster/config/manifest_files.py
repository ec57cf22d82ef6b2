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
    """By file name. A manifest is text, or what Ansible has already made of it."""
    texts = {name: content if isinstance(content, str) else _dumped(content) for name, content in manifests.items()}
    for name, text in texts.items():
        _refuse_mistakes(name, text)
    return texts


def add(assets: Path, texts: Mapping[str, str]) -> str:
    """Which of the installer's own had to give way."""
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


def _refuse_mistakes(name: str, text: str) -> None:
    """A broken manifest would hold up the bootstrap VM for an hour, and nothing would tell why."""
    if not NAME.fullmatch(name):
        raise OperatorError(f"Manifest {name}: its name is to be a plain file name that ends in .yaml, .yml or .json.")
    documents = yaml_text.documents_in(text, f"Manifest {name}")
    if not documents:
        raise OperatorError(f"Manifest {name} is empty.")
    for document in documents:
        if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
            raise OperatorError(f"Manifest {name} is to have an apiVersion and a kind.")
