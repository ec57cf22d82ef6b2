"""The words of the model are enums, equal to the texts that they are on the wire, and compared by name."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import normalize
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice
from ansible_collections.nometal.ipi.plugins.module_utils._lab import types
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol, DiskBus, Firmware, Role, Word
from ansible_collections.nometal.ipi.plugins.modules import bmh_vm, libvirt_bridge_net

if TYPE_CHECKING:
    from collections.abc import Iterator

UTILS = Path(__file__).parents[3] / "plugins/module_utils"
OTHERS = ("_agent", "_rehearsal/report")
"""What runs in guests imports nothing of ours; a report shows what it is given."""
WORDS = [word for kind in vars(types).values() if isinstance(kind, type) and issubclass(kind, Word) for word in kind]
KINDS = (Role, Firmware, BmcProtocol, types.Forward, DiskBus, types.BootstrapAddress)
OTHERS_TOO = {"open", "nat", "pool", "arbiter", "nvme", "uefi"}
"""A file's mode, a table of packet filters, a device's prefix: they are compared with other things as well."""
DISTINCT = {word.value for kind in KINDS for word in kind} - OTHERS_TOO


@pytest.mark.parametrize("word", WORDS, ids=str)
def test_a_word_is_its_text(word: Word) -> None:
    text = word.value
    assert (str(word), f"{word}", f"{word:>40}".strip(), "-".join([word])) == (text, text, text, text)
    assert word == text
    assert {str(word): 1}[word] == {word: 1}[text] == 1
    assert json.dumps({word: word}) == json.dumps({text: text})
    assert type(str(word)) is str
    assert type(normalize(word, "")) is str


def test_a_choice_gives_the_word() -> None:
    found = Choice(tuple(Role)).parse("worker", "role", None)  # type: ignore[arg-type]  # there is no problem
    assert found is Role.WORKER


def plain(value: Any) -> Iterator[type]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (type(key), *plain(item))
    elif isinstance(value, list):
        for item in value:
            yield from plain(item)
    else:
        yield type(value)


def test_the_model_holds_texts_alone() -> None:
    assert set(plain(lab_model({"name": "demo"}))) <= {str, int, bool, type(None)}


def test_modules_offer_the_words() -> None:
    spec: Any = bmh_vm.ARGUMENTS["vms"]["options"]
    assert {*spec["firmware"]["choices"]} == {*Firmware}
    assert {*spec["disks"]["options"]["bus"]["choices"]} == {*DiskBus}
    forward: Any = libvirt_bridge_net.ARGUMENTS["forward"]
    assert {*forward["choices"]} == {*types.Forward}
    assert "redfish-virtualmedia" in set(BmcProtocol)


def compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and each.value in DISTINCT:
                    yield node.lineno, str(each.value)


def test_words_are_compared_by_name() -> None:
    files = [file for file in UTILS.rglob("*.py") if not str(file.relative_to(UTILS)).startswith(OTHERS)]
    found = {f"{file}:{line}: {word}" for file in files for line, word in compared(ast.parse(file.read_text("utf-8")))}
    assert found == set()
