"""Unit tests note nothing on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def host_baseline(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path_factory.mktemp("baseline") / "host.json"
    monkeypatch.setattr(directories, "MEMORY", HostMemory(path, path.with_name("lock")))
    return path
