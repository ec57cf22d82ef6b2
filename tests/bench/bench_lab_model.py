# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the model of a large lab takes, beside reading the same specification from YAML.

PYTHONPATH=playbooks/collections python3 tests/bench/bench_lab_model.py
"""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

import yaml

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

NODES = 100
ROUNDS = 30
LIMIT_MS = 20.0


def specification(nodes: int) -> dict[str, Any]:
    """Every worker has an override, so that the text grows with the lab as the model does."""
    workers = nodes - 3
    overrides = {f"worker-{number}": {"memory": "12GiB", "vcpus": 8} for number in range(workers)}
    return {"name": "large", "nodes": {"workers": {"count": workers}, "overrides": overrides}}


def milliseconds(action: Callable[[], object]) -> float:
    """Of processor time, and the best of many: what the code costs, whatever else the machine is doing."""
    return 1000 * min(_once(action) for _round in range(ROUNDS))


def _once(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def main() -> int:
    lab_spec = specification(NODES)
    text = yaml.safe_dump(lab_spec)
    model_ms = milliseconds(lambda: lab_model(lab_spec))
    yaml_ms = milliseconds(lambda: yaml.safe_load(text))
    small_ms = milliseconds(lambda: lab_model(specification(5)))
    sys.stdout.write(
        f"model of {NODES} nodes: {model_ms:.1f} ms (limit {LIMIT_MS:.0f}); of 5: {small_ms:.1f} ms; "
        f"reading its YAML: {yaml_ms:.1f} ms; model/YAML ratio {model_ms / yaml_ms:.2f}\n"
    )
    return 0 if model_ms <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
