from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import network_hook, processes
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import HookEntry


@pytest.fixture(autouse=True)
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(network_hook, "HOOKS", tmp_path)
    monkeypatch.setattr(network_hook, "DISPATCHER", tmp_path / "network.d" / "nometal")
    monkeypatch.setattr(network_hook, "ENTRIES", tmp_path / "nometal.d")
    return tmp_path


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The number of a running libvirtd, in its file."""
    pid_file = tmp_path / "libvirtd.pid"
    pid_file.touch()
    monkeypatch.setattr(network_hook, "pid_file_of", lambda daemon: tmp_path / f"{daemon}.pid")
    monkeypatch.setattr(network_hook, "pid_of", lambda daemon: 1 if (tmp_path / f"{daemon}.pid").exists() else None)
    return pid_file


def test_it_comes_and_goes(hooks: Path) -> None:
    assert set(network_hook.parts()) == set()
    network_hook.install()
    assert set(network_hook.parts()) == network_hook.WHOLE
    for mode in (0o644, 0o777):  # it cannot be run; others can write what root runs
        network_hook.DISPATCHER.chmod(mode)
        assert set(network_hook.parts()) == {"script"}
    network_hook.uninstall()
    assert list((hooks / "network.d").iterdir()) == []


def test_an_entry_comes_and_goes(hooks: Path) -> None:
    entry, other = HookEntry("nmn-demo.veth"), HookEntry("nmn-other.veth")
    assert entry.read() is None
    for one in (entry, other):
        one.write("#!/bin/sh\n")
    assert entry.read() == "#!/bin/sh\n"
    assert os.access(entry.path, os.X_OK)
    for path, mode in ((entry.path, 0o644), (entry.path, 0o777), (entry.path.parent, 0o777)):
        path.chmod(mode)
        assert entry.read() == ""
        assert entry.text() == "#!/bin/sh\n"
        entry.write("#!/bin/sh\n")
        assert entry.read() == "#!/bin/sh\n"
    for one in (entry, other, other):
        one.remove()
    assert not (hooks / "nometal.d").exists()


def test_a_daemon_that_was_started_before_is_deaf(daemon: Path) -> None:
    assert network_hook.deaf_daemons() == {"libvirtd"}
    assert (network_hook.silence() or "").endswith("network.d/nometal is missing or was changed")
    network_hook.install()
    os.utime(daemon, (1, 1))
    assert network_hook.deaf_daemons() == {"libvirtd"}
    assert (network_hook.silence() or "").startswith("libvirtd was started before")
    later = network_hook.DISPATCHER.stat().st_ctime + 1
    os.utime(daemon, (later, later))
    assert network_hook.deaf_daemons() == frozenset()
    assert network_hook.silence() is None


def test_one_that_does_not_run_will_find_it_when_it_does(daemon: Path) -> None:
    daemon.unlink()
    network_hook.install()
    assert network_hook.deaf_daemons() == frozenset()


def test_the_dispatcher_is_a_good_script() -> None:
    subprocess.run(["shellcheck", "-"], input=network_hook.DISPATCHER_TEXT, text=True, check=True)


def test_a_number_that_is_another_programs_by_now_is_no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pid").write_text(f"{os.getpid()}\n", encoding="ascii")
    monkeypatch.setattr(processes, "pid_file_of", lambda _daemon: tmp_path / "pid")
    assert processes.pid_of("libvirtd") is None
    own = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    assert processes.pid_of(own) == os.getpid()
