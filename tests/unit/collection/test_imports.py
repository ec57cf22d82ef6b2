"""The import rule of docs/development.md: a package imports those below it, and a leaf no other leaf of its kind."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PLUGINS = Path(__file__).parents[3] / "plugins"
UTILS = "ansible_collections.nometal.ipi.plugins.module_utils"
LAYERS = (
    ("_agent",),  # runs in guests: imports nothing of ours
    ("_core",),
    ("_lab",),
    ("_observe",),
    ("_resources",),
    ("_bmc",),
    ("_checks",),
    ("_rehearsal", "_cluster", "_labs"),
)
HEIGHT = {package: height for height, packages in enumerate(LAYERS) for package in packages}
OF_LEAVES = ("_resources", "_checks")
"""Packages of packages that do not know each other."""
FILES = sorted((PLUGINS / "module_utils").rglob("*.py"))


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(PLUGINS / "module_utils").with_suffix("").parts)


NAMES = {name_of(file) for file in FILES}


def statements(node: ast.AST, *, of_types: bool) -> Iterator[ast.AST]:
    """With those that only mypy reads, or without."""
    for child in ast.iter_child_nodes(node):
        yield child
        if of_types or not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from statements(child, of_types=of_types)


def imported_by(file: Path, *, of_types: bool = True) -> Iterator[str]:
    """Modules of module_utils; for types, too, as Ansible ships those as well."""
    here = name_of(file).split(".")
    for node in statements(ast.parse(file.read_text(encoding="utf-8")), of_types=of_types):
        assert not (isinstance(node, ast.Import) and any(alias.name.startswith(UTILS) for alias in node.names))
        if isinstance(node, ast.ImportFrom):
            whole = f"{UTILS}.{'.'.join(here[: -node.level])}." if node.level else ""
            whole += node.module or ""
            if whole.startswith(UTILS):
                package = whole.removeprefix(UTILS).strip(".")
                modules = {f"{package}.{alias.name}" for alias in node.names} & NAMES
                yield from modules or {package}


def leaf_of(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] in OF_LEAVES else parts[0]


def is_allowed(importer: str, imported: str) -> bool:
    same = leaf_of(importer) == leaf_of(imported)
    return same or HEIGHT[importer.split(".", maxsplit=1)[0]] > HEIGHT[imported.split(".", maxsplit=1)[0]]


def cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    found: list[list[str]] = []
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> None:
        if module in path:
            found.append(path[path.index(module) :])
        elif module not in done:
            for each in sorted(imports.get(module, ())):
                walk(each, [*path, module])
            done.add(module)

    for module in sorted(imports):
        walk(module, [])
    return found


def test_packages_import_only_what_is_below_them() -> None:
    pairs = [(name_of(file), imported) for file in FILES for imported in imported_by(file)]
    assert [pair for pair in pairs if not is_allowed(*pair)] == []


def test_there_is_no_cycle() -> None:
    assert cycles({name_of(file): set(imported_by(file, of_types=False)) for file in FILES}) == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("_resources.vm.port", "_resources.vm.state", True),
        ("_resources.vm.port", "_observe.links", True),
        ("_resources.vm.port", "_resources.network.state", False),
        ("_checks.doctor.kvm", "_checks.rehearsal.causes", False),
        ("_observe.links", "_resources.veth.state", False),
        ("_cluster.run.run", "_rehearsal.session.line", False),
        ("_agent.node", "_core.files", False),
    ],
)
def test_the_rule(importer: str, imported: str, *, allowed: bool) -> None:
    assert is_allowed(importer, imported) is allowed


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]


IMPORT = re.compile(rf"^from {re.escape(UTILS)}\.([\w.]+) import (\w+(?:, \w+)*)", re.MULTILINE)


def test_programs_that_tests_run_elsewhere_import_what_is_there() -> None:
    """They are texts, so that nothing else reads them."""
    tests = Path(__file__).parents[2]
    found = {
        (str(file.relative_to(tests)), package, name.strip())
        for file in tests.rglob("*.py")
        for package, names in IMPORT.findall(file.read_text(encoding="utf-8"))
        for name in names.split(",")
    }
    assert found
    assert [each for each in found if not {each[1], f"{each[1]}.{each[2]}"} & NAMES] == []
