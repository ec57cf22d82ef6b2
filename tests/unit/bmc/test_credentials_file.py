"""Where the accounts of BMCs are stored is known in one place, which all others ask."""

from __future__ import annotations

import ast
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import KNOWN_OF_BMC, OF_BMC_ACCOUNTS

PLUGINS = Path(__file__).parents[3] / "plugins"
# What there is to remove of a lab is declared for all of its directories together.
DECLARED_IN = "module_utils/_lab/paths.py"
ASKED = "module_utils/_bmc/credentials.py"


def test_each_lab_has_its_own_files() -> None:
    assert str(credentials.file_of("/var/lib/nometal/bmc", "demo")) == "/var/lib/nometal/bmc/demo/credentials.json"
    assert str(credentials.hashes_of(Path("/srv/bmc"), "demo")) == "/srv/bmc/demo/hashes.json"
    assert set(OF_BMC_ACCOUNTS) <= set(KNOWN_OF_BMC)


def texts_in_code(tree: ast.Module) -> set[str]:
    """Not what is said of it, in documentation and messages."""
    whole = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {word for text in whole if " " not in text for word in text.split("/")}


def test_nobody_else_names_them() -> None:
    trees = {
        str(path.relative_to(PLUGINS)): ast.parse(path.read_text(encoding="utf-8")) for path in PLUGINS.rglob("*.py")
    }
    naming = {name for name, tree in trees.items() if texts_in_code(tree) & set(OF_BMC_ACCOUNTS)}
    assert naming == {DECLARED_IN}
    asking = {
        name
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and "OF_BMC_ACCOUNTS" in {alias.name for alias in node.names}
    }
    assert asking == {ASKED}
