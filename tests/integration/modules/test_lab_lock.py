"""Two runs of ansible-playbook on one lab: of one controller, of two, and when one of them is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from support import lab_host
from support.checkout import ROOT
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from support.lab_host import LabHost

RECORD = "/run/nometal/locks/demo"
# What a controller in a container is: it numbers its processes by itself, and ends with all of them.
CONTAINER = ["unshare", "--pid", "--fork", "--kill-child"]
OVERDUE = "import json, sys; r = json.load(open(sys.argv[1])); r['renewed'] -= 58; json.dump(r, open(sys.argv[1], 'w'))"


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host.start(layer="bare") as started:
        started.run("mkfifo /run/taken /run/go_on")
        yield started


@pytest.fixture
def playbooks(host: LabHost) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:  # in which ssh finds room for the long names of its sockets
        write_playbooks(host, Path(directory))
        yield Path(directory)


def write_playbooks(host: LabHost, directory: Path) -> None:
    lock = {"lab": "demo", "take_over": "{{ lab_lock_take_over | default(false) }}"}
    take = {"name": "Take", "nometal.ipi.lab_lock": {**lock, "stage": "all"}, "register": "first"}
    show = {"name": "Show", "ansible.builtin.debug": {"msg": "outcome: {{ first.outcome }}"}}
    stage = {"name": "Again", "nometal.ipi.lab_lock": {**lock, "stage": "one"}}
    kept = {"name": "Not yet", "nometal.ipi.lab_lock": {**lock, "stage": "one", "state": "released"}}
    hold = {"name": "Hold", "ansible.builtin.shell": "echo >/run/taken; cat /run/go_on", "changed_when": False}
    release = {"name": "Release", "nometal.ipi.lab_lock": {**lock, "stage": "all", "state": "released"}}
    for name, tasks in {"quick": [take, show, stage, kept, release], "long": [take, hold, release]}.items():
        play = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
        (directory / f"{name}.yml").write_text(yaml.safe_dump(play, sort_keys=False))
    (directory / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"h": host.inventory_variables()}}}))


def command(playbooks: Path, name: str, *arguments: str) -> list[str]:
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    return [program, str(playbooks / f"{name}.yml"), "-i", str(playbooks / "hosts.yml"), *arguments]


def quick(playbooks: Path, *arguments: str, inside: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    done = [*inside, *command(playbooks, "quick", *arguments)]
    return subprocess.run(
        done, cwd=ROOT, env=environment(playbooks), check=False, text=True, capture_output=True, timeout=120
    )


def environment(playbooks: Path) -> dict[str, str]:
    collections = str(ROOT / "playbooks" / "collections")
    connections = str(playbooks / "cp")
    return {**os.environ, "ANSIBLE_COLLECTIONS_PATH": collections, "ANSIBLE_SSH_CONTROL_PATH_DIR": connections}


@contextmanager
def holding(
    host: LabHost, playbooks: Path, inside: Sequence[str] = (), **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A run that has the lab until it is let go on, or is killed with its whole process group."""
    run = subprocess.Popen(
        [*inside, *command(playbooks, "long")],
        cwd=ROOT,
        env={**environment(playbooks), **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        host.run("cat /run/taken")
        yield run
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


@contextmanager
def connection(host: LabHost, socket: Path) -> Iterator[None]:
    """What ssh would start for the container, which cannot enter the lab host by itself."""
    options = ["-F", str(host.ssh_config()), "-o", "ControlMaster=yes", "-o", f"ControlPath={socket}"]
    with subprocess.Popen(["ssh", *options, "-N", host.name]) as ssh:
        wait_until("ssh is connected", socket.exists)
        yield
        ssh.terminate()


def has_locks(host: LabHost) -> bool:
    return host.run("ls /run/nometal", check=False).returncode == 0


def test_a_run_has_the_lab_and_gives_it_back(host: LabHost, playbooks: Path) -> None:
    done = quick(playbooks)
    assert done.returncode == 0, done.stdout
    assert "changed=0" in done.stdout
    assert "outcome: taken" in done.stdout
    assert "WARNING" not in done.stderr + done.stdout
    assert not has_locks(host)


def test_a_second_run_is_refused_and_told_who_has_the_lab(host: LabHost, playbooks: Path) -> None:
    with holding(host, playbooks) as first:
        before = host.read(RECORD)
        refused = quick(playbooks)
        assert refused.returncode != 0
        who = f"@{os.uname().nodename}, {playbooks}/long.yml (process {first.pid}), since "
        for told in (
            "Another run has lab demo on host h: ",
            who,
            "-e lab_lock_take_over=true",
            "This stage has changed nothing",
        ):
            assert told in refused.stdout
        assert "Traceback" not in refused.stdout + refused.stderr

        foreseen = quick(playbooks, "--check")
        assert foreseen.returncode == 0, foreseen.stdout
        assert who in foreseen.stderr + foreseen.stdout
        assert host.read(RECORD) == before

        forced = quick(playbooks, "-e", "lab_lock_take_over=true")
        assert forced.returncode == 0, forced.stdout
        assert "was taken over on host h from " in forced.stderr + forced.stdout
        host.run("echo >/run/go_on")
        assert first.wait() == 0
    assert not has_locks(host)


def test_a_killed_run_is_followed_at_once_by_the_next(host: LabHost, playbooks: Path) -> None:
    with holding(host, playbooks) as first:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        after = quick(playbooks)
    assert after.returncode == 0, after.stdout
    assert "its process is no longer there" in after.stderr + after.stdout
    assert not has_locks(host)


def test_of_a_run_on_another_controller_the_connection_tells(host: LabHost, playbooks: Path) -> None:
    socket = playbooks / "socket"
    with connection(host, socket), holding(host, playbooks, CONTAINER, ANSIBLE_SSH_CONTROL_PATH=str(socket)) as first:
        assert "Another run has lab demo" in quick(playbooks).stdout
        session = json.loads(host.read(RECORD))["connection"]["pid"]
        os.killpg(first.pid, signal.SIGKILL)
    wait_until("the connection is gone", lambda: host.run(f"kill -0 {session}", check=False).returncode != 0)
    foreseen = quick(playbooks, "--check")
    assert "outcome: waiting" in foreseen.stdout  # it may come back
    host.run(["/usr/bin/python3", "-c", OVERDUE, RECORD])
    after = quick(playbooks)
    assert after.returncode == 0, after.stdout
    assert "its connection to the host has ended" in after.stderr + after.stdout
    assert not has_locks(host)


def test_what_is_no_lab_is_refused(host: LabHost, playbooks: Path) -> None:
    play = [{"hosts": "all", "gather_facts": False, "tasks": [{"nometal.ipi.lab_lock": {"lab": "../demo"}}]}]
    (playbooks / "quick.yml").write_text(yaml.safe_dump(play))
    assert "lab is '../demo'" in quick(playbooks).stdout
    assert not has_locks(host)
