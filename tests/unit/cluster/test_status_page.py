"""The status of a lab as a page: whole in every state, and what hosts say is text in it."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest
from unit.cluster.status_samples import CASES, RAN, on
from unit.rehearsal import reports

from ansible_collections.nometal.ipi.plugins.action.lab_status import ActionModule
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import Observation
from ansible_collections.nometal.ipi.plugins.modules import lab_status
from ansible_collections.nometal.ipi.plugins.plugin_utils.status_page.page import page

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_END = {"meta", "rect", "polyline", "circle", "path"}
EVIL = "<script>alert(1)</script>"


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        self.seen.append(tag)
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _attributes: object) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page_of(seen: Observation, picture: dict[str, object] | None = None) -> str:
    told = lab_status.told(seen, {}, brief=False)
    return page(told["status"], picture or {}, told["lines"][0])


@pytest.mark.parametrize("check_mode", [False, True])
def test_it_is_written_except_in_check_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, check_mode: bool
) -> None:
    file = tmp_path / "status.html"
    task = MagicMock(args={"lab": "ha", "page": str(file), "output": "nothing"}, async_val=0, check_mode=check_mode)
    action = ActionModule(task, *(MagicMock() for _others in range(5)))
    monkeypatch.setattr(action, "_execute_module", lambda *_names, **_others: lab_status.told(RAN, {}, brief=False))
    assert "failed" not in action.run()
    assert file.exists() is not check_mode


@pytest.mark.parametrize("case", CASES)
def test_it_is_whole_in_every_state(case: str) -> None:
    text = page_of(CASES[case], reports.picture())
    elements = Elements()
    elements.feed(text)
    assert elements.open == []
    assert elements.seen.count("svg") == 2
    for node in CASES[case].nodes:
        assert f"<td>{node.name}</td>" in text


def test_without_libvirt_there_is_no_picture() -> None:
    assert "<svg" not in page_of(CASES["without libvirt"])


def test_what_others_say_is_text() -> None:
    nodes = [on(each, bmc_error=EVIL) for each in RAN.nodes]
    text = page_of(replace(RAN, nodes=nodes, domain=EVIL, unread=[EVIL]))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_the_cluster_has_columns_where_there_is_one() -> None:
    assert "<td>provisioned</td><td>Running</td>" in page_of(CASES["installed"])
    assert "BareMetalHost" not in page_of(CASES["made"])
