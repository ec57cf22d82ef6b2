"""What GitHub runs is what `make test` runs. Schemas of these files are checked by the part lint."""

from __future__ import annotations

import re
from typing import Any

import yaml
from support.checkout import ROOT

WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}
ON = True
"""The key `on`, as YAML 1.1 reads it."""


def steps(workflow: str) -> list[dict[str, Any]]:
    return [step for job in WORKFLOWS[workflow]["jobs"].values() for step in job["steps"]]


def test_the_parts_are_those_of_make_test() -> None:
    parts = re.findall(r"^PARTS = (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[0].split()
    named = [*WORKFLOWS["test"]["jobs"]["short"]["strategy"]["matrix"]["part"]]
    for step in steps("test"):
        named += " ".join(re.findall(r"^\.ci/run ([a-z ]+)$", step.get("run", ""))).split()
    assert sorted(named) == sorted(parts)


def test_sanity_runs_by_the_oldest_ansible_core_and_all_later_ones() -> None:
    required = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))["requires_ansible"]
    matrix = WORKFLOWS["sanity"]["jobs"]["sanity"]["strategy"]["matrix"]["include"]
    versions = [tuple(map(int, each["ansible-core"].split("."))) for each in matrix]
    first = tuple(map(int, re.findall(r"\d+", required)[:2]))
    assert versions == [(first[0], minor) for minor in range(first[1], first[1] + len(versions))]


def test_a_tag_is_published_only_if_it_is_the_version() -> None:
    assert WORKFLOWS["publish"][ON] == {"push": {"tags": ["[0-9]+.[0-9]+.[0-9]+"]}}
    names = [step["name"] for step in steps("publish")]
    assert names.index("Check that the tag is the version") < names.index("Publish the collection")


def test_no_workflow_may_write_to_the_repository() -> None:
    assert all(workflow["permissions"] == {"contents": "read"} for workflow in WORKFLOWS.values())
