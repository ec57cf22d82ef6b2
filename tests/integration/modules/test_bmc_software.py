"""The bmc_software module with a package of one line and no requirements: what it takes for real is on whole hosts."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.software import SoftwarePort
from ansible_collections.nometal.ipi.plugins.modules import bmc_software

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INSTALL, REMOVE = ["install software"], ["remove software"]


@pytest.fixture(autouse=True)
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def steps(path: Path, *, check_mode: bool = False, **changed: Any) -> list[str]:
    params = {
        "path": str(path),
        "requirements": "",
        "sources": {"__init__.py": "RELEASE = 1\n"},
        "python": "/usr/bin/python3",
        "pip_arguments": ["--no-index"],
        "state": "present",
    }
    done: list[str] = bmc_software.run({**params, **changed}, check_mode=check_mode)["steps"]
    return done


def release(path: Path) -> str:
    command = [str(path / "bin/python"), "-c", "import nometal_bmc, libvirt; print(nometal_bmc.RELEASE)"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_acceptance(tmp_path: Path) -> None:
    path = tmp_path / "nometal/bmc"
    new: dict[str, Any] = {"sources": {"__init__.py": "RELEASE = 2\n"}}
    assert steps(path, check_mode=True) == INSTALL
    assert not path.exists()
    assert steps(path) == INSTALL
    assert release(path) == "1"
    assert path.stat().st_mode & 0o777 == 0o755
    for check_mode in (True, False):
        assert steps(path, check_mode=check_mode) == []

    assert steps(path, check_mode=True, **new) == INSTALL
    assert steps(path, **new) == INSTALL
    assert release(path) == "2"

    for check_mode in (True, False):
        assert steps(path, state="absent", check_mode=check_mode) == REMOVE
    assert not path.parent.exists()
    for check_mode in (True, False):
        assert steps(path, state="absent", check_mode=check_mode) == []


def test_what_was_killed_is_made_afresh_and_pip_is_quoted_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bmc"
    with monkeypatch.context() as patched:
        patched.setattr(SoftwarePort, "_install_package", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            steps(path)
    (path / "lib/half-installed").touch()
    assert steps(path, check_mode=True) == INSTALL
    with pytest.raises(OperatorError, match=r"(?s)bmc_emulation_pip_arguments.*No matching distribution"):
        steps(path, requirements="there-is-no-such-thing==1\n")
    assert not (path / "lib/half-installed").exists()


def raise_interrupt(_port: SoftwarePort) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("state", ["present", "absent"])
def test_what_is_not_ours_stays(tmp_path: Path, state: str) -> None:
    (tmp_path / "passwd").write_text("precious")
    with pytest.raises(OperatorError, match="name a directory of its own"):
        steps(tmp_path, state=state)
    with pytest.raises(OperatorError, match="an absolute path is right"):
        steps(tmp_path.relative_to("/"), state=state)
    with pytest.raises(OperatorError, match=r"sources: \.\./evil\.py: file names without a directory"):
        steps(tmp_path / "new", sources={"../evil.py": ""}, state=state)
    assert [path.name for path in tmp_path.iterdir()] == ["passwd"]
