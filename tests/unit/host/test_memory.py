from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host.memory import HostMemory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def memory(tmp_path: Path) -> HostMemory:
    return HostMemory(tmp_path / "home" / "host.json")


def test_nothing_is_remembered_at_first(memory: HostMemory) -> None:
    assert memory.recall() == {}


def test_the_first_note_on_a_thing_stays(memory: HostMemory) -> None:
    memory.note({"kvm_device": {"mode": "0600"}})
    memory.note({"kvm_device": {"mode": "0660", "group": "root"}, "packages": {"ovmf": "missing"}})
    assert memory.recall() == {"kvm_device": {"mode": "0600", "group": "root"}, "packages": {"ovmf": "missing"}}


def test_nothing_new_writes_nothing(memory: HostMemory) -> None:
    memory.note({"packages": {}})
    assert not memory.path.exists()
    memory.note({"packages": {"ovmf": "missing"}})
    before = memory.path.stat()
    memory.note({"packages": {"ovmf": "there"}})
    assert memory.path.stat() == before


def test_a_damaged_memory_is_told_and_not_overwritten(memory: HostMemory) -> None:
    memory.path.parent.mkdir()
    memory.path.write_text("{", encoding="utf-8")
    with pytest.raises(OperatorError, match=r"host\.json, which remembers what the host was like before"):
        memory.note({"packages": {"ovmf": "missing"}})
    assert memory.path.read_text(encoding="utf-8") == "{"
