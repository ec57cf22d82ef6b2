# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML that the installer reads with the intended types."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment]  # mypy takes the name for the module alone

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

SHORTEST_PLAIN = 3
QUOTED = re.compile(r" '(?!<)..+'")
"""A quoted piece of the text, which is not a token type or a single character."""


def dump(*documents: Any) -> str:
    dumper = _dumper()
    data = [json.loads(json.dumps(document)) for document in documents]  # the dumper rejects Ansible's string types
    text: str = _yaml().dump_all(data, Dumper=dumper, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return text


def documents_in(text: str, name: str) -> list[Any]:
    """The documents that are not empty. The error does not quote the text, which may be secret."""
    try:
        return [document for document in _yaml().safe_load_all(text) if document is not None]
    except _yaml().YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        problem = QUOTED.sub("", getattr(error, "problem", None) or "syntax error")
        raise OperatorError(f"{name} must be valid YAML: {problem}{where}.") from None


def _dumper() -> Any:
    class Dumper(_yaml().SafeDumper):  # type: ignore[misc]
        pass

    Dumper.add_representer(str, _text)
    return Dumper


def _text(dumper: Any, value: str) -> Any:
    """Quote what the installer's parser reads as a number (1e3) or boolean (y), though Python's does not."""
    is_plain = value[:1].isalpha() and len(value) >= SHORTEST_PLAIN
    style = "|" if "\n" in value else None if is_plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _yaml() -> Any:
    if yaml is None:
        raise OperatorError(
            f"{sys.executable} has no PyYAML: role nometal.ipi.host_prep installs it; "
            "if it did, set ansible_python_interpreter to the distribution's own Python, /usr/bin/python3."
        )
    return yaml
