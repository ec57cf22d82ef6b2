"""A virtualenv with what an execution environment has, and nothing else: what a controller lacks, shows."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from support.cache import cache_dir, made_once
from support.checkout import ROOT


def requirements() -> list[str]:
    """Python packages of the controller."""
    definition: dict[str, Any] = yaml.safe_load((ROOT / "execution-environment.yml").read_text(encoding="utf-8"))
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if line and not line.startswith("#")]
    return [*own, *(definition["dependencies"][each]["package_pip"] for each in ("ansible_core", "ansible_runner"))]


def environment() -> Path:
    """Its directory of programs, made first if need be."""
    key = hashlib.sha256(f"{Path(sys.executable).resolve()} {requirements()}".encode()).hexdigest()[:12]
    return made_once(cache_dir() / f"controller-{key}", "controller", lambda: _make(f"controller-{key}")) / "bin"


def _make(name: str) -> None:
    """A virtualenv is not moved: the link to it says that it is whole."""
    made = cache_dir() / f"{name}.venv"
    subprocess.run([sys.executable, "-m", "venv", "--clear", made], check=True)
    pip = [str(made / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements()], check=True)
    (cache_dir() / name).symlink_to(made)
