"""What pages for operators show: fenced blocks, and commands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

FENCED = re.compile(
    r"^(?:<!-- (?P<marker>[^\n]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE
)
INDENTED = re.compile(r"^ {4}(?P<text>\S.*)", re.MULTILINE)
INLINE = re.compile(r"`(?P<text>[^`\n]+)`")
COMMAND = re.compile(r"(?:make|ansible|ansible-playbook|-e|playbooks/\S+\.yml)(?: |$)")
OR = "# or: "
CONTINUED = "\\\n"


@dataclass(frozen=True)
class Block:
    page: str
    """Its path below the checkout."""
    line: int
    language: str
    text: str
    marker: str = ""
    """The comment above it, which readers do not see."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> dict[str, str]:
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "roles").glob("*/README.md"))]
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def blocks(*languages: str) -> list[Block]:
    return [block for page, text in pages().items() for block in _blocks(page, text) if block.language in languages]


def commands() -> list[Block]:
    """Of make and Ansible, also parts of them that stand in a sentence; each on one line."""
    return [block for page, text in pages().items() for block in _commands(page, text)]


def _blocks(page: str, text: str) -> Iterator[Block]:
    for found in FENCED.finditer(text):
        yield Block(page, _line(found), found["language"], found["text"], found["marker"] or "")


def _commands(page: str, text: str) -> Iterator[Block]:
    elsewhere = FENCED.sub(lambda found: "\n" * found[0].count("\n"), text)
    found = [each for each in FENCED.finditer(text) if each["language"] == "console"]
    found += [each for kind in (INDENTED, INLINE) for each in kind.finditer(elsewhere)]
    for each in found:
        for command in each["text"].replace(CONTINUED, " ").replace(OR, "\n").splitlines():
            if COMMAND.match(command):
                yield Block(page, _line(each), "console", re.sub(r"\s{2,}#.*", "", command))


def _line(found: re.Match[str]) -> int:
    return found.string.count("\n", 0, found.start()) + 1
