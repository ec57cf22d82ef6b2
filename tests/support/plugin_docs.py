"""The documentation of modules as readers see it, with what its fragments say."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

import yaml
from support.checkout import ROOT

PLUGINS = ROOT / "plugins"
INTERNAL = "nometal.ipi.internal"


@cache
def of_module(name: str) -> dict[str, Any]:
    about = _documentation(PLUGINS / "modules" / f"{name}.py")
    options = dict(about.get("options", {}))
    for fragment in about.get("extends_documentation_fragment", []):
        shared = _documentation(PLUGINS / "doc_fragments" / f"{fragment.rpartition('.')[2]}.py")
        options = {**shared.get("options", {}), **options}
    return {**about, "options": options}


def is_internal(name: str) -> bool:
    return INTERNAL in of_module(name).get("extends_documentation_fragment", [])


def _documentation(path: Any) -> dict[str, Any]:
    """The assignment at the top of a module, or that of a fragment's class."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DOCUMENTATION":
            text: dict[str, Any] = yaml.safe_load(ast.literal_eval(node.value))
            return text
    raise LookupError(f"{path} has no DOCUMENTATION")
