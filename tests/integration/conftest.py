"""Modules that tests run in their own process note nothing on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.kubernetes_api import start

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.kubernetes_api import KubernetesApi


@pytest.fixture(autouse=True, scope="module")
def _host_baseline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("baseline") / "host.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directories, "MEMORY", HostMemory(path, path.with_name("lock")))
        yield


@pytest.fixture
def kubernetes_api(tmp_path: Path) -> Iterator[KubernetesApi]:
    """A Kubernetes API on loopback: `store`, `server`, `kubeconfig`, and Debian's kubectl as `program`."""
    with start(tmp_path / "kubernetes-api") as api:
        yield api
