"""A program that may write files is started with a umask of ours, whatever the umask of the run is."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall import host

if TYPE_CHECKING:
    from collections.abc import Iterator

PLUGINS = Path(__file__).parents[3] / "plugins"
STARTING = [f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output")]
# By function: programs that only look.
LOOKING = {
    ("forwarding.py", "_nat_rules"): "nft and iptables-save",
    ("processes.py", "journal_of"): "journalctl",
    ("host_server.py", "_journal"): "journalctl",
    ("host_server.py", "_systemctl"): "systemctl is-active",
    ("systemd_resolved.py", "runs"): "systemctl is-active",
    ("lookup.py", "found_by_programs"): "resolvectl",
    ("host.py", "output_of"): "what the doctor measures with",
    ("kvm.py", "_failure_of"): "a guest without a disk",
    ("conflicts.py", "_can_read"): "test -r",
    ("release.py", "require_python"): "asks a Python for its version",
}


def programs_started(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """By function, and whether with a umask."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTING:
                    yield function.name, any(keyword.arg == "umask" for keyword in node.keywords)


def test_every_program_that_may_write_has_a_umask() -> None:
    without = {
        (path.name, function)
        for path in PLUGINS.rglob("*.py")
        if "_agent" not in path.parts  # they run in guests of ours
        for function, has_umask in programs_started(ast.parse(path.read_text(encoding="utf-8")))
        if not has_umask
    }
    assert without == set(LOOKING)


def test_firewalld_gets_files_that_only_root_changes() -> None:
    """By `firewall-offline-cmd`, which writes its copies of zones with the umask that it is given."""
    before = os.umask(0)
    try:
        assert host.run("sh", "-c", "umask").strip() == "0022"
    finally:
        os.umask(before)
