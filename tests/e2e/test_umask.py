"""What a lab makes on its host has the same owners and modes, whatever the umask of who makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import checkout, made_lab, snapshot
from support.checkout import run_playbook
from support.failures import ending

if TYPE_CHECKING:
    from pathlib import Path

# The snapshot leaves /run out.
RUN = "find /run/nometal* /run/libvirtd.pid -printf '%p %u:%g %m\\n' 2>/dev/null | sort"
WRITABLE_BY_OTHERS = (
    "find /etc /opt /usr/local /var/lib/nometal /var/cache/nometal /run/nometal* -xdev ! -type l -perm /022"
)


@pytest.mark.full
def test_owners_and_modes_are_the_same_whatever_the_umask(tmp_path: Path) -> None:
    """The loosest and the strictest: what is alike under both depends on none."""
    with made_lab.without_lab() as host:
        inventory = checkout.inventory(host, tmp_path)
        before = snapshot.take(host)
        writable_before = host.run(WRITABLE_BY_OTHERS, check=False).stdout
        seen = []
        for umask in ("000", "077"):
            of_umask = checkout.with_umask(host, inventory, umask)
            made = run_playbook("site", of_umask)
            assert made.returncode == 0, ending(made.stdout)
            seen.append((snapshot.take(host), host.run(RUN).stdout))
            assert host.run(WRITABLE_BY_OTHERS, check=False).stdout == writable_before
            assert host.run("getent ahosts api.rehearsal.lab.example.test").stdout.startswith("192.168.126.5")
            removed = run_playbook("teardown", of_umask)
            assert removed.returncode == 0, ending(removed.stdout)
        (loose, loose_run), (strict, strict_run) = seen
        assert strict.diff(loose, without=("files /usr/local/bin/python-*",)) == ""
        assert strict_run == loose_run
        assert snapshot.take(host).diff(before, without=("files /usr/local/bin/python-*",)) == ""
