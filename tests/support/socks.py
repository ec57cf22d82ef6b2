"""A laptop: commands in a network of their own, from which a lab host is reached by `ssh -D` alone."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from support.lab_host import LabHost

# The port is free, as the network is new.
SCRIPT = """\
ip link set lo up
ssh -F "$1" -N -D 1080 "$2" &
proxy=$!
trap 'kill $proxy' EXIT
until (exec 3<>/dev/tcp/127.0.0.1/1080) 2>/dev/null; do
    kill -0 $proxy || exit 1
    sleep 0.1
done
shift 2
"$@"
"""
SECONDS = 300


def run(host: LabHost, directory: Path, command: list[str]) -> str:
    """What the command says, with the proxy at port 1080 as docs/access.md has it."""
    words = ["unshare", "--net", "bash", "-c", SCRIPT, "laptop", str(host.ssh_config()), host.name, *command]
    done = subprocess.run(
        words, cwd=directory, check=False, text=True, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
