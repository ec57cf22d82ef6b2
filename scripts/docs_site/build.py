"""Build the documentation site of the collection as it is packed: build.py DIRECTORY

Pages of modules, filters and roles are antsibull-docs' ones; guides are those of docs/. Whatever is not sound, such as
a link that leads nowhere, is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
COLLECTION = "nometal.ipi"
PAGES = ("*.md", "*.rst", "docs/*.md", "docs/images/*", "bmc/README.md")
# On the site, roles and modules have pages of their own.
INSTEAD = {
    r"\]\(((?:\.\./)*)roles/(\w+)/README\.md\)": r"](\1collection/\2_role.rst)",
    r"\]\(((?:\.\./)*)plugins/modules/(\w+)\.py\)": r"](\1collection/\2_module.rst)",
}


def build(below: Path) -> Path:
    """Its front page."""
    source = below / "source"
    shutil.rmtree(below, ignore_errors=True)
    (source / "collection").mkdir(parents=True, mode=0o755)
    packed = install(below)
    environment = {"ANSIBLE_COLLECTIONS_PATH": str(below)}
    options = ("--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", str(source / "collection"))
    run("antsibull-docs", "collection", *options, COLLECTION, **environment)
    copy_pages(packed, source)
    for file in ("conf.py", "index.md"):
        shutil.copy(HERE / file, source)
    run("sphinx-build", "-q", "-W", "--keep-going", "-d", str(below / "doctrees"), str(source), str(below / "html"))
    return below / "html" / "index.html"


def install(below: Path) -> Path:
    """As it is packed; the directory."""
    run("ansible-galaxy", "collection", "build", "--output-path", str(below), str(ROOT))
    [tarball] = below.glob("*.tar.gz")
    options = ("--offline", "--collections-path", str(below))
    run("ansible-galaxy", "collection", "install", str(tarball), *options, ANSIBLE_COLLECTIONS_PATH=str(below))
    return below / "ansible_collections" / Path(*COLLECTION.split("."))


def copy_pages(packed: Path, source: Path) -> None:
    for path in sorted(each for pattern in PAGES for each in packed.glob(pattern)):
        target = source / path.relative_to(packed)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copy(path, target)
            continue
        text = path.read_text(encoding="utf-8")
        for link, instead in INSTEAD.items():
            text = re.sub(link, instead, text)
        target.write_text(text, encoding="utf-8")


def run(program: str, *arguments: str, **environment: str) -> None:
    """Of the virtualenv that this runs in; what it says is shown if it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [program, *arguments],
        env={**os.environ, "PATH": path, **environment},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        sys.exit(f"{program} failed:\n{done.stdout}")


if __name__ == "__main__":
    sys.stdout.write(f"The site is made: {build(Path(sys.argv[1]).resolve())}\n")
