"""Started by sandbox.start(): runs a command in new namespaces and a control group of its own until its owner ends.

Arguments: kind, name and facts (only to be found by), the owner's pidfd or -1, a pipe's end that only the command is to
hold or -1, the command.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType


def control_groups() -> Path:
    """This process's place in the unified hierarchy, wherever the machine has mounted it."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    root = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    if root is None:
        sys.exit("The test bench needs control groups version 2 mounted somewhere (usually /sys/fs/cgroup).")
    own = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    return root / own[len("0::/") :]


def subgroups(group: Path) -> Iterator[Path]:
    """Every group below and then itself: the order in which they can be removed."""
    for child in (path for path in group.iterdir() if path.is_dir()):
        yield from subgroups(child)
    yield group


def remove(group: Path) -> None:
    with suppress(OSError):
        (group / "cgroup.kill").write_text("1")
    deadline = time.monotonic() + 10
    while group.exists() and time.monotonic() < deadline:
        with suppress(OSError):  # still populated: its processes are dying
            for path in subgroups(group):
                path.rmdir()
            return
        time.sleep(0.02)


def remove_forgotten(groups: Path) -> None:
    """Empty groups whose watcher was killed too. A group is named after its watcher."""
    for group in groups.glob("nometal-ipi.*"):
        if not Path(f"/proc/{group.suffix[1:]}").exists():
            remove(group)


def run(command: Sequence[str], owner: int, ready_fd: int, group: Path) -> int:
    join = ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "-"]
    bound = ["setpriv", "--pdeathsig", "KILL"]
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    child = subprocess.Popen([*join, *bound, *namespaces, *command], close_fds=False)
    if ready_fd >= 0:
        os.close(ready_fd)  # so that the starter notices when the command ends without being ready
    select.select([os.pidfd_open(child.pid), *([owner] if owner >= 0 else [])], [], [])
    child.kill()
    return child.wait()


def stop(signal_number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def main() -> None:
    _script, _kind, _name, _facts, owner, ready_fd, *command = sys.argv
    signal.signal(signal.SIGTERM, stop)
    groups = control_groups()
    remove_forgotten(groups)
    group = groups / f"nometal-ipi.{os.getpid()}"
    group.mkdir()
    try:
        sys.exit(run(command, int(owner), int(ready_fd), group))
    finally:
        remove(group)


if __name__ == "__main__":
    main()
