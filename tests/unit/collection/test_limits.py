"""Each limit is spelled in _core/limits.py alone, and what is documented of it agrees."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import limits
from nometal_bmc.config import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

PLUGINS = Path(__file__).parents[3] / "plugins"
OWNER = PLUGINS / "module_utils/_core/limits.py"
FILES = sorted({*PLUGINS.rglob("*.py")} - {OWNER, *(PLUGINS / "module_utils/_agent").rglob("*.py")})
"""What runs in guests imports nothing of ours."""
NAMES = {name for name in vars(limits) if name.isupper()}
ANYWHERE = {65521, 65535, 9216, 1280, 253}
OF_TEXT = {15, 20, 21, 54, 63, 253, 255}
"""As the length of a text."""
IN_PATTERNS = ("{0,14}", "{1,15}", "{,15}", "{0,52}", "{0,53}", "{0,252}", '"lo", "all"')


def spelled_in(tree: ast.AST) -> Iterator[tuple[int, object]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, pattern) for pattern in IN_PATTERNS if pattern in node.value)
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.value in ANYWHERE:
            yield node.lineno, node.value
        elif isinstance(node, (ast.Compare, ast.Slice)) and ast.unparse(node).startswith(("len(", ":")):
            lengths = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
            yield from ((line_of(node), length) for length in lengths if type(length) is int and length in OF_TEXT)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            yield node.lineno, node.id
        elif isinstance(node, ast.Tuple) and [ast.unparse(item) for item in node.elts[:2]] == ["'lo'", "'all'"]:
            yield node.lineno, "lo, all"


def line_of(node: ast.Compare | ast.Slice) -> int:
    return node.lineno


def test_limits_are_spelled_in_one_file() -> None:
    found = {
        f"{file.relative_to(PLUGINS)}:{line}: {what}"
        for file in FILES
        for line, what in spelled_in(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        "HIGHEST = 65535",
        "def check(name): return len(name) <= 15",
        "short = name[:21]",
        "HIGHEST_PORT = 2**16 - 1",
        "PATTERN = '[a-z]{0,14}'",
        "RESERVED = ('lo', 'all', 'default')",
    ],
)
def test_a_limit_that_is_spelled_again_is_found(text: str) -> None:
    assert list(spelled_in(ast.parse(text)))


def test_the_bmc_package_which_is_installed_alone_has_the_same_limits() -> None:
    assert reading.LAST_PORT == limits.HIGHEST_PORT
    assert reading.LONGEST_IPMI_PASSWORD == limits.LONGEST_IPMI_PASSWORD


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("bmh_vm", f"{limits.LEAST_MEMORY_MIB} at least"),
        ("bmh_vm", f"{limits.MOST_VCPUS} at most"),
        ("bmh_vm", f"a multiple of {limits.DISK_SECTOR} from 1 MiB to 64 TiB"),
        ("veth_pair", f"{limits.LONGEST_INTERFACE_NAME} characters at most"),
        ("veth_pair", f"from {limits.SMALLEST_MTU} to {limits.LARGEST_MTU}"),
        ("split_dns", f"{limits.LONGEST_INTERFACE_NAME} characters at most"),
        ("libvirt_bridge_net", f"At most {limits.LONGEST_INTERFACE_NAME} characters"),
        ("libvirt_bridge_net", f"from {limits.SMALLEST_NETWORK_MTU} to {limits.LARGEST_NETWORK_MTU}"),
        ("libvirt_bridge_net", f"{limits.LONGEST_TXT} characters at most"),
        ("labs_info", f"{limits.LONGEST_CLUSTER_NAME} at most"),
    ],
)
def test_documented_limits_agree(module: str, text: str) -> None:
    assert text in (PLUGINS / f"modules/{module}.py").read_text(encoding="utf-8")
