"""The image of the rehearsal's guests, made once and kept in the cache, for lab hosts that have no way to packages."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from support import lab_trees
from support.cache import cache_dir, made_once

if TYPE_CHECKING:
    from typing import Callable

    from support.lab_host import LabHost

ROOT = Path(__file__).parents[2]
BUILDER = ROOT / "plugins/module_utils/_rehearsal/image"
AGENT = ROOT / "plugins/module_utils/_agent"
IN_HOST = "var/cache/nometal/rehearsal"
LIBRARY = "/root/library"
COLLECTION = "ansible_collections/nometal/ipi/plugins/module_utils"
BUILD = f"""
import json, sys
from pathlib import Path
sys.path.insert(0, "{LIBRARY}")
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.store import ImagePort
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.recipe import Recipe
ImagePort(Recipe(Path("/{IN_HOST}"), **json.load(sys.stdin))).apply(Step("build", "image"))
"""


def arguments() -> dict[str, Any]:
    """As the role gives them to the module."""
    names = yaml.safe_load((ROOT / "roles/rehearsal/vars/Debian.yml").read_text())
    sources = {path.name: path.read_text() for path in sorted(AGENT.glob("*.py"))}
    return {"sources": sources, "packages": names["rehearsal_packages"], "network_boot": False, "sata_disks": False}


def build_in(host: LabHost, given: dict[str, Any]) -> None:
    """As the module does it, without Ansible: lab hosts are also started where there is none."""
    host.copy_tree(ROOT / "plugins/module_utils", f"{LIBRARY}/{COLLECTION}", exclude=["__pycache__"])
    host.run(["/usr/bin/python3", "-c", BUILD], input=json.dumps(given), timeout=300)
    host.run(["rm", "-r", LIBRARY])


def tree(suite: str, start: Callable[[], LabHost]) -> Path:
    """What lies over a suite's tree of files, made first if need be, by a host that reaches packages."""
    path = cache_dir() / "rehearsal" / f"{suite}-{_key(suite)}"
    return made_once(path, f"rehearsal-{suite}", lambda: _build(path, suite, start))


def _build(path: Path, suite: str, start: Callable[[], LabHost]) -> None:
    unfinished = path.with_name(f"{suite}.building")
    shutil.rmtree(unfinished, ignore_errors=True)
    with start() as host:
        for network_boot in (False, True):
            build_in(host, {**arguments(), "network_boot": network_boot})
        shutil.copytree(host.root / IN_HOST, unfinished / IN_HOST)
    unfinished.rename(path)
    lab_trees.remove_outdated(path)


def _key(suite: str) -> str:
    builder = [path.read_text() for path in (Path(__file__), *sorted(BUILDER.glob("*.py")))]
    parts = [json.dumps(arguments()), lab_trees.tree(suite, "prepared").name, *builder]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
