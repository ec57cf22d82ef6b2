# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor on a host where libvirt and qemu hang, beside one where nothing does.

python3 tests/bench/bench_doctor.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Callable

MOST_SECONDS = 10.0


def seconds(action: Callable[[], object]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def main() -> int:
    root = Path(__file__).parents[2]
    sys.path[:0] = [str(root / "tests")]
    from integration.doctor.conftest import run_doctor  # noqa: PLC0415 - its place is known only now
    from integration.doctor.test_environment import ALL_HANGS  # noqa: PLC0415 - as above

    yardstick = seconds(run_doctor)
    own = seconds(lambda: run_doctor(ALL_HANGS, install=True, qemu="/run/qemu"))
    sys.stdout.write(f"doctor, where all hangs: {own:.1f} s (limit {MOST_SECONDS:.0f}); where nothing does ")
    sys.stdout.write(f"{yardstick:.1f} s; ratio {own / yardstick:.1f}\n")
    return 0 if own <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
