"""The process that runs modules for tests."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import ansible
from support.modules import RUNNER
from support.waiting import PATIENCE

MODULE = """
import os, signal
if __name__ == "__main__":
    os.write({descriptor}, b"runs")
    signal.pause()
"""


def test_a_module_ends_with_the_process_that_runs_it(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    (tmp_path / "endless.py").write_text(MODULE.format(descriptor=writing))
    places = {"collections": str(tmp_path), "ansible": str(Path(ansible.__file__).parent)}
    task = json.dumps({"module": "endless", "arguments": {}, **places})
    command = [sys.executable, str(RUNNER), "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, pass_fds=[writing]) as server:
        os.close(writing)
        assert server.stdin
        server.stdin.write(task + "\n")
        server.stdin.flush()
        assert _next(reading) == b"runs"
        server.kill()
    assert _next(reading) == b""  # nobody has the other end any more
    os.close(reading)


def _next(reading: int) -> bytes:
    assert select.select([reading], [], [], PATIENCE)[0]
    return os.read(reading, 100)
