"""The program as one file: a zip that Python runs; by the name that it is called it is `oc` or the installer."""

from __future__ import annotations

import io
import sys
import zipfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Traversable

SHEBANG = b"#!/usr/bin/python3 -I\n"
MAIN = "import sys\nfrom support.stand_in import program\nsys.exit(program.main())\n"
VERSION = "version"


def make(path: Path, version: str) -> None:
    """Also out of the one that is running."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _sources().items():
            archive.writestr(name, text)
        archive.writestr("__main__.py", MAIN)
        archive.writestr(VERSION, version)
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(SHEBANG + content.getvalue())
    new.chmod(0o755)
    new.replace(path)


def _sources() -> dict[str, str]:
    found = {"support/__init__.py": "", "support/stand_in/__init__.py": ""}
    found["support/installer_rules.py"] = resources.files("support").joinpath("installer_rules.py").read_text("utf-8")
    return {**found, **_below(resources.files("support.stand_in"), "support/stand_in")}


def _below(directory: Traversable, name: str) -> dict[str, str]:
    found = {}
    for item in directory.iterdir():
        if item.is_dir():
            found.update(_below(item, f"{name}/{item.name}"))
        elif item.name.endswith(".py"):
            found[f"{name}/{item.name}"] = item.read_text(encoding="utf-8")
    return found


def own_version() -> str:
    with zipfile.ZipFile(sys.argv[0]) as archive:
        return archive.read(VERSION).decode()
