"""What the BMC services need of Python's package index, for lab hosts that have no way to one."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from support.cache import cache_dir, made_once

if TYPE_CHECKING:
    from typing import Callable

    from support.lab_host import LabHost

REQUIREMENTS = Path(__file__).parents[2] / "bmc/requirements.txt"
IN_HOST = "/srv/wheels"
# The host's pip finds them by itself.
PIP_SETTINGS = f"[install]\nno-index = true\nfind-links = {IN_HOST}\n"
# Only what the distribution's own packages leave to be installed.
BUILD = f"""set -e
python3 -m venv --system-site-packages /tmp/wheels
cd /tmp/wheels/bin
./pip --quiet install --requirement /dev/stdin
./pip freeze --local > /tmp/installed
./pip --quiet wheel --no-deps --wheel-dir {IN_HOST} --requirement /tmp/installed"""


def directory(suite: str, start: Callable[[], LabHost]) -> Path:
    """Where the wheels for a suite's Python are, made first if need be, by a host that reaches an index."""
    requirements = REQUIREMENTS.read_text()
    key = hashlib.sha256((requirements + BUILD).encode()).hexdigest()[:12]
    path = cache_dir() / "wheels" / f"{suite}-{key}"

    def build() -> None:
        unfinished = path.with_name(f"{suite}.building")
        shutil.rmtree(unfinished, ignore_errors=True)
        with start() as host:
            host.run(BUILD, input=requirements, timeout=600)
            shutil.copytree(host.root / IN_HOST.lstrip("/"), unfinished)
        unfinished.rename(path)

    return made_once(path, f"wheels-{suite}", build)
