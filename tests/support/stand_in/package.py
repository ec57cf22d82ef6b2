"""The program as one file: a zip that Python runs; by the name that it is called it is `oc` or the installer."""

from __future__ import annotations

import io
import sys
import zipfile
from importlib import resources
from pathlib import Path

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
    for package, names in {"support.stand_in": None, "support": {"installer_rules.py"}}.items():
        for item in resources.files(package).iterdir():
            if item.name.endswith(".py") and (names is None or item.name in names):
                found[f"{package.replace('.', '/')}/{item.name}"] = item.read_text(encoding="utf-8")
    return found


def own_version() -> str:
    with zipfile.ZipFile(sys.argv[0]) as archive:
        return archive.read(VERSION).decode()
