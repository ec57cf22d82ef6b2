"""kubectl as Debian has it, of the releases that lab hosts have; kept in the cache.

`program("trixie")` is the file, taken out of the package; nothing is installed on this machine.
`install(host)` puts it on a lab host.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from support.cache import cache_dir, made_once
from support.lab_trees import mirrors

if TYPE_CHECKING:
    from support.lab_host import LabHost

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES = {"bookworm": "kubernetes-client", "trixie": "kubectl"}
SUITES = tuple(PACKAGES)
NEWEST = "trixie"


def program(suite: str = NEWEST) -> Path:
    path = cache_dir() / "kubectl" / suite / "kubectl"
    return made_once(path, f"kubectl-{suite}", lambda: _unpack(path, suite))


def install(host: LabHost) -> None:
    """As /usr/bin/kubectl, where the package would put it."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)  # the host's directory gets the same mode
        shutil.copy(program(host.facts["suite"]), Path(scratch) / "kubectl")
        host.copy_tree(Path(scratch), "/usr/bin")


def _unpack(path: Path, suite: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        _download(directory, suite)
        [package] = directory.glob("*.deb")
        _run(["dpkg-deb", "--extract", package.name, "all"], directory)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name("unpacked")
        shutil.copy(directory / "all/usr/bin/kubectl", new)
        new.replace(path)


def _download(directory: Path, suite: str) -> None:
    """By an apt that knows this release alone, and nothing of what this machine has."""
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (directory / name).mkdir(parents=True)
    (directory / "status").touch()
    (directory / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirrors()[0]} {suite} main\n")
    own = {
        "Dir::State::Lists": "lists",
        "Dir::State::status": "status",
        "Dir::Cache": "cache",
        "Dir::Etc::sourcelist": "sources.list",
        "Dir::Etc::sourceparts": "parts",
        "Dir::Etc::preferencesparts": "parts",
    }
    options = [f"-o={key}={directory / value}" for key, value in own.items()]
    apt = ["apt-get", "-q", "-o=APT::Sandbox::User=root", "-o=APT::Update::Post-Invoke-Success=", *options]
    _run([*apt, "update"], directory)
    _run([*apt, "download", PACKAGES[suite]], directory)


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, check=False, text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"kubectl for tests: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
