"""The modules of community.general that speak Redfish, out of the PyPI package `ansible`."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from support.cache import cache_dir, made_once

REQUIREMENT = "ansible>=12,<13"
PLUGINS = "ansible_collections/community/general/plugins"
PARTS = (f"{PLUGINS}/modules/redfish_", f"{PLUGINS}/module_utils/redfish_utils.py")


def collections() -> Path:
    """A directory for ANSIBLE_COLLECTIONS_PATH, made first if need be: a download of 50 MB."""
    key = hashlib.sha256(f"{REQUIREMENT} {PARTS}".encode()).hexdigest()[:12]
    return made_once(cache_dir() / f"community-general-{key}", "community-general", lambda: _make(key))


def _make(key: str) -> None:
    with tempfile.TemporaryDirectory(dir=cache_dir()) as directory:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--dest", directory, REQUIREMENT], check=True)
        [wheel] = Path(directory).glob("*.whl")
        unfinished = Path(directory) / "collections"
        with zipfile.ZipFile(wheel) as package:
            package.extractall(unfinished, [name for name in package.namelist() if name.startswith(PARTS)])
        unfinished.rename(cache_dir() / f"community-general-{key}")
