"""Which of the two programs this is."""

from __future__ import annotations

import sys
from pathlib import Path

from support.stand_in import installer, oc, package


def main() -> int:
    name, version = Path(sys.argv[0]).name, package.own_version()
    return oc.main(version) if name in ("oc", "kubectl") else installer.main(version, name)
