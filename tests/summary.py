"""Sum up what pytest has recorded: how many tests passed, and which took longest. `tests/summary.py DIRECTORY`"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 10


@dataclass(frozen=True)
class Test:
    name: str
    seconds: float
    cpu_seconds: float
    failed: bool


def tests_in(directory: Path) -> list[Test]:
    """A test that ran twice counts as it ended."""
    files = sorted(directory.glob("*.xml"), key=lambda file: file.stat().st_mtime_ns)
    found = [test for file in files for test in _tests_in(file)]
    return list({test.name: test for test in found}.values())


def _tests_in(file: Path) -> Iterable[Test]:
    for case in ET.parse(file).getroot().iter("testcase"):  # noqa: S314 - pytest has written it
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        failed = any(case.find(kind) is not None for kind in ("failure", "error"))
        cpu = case.find("properties/property[@name='cpu_seconds']")
        yield Test(name, float(case.get("time", 0)), 0 if cpu is None else float(cpu.get("value", 0)), failed)


def lines(tests: list[Test]) -> list[str]:
    failed = [test for test in tests if test.failed]
    return [
        *_slowest("slowest", tests),
        *_slowest("slowest files", list(_of_files(tests))),
        *(f"FAILED {test.name}" for test in failed),
        f"{len(tests) - len(failed)} passed, {len(failed)} failed",
    ]


def _slowest(what: str, tests: list[Test]) -> list[str]:
    slowest = sorted(tests, key=lambda test: -test.seconds)[:MOST]
    shown = [f"  {test.seconds:6.1f} s {test.cpu_seconds:6.1f}  {test.name}" for test in slowest]
    return [f"the {len(slowest)} {what}, with their CPU seconds:", *shown]


def _of_files(tests: list[Test]) -> Iterable[Test]:
    """What is shared by the tests of a file is in the record of its first or its last."""
    found: dict[str, list[Test]] = {}
    for test in tests:
        found.setdefault(test.name.partition("::")[0], []).append(test)
    for name, own in found.items():
        yield Test(name, sum(test.seconds for test in own), sum(test.cpu_seconds for test in own), failed=False)


if __name__ == "__main__":
    recorded = tests_in(Path(sys.argv[1]))
    if recorded:
        sys.stdout.write("\n".join(lines(recorded)) + "\n")
