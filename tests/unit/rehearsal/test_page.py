"""The report of a rehearsal as a page: well formed whatever it has to tell, and red where it hurts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from unit.rehearsal import reports

from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import rehearsal
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report.page import page

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('x')</script>\"'&\x00\x1b[31m\udcff\u202e</svg></pre>"
WITHOUT_END = {"meta", "rect", "circle", "path", "polyline"}


class Balance(HTMLParser):
    """Every element is closed where it was opened; and nothing is loaded from anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        assert tag not in ("script", "link", "img", "iframe")
        assert not {name for name in told if name.startswith("on") or name == "src"}
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name == "href" and value]
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """It closes itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Balance:
    balance = Balance()
    balance.feed(text)
    balance.close()
    assert balance.open == []
    assert {f"#{name}" for name in balance.ids} >= set(balance.links)
    assert len(balance.ids) == len(set(balance.ids))
    text.encode("utf-8")
    return balance


def drawings(text: str) -> list[ElementTree.Element]:
    """The wide one and the narrow one."""
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]  # noqa: S314 - ours


def labels(drawing: ElementTree.Element) -> str:
    found = "".join(text.text or "" for text in drawing.iter(f"{SVG}text") if text.get("class") == "label")
    return found.replace("\u2003", " ")


def written(drawing: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in drawing.iter(f"{SVG}text")]


def styles(drawing: ElementTree.Element, element: str) -> list[str]:
    return [found.get("class", "") for found in drawing.iter(f"{SVG}{element}")]


def spoilt(change: Any) -> dict[str, Any]:
    report = reports.report()
    change(report)
    return report


def test_a_lab_that_is_well() -> None:
    text = page(reports.report())
    parsed(text)
    assert "All is well: 80 checks passed." in text
    assert "<title>OK: rehearsal of demo</title>" in text
    for drawing in drawings(text):
        assert {
            "host hypervisor",
            "eth0",
            "nm-demo",
            "nmn-demo",
            "nmb-demo",
            "baremetal",
            "bootstrap VM",
            "worker-0",
        } <= {*written(drawing)}
        assert {"192.168.126.1/24", "192.168.126.1:8000/tcp", "52:54:00:00:00:04", "192.168.126.23"} <= {
            *written(drawing)
        }
        assert labels(drawing) == ""
        assert not [style for style in styles(drawing, "rect") + styles(drawing, "polyline") if "bad" in style]


def test_faults_on_purpose_are_named() -> None:
    text = page(spoilt(lambda report: report.update(bmc_faults=["status 503 (30 %)", HOSTILE])))
    parsed(text)
    assert "<li>status 503 (30 %)</li>" in text
    assert "on purpose" not in page(reports.report())


def test_a_failed_link_is_red_and_says_so() -> None:
    report = reports.report()
    report["picture"]["links"]["nmb-demo"].update(up=False, carrier=False)
    text = page(report)
    for drawing in drawings(text):
        assert labels(drawing) == "\u2717 is down"
        assert styles(drawing, "polyline").count("wire bad") == 1
        assert styles(drawing, "g").count("break") == 1
    assert "<li>nmb-demo is down</li>" in text


def test_a_missing_tap_is_red_and_says_so() -> None:
    report = reports.report()
    del report["picture"]["links"]["vnet4"]
    for drawing in drawings(page(report)):
        assert labels(drawing).replace(" ", "") == "\u2717tapvnet4ismissing"
        assert styles(drawing, "rect").count("box bad") == 1
        assert styles(drawing, "polyline").count("wire bad") == 1


def test_a_failed_check_has_its_cause_and_its_place() -> None:
    report = reports.report()
    reports.fail(report, "address", "worker-0", advice="Run `make lab` & wait.")
    report["consoles"] = {"worker-0": ["\x1b[2Jboots <1>", "asks"]}
    text = page(report)
    parsed(text)
    assert "1 of 80 checks failed. An installation would fail as well." in text
    assert "Run <code>make lab</code> &amp; wait." in text
    assert "<pre>boots &lt;1&gt;\nasks</pre>" in text
    for drawing in drawings(text):
        assert labels(drawing) == "\u2717 address"
        assert styles(drawing, "rect").count("box bad") == 1


def test_who_failed_comes_first_and_the_cause_before_what_follows() -> None:
    report = reports.report()
    reports.fail(report, "other nodes", "control-plane-0", "control-plane-1", "control-plane-2")
    reports.fail(report, "boots from its medium", "worker-0")
    text = page(report)
    assert re.findall(r'<th scope="row">(.*?)</th>', text)[0] == "worker-0"
    assert re.findall(r"<h3><span.*?</span> (.*?) <span>", text) == ["boots from its medium", "other nodes"]


def test_a_provisioning_network_and_two_families() -> None:
    report = reports.report(8)
    picture = report["picture"]
    picture["links"]["nm-demo"]["addresses"].append("fd00:126::1/64")
    picture["networks"].append(reports.network("provisioning", "provisioning", "provisioning", forward="isolated"))
    picture["links"]["provisioning"] = reports.link("bridge", addresses=["172.22.0.1/24"])
    for number, vm in enumerate(picture["vms"].values(), 50):
        vm["nics"].append(reports.nic(number, "provisioning"))
        picture["links"][f"vnet{number}"] = reports.link("tap", "provisioning")
    text = page(report)
    parsed(text)
    for drawing in drawings(text):
        assert {"provisioning", "172.22.0.1/24", "fd00:126::1/64", "\u219352:54:00:00:00:32"} <= {*written(drawing)}
        assert styles(drawing, "polyline").count("wire second") >= 9
        assert labels(drawing) == ""


def test_a_network_that_is_the_bridge_itself() -> None:
    report = reports.report()
    picture = report["picture"]
    picture["networks"] = [reports.network("baremetal", "machine", "baremetal")]
    picture["veth_pairs"] = []
    for name in ("nm-demo", "nmn-demo", "nmb-demo"):
        del picture["links"][name]
    picture["links"]["eno9"] = reports.link("physical", "baremetal")
    for drawing in drawings(page(report)):
        assert {"libvirt network baremetal", "baremetal", "also on it: eno9"} <= {*written(drawing)}


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report["picture"].update(networks=[], bridges=[], veth_pairs=[], vms={}, bmc=[], links={}),
        lambda report: report["picture"].update(uplinks=[], links={}, unread=["links: no `ip` here"]),
        lambda report: report["picture"]["networks"][0].update(state="missing", dnsmasq=None),
        lambda report: report.update(picture={}),
        lambda report: report.update(checks=[], stages=[], ok=False),
        lambda report: report["stages"].append({"stage": "nothing", "seconds": 0}),
        lambda report: [report.pop(key) for key in ("picture", "stages", "consoles", "seconds", "began", "domain")],
        lambda report: report["checks"].append(
            reports.check("unheard of", "stranger", "unknown", expected=None, seen=None)
        ),
    ],
)
def test_what_is_missing_is_no_reason_to_fail(change: Any) -> None:
    text = page(spoilt(change))
    parsed(text)
    drawings(text)


def everywhere(value: Any) -> Any:
    """The same report, with hostile text in every place that has text and decides nothing."""
    if isinstance(value, dict):
        kept = ("state", "role", "listening", "who", "check")
        return {name: item if name in kept else everywhere(item) for name, item in value.items()}
    if isinstance(value, list):
        return [everywhere(item) for item in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


def test_hostile_text_is_only_text() -> None:
    report = everywhere(reports.report())
    report["checks"] += [
        reports.check(f"a{HOSTILE}", f"b{HOSTILE}", "failed", seen=HOSTILE, advice=f"`{HOSTILE}"),
        reports.check("skipped", f"b{HOSTILE}", "skipped", seen=HOSTILE),
    ]
    report["picture"]["vms"][f"b{HOSTILE}"] = {"name": HOSTILE, "state": "running", "nics": [reports.nic(7)]}
    report["consoles"] = {f"b{HOSTILE}": [HOSTILE, HOSTILE]}
    text = page(report)
    parsed(text)
    assert len(drawings(text)) == 2
    assert "<script" not in text
    assert not set("\x00\x1b\u202e") & set(text)


def test_a_report_is_kept_whole_and_the_page_of_an_older_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "rehearsal.html").write_text("of an older one", encoding="utf-8")
    report = {**everywhere(reports.report()), "report": str(tmp_path / "rehearsal.json")}
    rehearsal.keep(report)
    [kept] = tmp_path.iterdir()
    assert json.loads(kept.read_text(encoding="utf-8")) == report
    assert page(json.loads(kept.read_text(encoding="utf-8"))) == page(report)


def test_nothing_is_kept_of_a_lab_that_is_not_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rehearsal.keep({**reports.report(), "report": ""})
    assert list(tmp_path.iterdir()) == []


def test_a_large_lab_is_a_small_page() -> None:
    report = reports.report(100)
    for each in report["checks"]:
        each["seen"] = f"{each['expected']} and a little more to be told of it"
    reports.fail(report, "BMC answers", *reports.names(97))
    report["consoles"] = {name: ["a line of a console " * 5] * 40 for name in reports.names(97)}
    text = page(report)
    parsed(text)
    assert len(text.encode()) < 600_000
    for drawing in drawings(text):
        assert "78 more nodes" in written(drawing)


def test_of_many_nodes_those_that_failed_are_drawn() -> None:
    report = reports.report(100)
    reports.fail(report, "address", "worker-96")
    for drawing in drawings(page(report)):
        assert "worker-96" in written(drawing)
