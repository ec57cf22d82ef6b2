"""The line in resolv.conf, and what the host's own server is told of labs that are up and down."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import host_server
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.host_server import (
    LINE,
    with_line,
    without_line,
)

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "127.78.77.53"
LINES = st.sampled_from(
    ["nameserver 198.51.100.1", "nameserver\t2001:db8::1", "# nameserver", " nameserver 192.0.2.1", "search a.test", ""]
)
TEXTS = st.lists(LINES | st.text(st.characters(max_codepoint=255))).map("\n".join).filter(lambda t: ADDRESS not in t)


@given(TEXTS)
def test_what_was_added_is_taken_out_to_the_byte(text: str) -> None:
    assert without_line(text) == text
    assert without_line(with_line(text)) == text
    assert with_line(with_line(text)) == with_line(text)


@given(TEXTS)
def test_ours_is_asked_first(text: str) -> None:
    asked = [line.split()[1] for line in with_line(text).split("\n") if re.match(r"nameserver\s+\S", line)]
    assert asked[0] == ADDRESS
    assert asked.count(ADDRESS) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", LINE),
        ("search a.test", f"{LINE}search a.test"),
        (
            "# DHCP\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n",
            f"# DHCP\n{LINE}nameserver 192.0.2.1\nnameserver 192.0.2.2\n",
        ),
        # Others have moved it, and cut off its end.
        (f"nameserver 192.0.2.1\n{LINE}", f"{LINE}nameserver 192.0.2.1\n"),
        (f"nameserver 192.0.2.1\nnameserver {ADDRESS}", f"{LINE}nameserver 192.0.2.1\n"),
    ],
)
def test_where_the_line_stands(before: str, after: str) -> None:
    assert with_line(before) == after


def test_the_names_of_a_lab_that_is_down_do_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.lab").write_text("# Made\nlink lo\nserver=/one.test/192.0.2.1\nserver=/one.test/2001:db8::1\n")
    (tmp_path / "two.lab").write_text("link no-such-link\nserver=/two.test/192.0.2.9\nserver=/two.test/2001:db8::9\n")
    monkeypatch.setattr(host_server, "LABS", tmp_path)
    lines = host_server.servers_text().splitlines()
    assert lines == ["server=/one.test/192.0.2.1", "server=/one.test/2001:db8::1", "server=/two.test/"]
