"""When a copy that firewalld has made of a file that it ships is needless."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall import firewalld_files
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.firewalld_files import copy_of, places_of

if TYPE_CHECKING:
    from pathlib import Path

SHIPPED = """\
<zone target='ACCEPT'>
<description>
  For
  networks
</description>
<service name='dns'/><protocol value='icmp'/></zone>
"""
SAME = """\
<?xml version="1.0" encoding="utf-8"?>
<zone target="ACCEPT"><description> For   networks </description>
  <protocol value="icmp"/>
  <service name="dns"/></zone>
"""
OTHER = SAME.replace('"dns"', '"ssh"')


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> firewalld_files.Copy:
    monkeypatch.setattr(firewalld_files, "CONFIGURED", tmp_path / "etc")
    monkeypatch.setattr(firewalld_files, "SHIPPED", tmp_path / "usr")
    for name in ("etc", "usr"):
        (tmp_path / name / "zones").mkdir(parents=True)
    (tmp_path / "usr/zones/libvirt.xml").write_text(SHIPPED)
    return copy_of("zone=libvirt")


@pytest.mark.parametrize(
    ("text", "former", "needless"),
    [
        (None, None, False),
        (SAME, OTHER, True),
        (SAME, None, True),
        (None, SAME, True),
        (OTHER, SAME, False),
        ("", "", False),
    ],
)
def test_what_says_the_same_is_needless(
    copy: firewalld_files.Copy, text: str | None, former: str | None, needless: bool
) -> None:
    noted = copy.missing()
    for path, content in ((copy.path, text), (copy.former, former)):
        if content is not None:
            path.write_text(content)
    assert copy.is_needless(noted) == needless
    assert not copy.is_needless([])
    assert not copy.is_needless(noted[:1])


def test_a_copy_is_known_by_its_path() -> None:
    paths = ["/etc/firewalld/zones/public.xml", "/etc/firewalld/policies/a.b.xml.old", "/etc/firewalld/firewalld.conf"]
    assert places_of(paths) == ["zone=public", "policy=a.b"]
