"""The bmc_software module with a package of one line and no requirements: what it takes for real is on whole hosts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import software
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.software import MARK, HostSoftware
from ansible_collections.nometal.ipi.plugins.module_utils._core import directories
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Callable

INSTALL, REMOVE, TIDY = ["install software"], ["remove software"], ["tidy software"]
STRANGE = (
    *("../evil.py", "..", "/evil.py", "front/../../evil.py", "./tls.py", "front//tls.py", "front/", ".front/tls.py"),
    *("front\\tls.py", "tls.py\n", "tls.sh", "0.py", ""),
)
NEW: dict[str, Any] = {"sources": {"__init__.py": "RELEASE = 2\n", "parts/late.py": "RELEASE = 2\n"}}
# Installs, and is stuck where pip would run.
STUCK = """
import sys, time
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.release import Release
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.software import HostSoftware
Release._install_requirements = lambda *_: (print("stuck", flush=True), time.sleep(int(sys.argv[2])))
HostSoftware.run(eval(sys.argv[1]), check_mode=False)
"""


@pytest.fixture(autouse=True)
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def parameters(path: Path, **changed: Any) -> dict[str, Any]:
    params = {
        "path": str(path),
        "requirements": "",
        "sources": {"__init__.py": "import json\n\nRELEASE = 1\n", "parts/late.py": "RELEASE = 1\n"},
        "python": "/usr/bin/python3",
        "pip_arguments": ["--no-index"],
        "state": "present",
    }
    return {**params, **changed}


def steps(path: Path, *, check_mode: bool = False, **changed: Any) -> list[str]:
    done: list[str] = HostSoftware.run(parameters(path, **changed), check_mode=check_mode)["steps"]
    return done


def release(path: Path) -> str:
    command = [str(path / "bin/python"), "-c", "import nometal_bmc, libvirt; print(nometal_bmc.RELEASE)"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def releases(path: Path) -> list[Path]:
    return sorted(path.glob("release-*"))


@contextmanager
def service(path: Path) -> Iterator[Callable[[], str]]:
    """Runs, and loads a part of the software only when it is asked which release that is of."""
    late = "input('up'); import nometal_bmc.parts.late; print(nometal_bmc.parts.late.RELEASE)"
    command = [str(path / "bin/python"), "-u", "-c", late]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.read(2) == "up"

        def late_release() -> str:
            return process.communicate("\n")[0].strip()

        yield late_release
        process.kill()


@contextmanager
def stuck_run(path: Path, seconds: int, **changed: Any) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/playbooks/collections"}
    path.parent.mkdir(parents=True, exist_ok=True)  # so that the process has nothing to note of this machine
    command = [sys.executable, "-c", STUCK, repr(parameters(path, **changed)), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        assert process.stdout.readline() == "stuck\n"
        yield process


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What all tests share, for an installation takes seconds. The last one removes it."""
    path = tmp_path_factory.mktemp("software") / "nometal/bmc"
    assert steps(path, check_mode=True) == INSTALL
    assert not path.exists()
    before = os.umask(0o077)
    assert steps(path) == INSTALL
    os.umask(before)
    return path


def test_it_is_installed(made: Path) -> None:
    assert release(made) == "1"
    parts = made.glob("release-*/lib/*/site-packages/nometal_bmc/parts")
    for place in (made, made / "bin", made / "bin/python", *releases(made), next(parts)):
        assert place.stat().st_mode & 0o777 == 0o755
    for check_mode in (True, False):
        assert steps(made, check_mode=check_mode) == []


def test_a_service_keeps_its_release_and_another_run_waits(made: Path) -> None:
    with service(made) as late_release:
        assert steps(made, check_mode=True, **NEW) == INSTALL
        assert steps(made, **NEW) == INSTALL
        assert release(made) == "2"
        assert late_release() == "1"
    assert steps(made, **NEW) == []
    assert len(releases(made)) == 2
    with stuck_run(made, seconds=1):
        assert release(made) == "2"
        assert steps(made) == []
    assert (release(made), len(releases(made))) == ("1", 1)


def test_what_fails_or_is_killed_leaves_what_was_there(made: Path) -> None:
    for broken, said in (
        ({"requirements": "there-is-no-such-thing==1\n"}, r"(?s)bmc_emulation_pip_arguments.*No matching distribution"),
        ({"sources": {"__init__.py": "import nonsense"}}, "No module named 'nonsense'"),
        ({"sources": {"__init__.py": "", "parts/late.py": "import nonsense"}}, "No module named 'nonsense'"),
    ):
        with pytest.raises(OperatorError, match=said):
            steps(made, **broken)
        assert (release(made), len(releases(made))) == ("1", 1)
    with stuck_run(made, seconds=60, **NEW) as process:
        process.kill()
    assert (release(made), len(releases(made))) == ("1", 2)
    for check_mode in (True, False):
        assert steps(made, check_mode=check_mode) == TIDY
    assert (steps(made), len(releases(made))) == ([], 1)


def gone(_place: Path) -> None:
    pass


def changed(file: Path) -> None:
    file.write_text("RELEASE = 3\n")
    file.chmod(0o755 if os.access(file.parent / "python", os.F_OK) else 0o644)


@pytest.mark.parametrize(
    ("what", "damage"),
    [
        (".", gone),
        ("bin", gone),
        ("bin/python", gone),
        ("bin/python", changed),
        ("release-*", gone),
        ("release-*/bin/python", gone),
        ("release-*/release.json", gone),
        ("release-*/lib/*/site-packages/pip", gone),
        ("release-*/lib/*/site-packages/nometal_bmc/parts/late.py", changed),
    ],
)
def test_damage_is_noticed(made: Path, tmp_path: Path, what: str, damage: Callable[[Path], None]) -> None:
    place = next(made.glob(what)) if what != "." else made
    place.rename(tmp_path / "kept")
    damage(place)
    assert steps(made, check_mode=True) == INSTALL
    place.unlink(missing_ok=True)
    (tmp_path / "kept").rename(place)
    assert steps(made, check_mode=True) == []


@pytest.mark.parametrize("what", [".", "bin", "bin/python", "release-*", "release-*/lib/*/site-packages/pip"])
def test_what_the_service_cannot_read_is_damaged(made: Path, what: str) -> None:
    place = next(made.glob(what)) if what != "." else made
    place.chmod(0o700)
    assert steps(made, check_mode=True) == INSTALL
    place.chmod(0o755)
    assert steps(made, check_mode=True) == []


def test_what_it_takes_of_the_distribution_must_be_there(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        exists = os.path.exists
        patched.setattr(os.path, "exists", lambda path: not str(path).endswith("/json/decoder.py") and exists(path))
        assert steps(made, check_mode=True) == INSTALL
    assert steps(made, check_mode=True) == []


def test_damage_is_repaired(made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a host with SELinux, whose policy is asked about what services run."""
    labelled: list[tuple[str, ...]] = []
    with monkeypatch.context() as patched:
        patched.setattr(software, "SELINUX", tmp_path)
        patched.setattr(software, "run", lambda *command: labelled.append(command))
        shutil.rmtree(next(made.glob("release-*/lib/*/site-packages/nometal_bmc")))
        assert steps(made) == INSTALL
    assert labelled == [("restorecon", "-R", str(made / "bin"))]
    assert (release(made), len(releases(made))) == ("1", 1)
    assert steps(made) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"python": "/bin/true"}, r"python: must be Python 3.9 or later, such as /usr/bin/python3 \(got /bin/true\)"),
        ({"python": "/nope"}, "python is /nope, which cannot be run: No such file"),
        *(({"sources": {name: ""}}, f"sources: {re.escape(name)}: names must be of") for name in STRANGE),
        ({"path": "opt/nometal"}, "path: must be an absolute path"),
        ({"path": "/dev/null/bmc"}, "cannot be installed in /dev/null/bmc: .*Not a directory"),
    ],
)
def test_bad_arguments_are_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        HostSoftware.run({**parameters(tmp_path / "new"), **changed}, check_mode=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("state", ["present", "absent"])
def test_what_is_not_ours_stays(tmp_path: Path, state: str) -> None:
    (tmp_path / "bin").mkdir()
    with pytest.raises(OperatorError, match=r"name a directory of its own; or remove it, if an earlier nometal\.ipi"):
        steps(tmp_path, state=state)
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_a_removal_that_was_killed_is_completed(tmp_path: Path) -> None:
    for left in ([MARK], []):
        path = tmp_path / "nometal/bmc"
        directories.make(path)
        for name in left:
            (path / name).touch()
        assert steps(path, state="absent") == REMOVE
        assert not path.parent.exists()


def test_a_directory_above_that_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "nometal/bmc").mkdir(parents=True)
    (tmp_path / "nometal/bmc" / MARK).touch()
    assert steps(tmp_path / "nometal/bmc", state="absent") == REMOVE
    assert list((tmp_path / "nometal").iterdir()) == []


def test_it_goes(made: Path) -> None:
    for check_mode in (True, False):
        assert steps(made, state="absent", check_mode=check_mode) == REMOVE
    assert not made.parent.exists()
    for check_mode in (True, False):
        assert steps(made, state="absent", check_mode=check_mode) == []
