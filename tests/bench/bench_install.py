# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stage install of a cluster that is installed, beside the one that has installed it (by a stand-in, in a minute).

python3 tests/bench/bench_install.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.install_lab import InstallLab

MOST_AGAIN = 0.7


def seconds(lab: InstallLab) -> float:
    start = time.monotonic()
    done = lab.install()
    if done.returncode != 0:
        raise RuntimeError(done.stdout)
    return time.monotonic() - start


def main() -> int:
    root = Path(__file__).parents[2]
    sys.path[:0] = [str(root / "tests"), str(root / "playbooks/collections")]
    from support import install_lab  # noqa: PLC0415 - its place is known only now

    with tempfile.TemporaryDirectory() as directory, install_lab.start(Path(directory)) as lab:
        lab.scenario()
        first = seconds(lab)
        again = seconds(lab)
    sys.stdout.write(
        f"install: first {first:.0f} s; again {again:.0f} s; ratio {again / first:.2f} (limit {MOST_AGAIN})\n"
    )
    return 0 if again / first <= MOST_AGAIN else 1


if __name__ == "__main__":
    sys.exit(main())
