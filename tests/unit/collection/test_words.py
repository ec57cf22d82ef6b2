# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages and docs in plain technical words."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

TREE = Path(__file__).parents[3]
PLACES = (
    *("plugins", "roles", "inventory", "scripts", "docs", "bmc/nometal_bmc", "bmc/README.md"),
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "changelogs/fragments"),
    *(str(path.relative_to(TREE)) for path in (*TREE.glob("playbooks/*.yml"), *TREE.glob("playbooks/stages/*.yml"))),
    *(f"tests/unit/{name}/messages.txt" for name in ("lab", "doctor", "rehearsal")),
    "tests/unit/cluster/stalls.txt",
)
"""Python: string literals, with docstrings. Other files: the whole text."""
INSTEAD = {
    r"\b(is|are) right\b": "must be",
    r"(?<!there )\bis no (?!longer|such)": "must be, invalid",
    r"\b(no|some)body\b": "others, another lab, unused",
    r"\bcannot be had\b": "not available",
    r"\bis more than\b": "exceeds",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\b(is|are) told\b": "report, warn",
    r"\bno known key\b": "unknown key",
}
VERBS = (
    *("Accept", "Add", "Build", "Check", "Collect", "Conclude", "Configure", "Create", "Derive"),
    *("Download", "Examine", "Find", "Finish", "Forget", "Install", "Join", "Keep", "Lock"),
    *("Mark", "Note", "Open", "Prepare", "Purge", "Query", "Read", "Record", "Register"),
    *("Rehearse", "Release", "Remove", "Report", "Restore", "Send", "Set", "Show", "Simulate"),
    *("Start", "Stop", "Update", "Use", "Write"),
)
"""With which the name of a task may begin."""
SUFFIXES = (".py", ".md", ".json", ".yml", ".txt", "")


def files() -> list[Path]:
    found = [path for place in PLACES for path in (TREE / place, *(TREE / place).rglob("*")) if path.is_file()]
    return sorted(path for path in found if path.suffix in SUFFIXES)


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, text
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def found_in(path: Path) -> Iterator[str]:
    for line, text in texts_of(path):
        for pattern, better in INSTEAD.items():
            for match in re.finditer(pattern, text, re.IGNORECASE):
                number = line + text.count("\n", 0, match.start())
                yield f"{path}:{number}: {match[0]!r}; say: {better}"


def names_of(tasks: list[dict[str, Any]]) -> Iterator[str]:
    for task in tasks:
        yield task["name"].rpartition(" | ")[2]
        for key in ("block", "tasks"):
            yield from names_of(task.get(key, []))


@pytest.mark.parametrize(
    "path",
    [*TREE.glob("playbooks/*.yml"), *TREE.glob("playbooks/stages/*.yml"), *TREE.glob("roles/*/tasks/**/*.yml")],
    ids=lambda path: path.stem,
)
def test_tasks_say_what_is_done_to_what(path: Path) -> None:
    # In AWX, their names are all that a reader sees.
    for name in names_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
        words = name.split()
        assert words[0] in VERBS, name
        assert words[-1] not in ("it", "them", "that", "those", "one", "others"), name


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(TREE)))
def test_words(path: Path) -> None:
    assert list(found_in(path)) == []


def test_places_exist() -> None:
    assert [place for place in PLACES if not (TREE / place).exists()] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("3 or more are right", 1),
        ("it is no key; nobody's", 2),
        ("kvm cannot be had", 1),
        ("the host mends it and is told of it", 2),
        ("it is recommended; there is no /dev/kvm; it is no longer used", 0),
    ],
)
def test_patterns(text: str, count: int, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(list(found_in(page))) == count
