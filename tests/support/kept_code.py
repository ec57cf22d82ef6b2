"""What Ansible does anew in each run is done once for all tests, as it was more than half of their CPU time.

The controller packs each module with all that it imports: packed modules are kept, by the content of the collection.
The managed host compiles what it is sent: lab hosts that have packages keep the code, by the content of the source.
Nothing of this is on `bare` hosts, where everything goes as a new user has it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from support.cache import cache_dir

ROOT = Path(__file__).parents[2]
CALLBACKS = Path(__file__).with_name("ansible_callbacks")
COMPILER = Path(__file__).with_name("compiled_once.py")
IN_HOST = "/run/lab-compiled"
IGNORED = {"__pycache__", "collections"}
DAYS = 7


def have_ansible_keep_modules() -> None:
    """In all that is started from here on; ansible_callbacks/kept_modules.py does the rest."""
    os.environ["KEPT_MODULES"] = str(modules())
    os.environ["ANSIBLE_CALLBACK_PLUGINS"] = str(CALLBACKS)
    os.environ["ANSIBLE_LOAD_CALLBACK_PLUGINS"] = "true"


def compiled() -> Path:
    """The directory which a lab host has at IN_HOST."""
    path = cache_dir() / "compiled"
    path.mkdir(exist_ok=True)
    return path


def install(root: Path) -> None:
    """Into the disk of a lab host, for each Python that it has."""
    for library in (root / "usr/lib").glob("python3.*"):
        packages = root / "usr/local/lib" / library.name / "dist-packages"
        packages.mkdir(parents=True, exist_ok=True)
        shutil.copy(COMPILER, packages)
        (packages / "compiled_once.pth").write_text(f"import {COMPILER.stem}\n")


def forget_old() -> None:
    """What has not been made for days; modules, not used for days. Who misses some of it makes it again."""
    oldest = time.time() - DAYS * 86400
    for path in (*(cache_dir() / "modules").glob("*"), *compiled().iterdir()):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < oldest:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@cache
def digest_of(*directories: str) -> str:
    """Of all files below these directories of the checkout."""
    paths = (path.relative_to(ROOT) for top in directories for path in (ROOT / top).rglob("*"))
    files = (path for path in sorted(paths) if not IGNORED & {*path.parts} and (ROOT / path).is_file())
    return digest("\0".join(f"{path}\0{digest((ROOT / path).read_bytes())}" for path in files))


def digest(content: str | bytes) -> str:
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


def modules(changes: str = "") -> Path:
    """Where those of the checkout are kept, or of a copy of it with these changes."""
    path = cache_dir() / "modules" / digest(version("ansible-core") + digest_of("plugins") + changes)[:12]
    path.mkdir(parents=True, exist_ok=True)
    os.utime(path)  # in use
    return path
