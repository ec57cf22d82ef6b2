"""The README as users of the packed collection read it, compared with what files declare."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import lab_trees, plugin_docs
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.module_utils._observe import system

if TYPE_CHECKING:
    from pathlib import Path

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]+`|^```.*?^```", re.MULTILINE | re.DOTALL)
DEBIAN = {"bookworm": "Debian 12", "trixie": "Debian 13"}


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def rows(header: str) -> dict[str, list[str]]:
    """Of the table with this header, by their first cell."""
    lines = README.partition(f"{header}\n")[2].split("\n\n")[0].splitlines()[1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


SUPPORT = rows("| | tested, all of it | expected to work |")


def version(text: str) -> str:
    found = re.search(r"[0-9]+\.[0-9]+", text)
    assert found, text
    return found[0]


def test_ansible_core_is_that_which_galaxy_and_pip_are_told() -> None:
    tested, expected = SUPPORT["ansible-core"]
    least = version(load("meta/runtime.yml")["requires_ansible"])
    assert expected == f"{least} or later"
    assert f"ansible-core>={least}\n" in (ROOT / "requirements.txt").read_text(encoding="utf-8")
    oldest = re.search(
        r'^OLDEST.*"ansible-core==([0-9.]+)\.\*"', (ROOT / "tests/e2e/test_make_lab.py").read_text(), re.MULTILINE
    )
    assert oldest
    assert tested == f"{oldest[1]} and the newest"
    assert oldest[1] == least


def test_pythons_are_those_of_the_code() -> None:
    major, minor = re.findall(r"version_info < \((\d+), (\d+)\)", (ROOT / "scripts/make-venv").read_text())[0]
    assert SUPPORT["Python of the controller"][1] == f"{major}.{minor} or later"
    least = version(re.findall(r"^requires-python.*", (ROOT / "bmc/pyproject.toml").read_text(), re.MULTILINE)[0])
    assert SUPPORT["Python of the managed host"][1] == f"{least} or later"
    assert f'target-version = "py{least.replace(".", "")}"' in (ROOT / "pyproject.toml").read_text()


def test_distributions_are_those_that_the_doctor_knows_and_tests_run_on() -> None:
    tested, expected = SUPPORT["distribution of the managed host"]
    assert tested == ", ".join(DEBIAN[suite] for suite in lab_trees.SUITES)
    others = [name for name in system.TESTED.values() if name not in tested]
    assert expected.startswith(f"{', '.join(others)}, or later: ")


def test_modules_for_others_are_those_that_are_not_internal() -> None:
    named = [name for cell in rows("| modules | for |") for name in re.findall(r"`(\w+)`", cell)]
    modules = [path.stem for path in (ROOT / "plugins/modules").glob("*.py")]
    assert sorted(named) == sorted(name for name in modules if not plugin_docs.is_internal(name))


def test_groups_of_defaults_are_all_there_are() -> None:
    named = [name.strip("`").rpartition(".")[2] for name in rows("| group | option |")]
    assert named == list(load("meta/runtime.yml")["action_groups"])


def test_full_names_are_those_of_playbooks_roles_modules_and_groups() -> None:
    known = {path.stem for path in (*(ROOT / "playbooks").glob("*.yml"), *(ROOT / "plugins/modules").glob("*.py"))}
    known |= {path.name for path in (ROOT / "roles").iterdir()} | {*load("meta/runtime.yml")["action_groups"]}
    assert {*re.findall(r"nometal\.ipi\.(\w+)", README)} <= known


def is_packed(path: Path) -> bool:
    """As `ansible-galaxy collection build` decides: by whole paths, and a directory goes with its contents."""
    relative = path.relative_to(ROOT)
    below = [str(each) for each in (relative, *relative.parents)]
    ignored: list[str] = load("galaxy.yml")["build_ignore"]
    return not any(fnmatch.fnmatch(each, pattern) for each in below[:-1] for pattern in ignored)


PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("roles/*/*.md"), *ROOT.glob("bmc/*.md"))
    if is_packed(path)
)


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_pages_lead_to_what_is_packed(page: Path) -> None:
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert is_packed(target), link
        assert not anchor or anchor in anchors(target), link


def test_what_is_for_developers_is_not_packed() -> None:
    assert not is_packed(ROOT / "tests/README.md")
    assert is_packed(ROOT / "docs/images/report.svg")
