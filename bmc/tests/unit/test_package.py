"""The package as it is installed: its parts, and which of them knows which."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "nometal_bmc"
FILES = sorted(PACKAGE.rglob("*.py"))
KNOWS = {
    "answers": set(),
    "cancellation": {"answers"},
    "sources": set(),
    "files": set(),
    "throttle": {"sources"},
    "config": {"files"},
    "bios": {"files"},
    "events": {"config", "files"},
    "machine": {"answers"},
    "vms": {"answers", "files", "config", "machine"},
    "broker": {"answers", "config", "machine", "vms"},
    "media": {"answers", "cancellation", "config", "machine", "broker"},
    "redfish": {"answers", "cancellation", "bios", "config", "events", "machine", "broker", "media"},
    "faults": {"answers", "config", "files"},
    "front": {"answers", "cancellation", "sources", "throttle", "config", "events", "redfish", "faults"},
    "ipmi": {"answers", "sources", "throttle", "config", "events", "machine", "broker", "faults"},
}
"""All but the program and the application, which join the parts."""
OF_SERVICE = ("nometal_bmc.app", "nometal_bmc.__main__", "nometal_bmc.front.server", "nometal_bmc.ipmi.supervisor")
SHOW_IMPORTS = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print("\\n".join(name for name in sys.modules if name.startswith("nometal_bmc.vms")))
"""


def part_of(module: str) -> str:
    return module.split(".")[1]


def imported_by(file: Path) -> Iterator[str]:
    """Also for types only."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "nometal_bmc":
            yield from (f"nometal_bmc.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nometal_bmc."):
            yield node.module or ""


def test_a_part_knows_only_those_below_it() -> None:
    for file in FILES:
        part = file.relative_to(PACKAGE).with_suffix("").parts[0]
        known = {part_of(module) for module in imported_by(file)} - {part}
        assert known <= KNOWS.get(part, {*KNOWS, "app"}), file


def test_only_the_broker_has_what_talks_to_libvirt() -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", SHOW_IMPORTS, *OF_SERVICE]
    assert subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout == "\n"
    own = {PACKAGE / "broker" / f"{name}.py" for name in ("server", "handlers", "images", "places")}
    users = {file for file in FILES if "vms" in {part_of(module) for module in imported_by(file)}}
    assert users - own == {file for file in users if file.parent.name == "vms"}


def test_every_directory_is_a_package_and_there_are_types() -> None:
    assert {file.parent for file in FILES} == {file.parent for file in PACKAGE.rglob("__init__.py")}
    assert (PACKAGE / "py.typed").exists()
    assert 'nometal_bmc = ["py.typed"]' in (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
