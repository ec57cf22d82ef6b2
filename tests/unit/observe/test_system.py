"""The distribution, of what os-release says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._observe import system

UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n'
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n'
SID = "PRETTY_NAME='Debian GNU/Linux trixie/sid'\nID=debian\n# a comment\n"
ARCH = "ID=arch\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (UBUNTU, ("Ubuntu 24.04.1 LTS", "Debian", "Ubuntu-24")),
        (ROCKY, ("rocky", "RedHat", "Rocky-9")),
        (SID, ("Debian GNU/Linux trixie/sid", "Debian", "Debian")),
        ("ID=fedora\nVERSION_ID=43\n", ("fedora", "RedHat", "Fedora-43")),
        ("ID=linuxmint\nID_LIKE=ubuntu\nVERSION_ID=22\n", ("linuxmint", "Debian", "Linuxmint-22")),
        (ARCH, ("arch", "", "Arch")),
        ("", ("unknown", "", "")),
    ],
)
def test_distribution(
    text: str, expected: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "os-release").write_text(text)
    monkeypatch.setattr(system, "OS_RELEASE", tmp_path / "os-release")
    found = system.distribution()
    assert (found.name, found.family, found.release) == expected
