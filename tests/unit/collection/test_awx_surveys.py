"""What role awx_setup declares: surveys that AWX accepts, whose answers playbooks understand."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from support import awx_surveys, shown_commands
from support.awx_surveys import declared, questions_of
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Whole
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.variables import variables, with_variables

TEMPLATES = [template["key"] for template in declared()["awx_setup_templates"]]
LAB_FILE = ROOT / "inventory/rehearsal/group_vars/all/lab.yml"
SHIPPED = yaml.safe_load(LAB_FILE.read_text(encoding="utf-8"))["lab_spec"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_awx_accepts_the_survey(template: str) -> None:
    assert awx_surveys.fault_of({"name": "", "description": "", "spec": questions_of(template)}) is None


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_playbook_reads_every_answer(template: str) -> None:
    assert (ROOT / f"playbooks/{template}.yml").exists()
    for question in questions_of(template):
        assert shown_commands.of_variable(question["variable"], "1") == []


def test_numbers_are_asked_for_within_the_limits_of_lab_spec() -> None:
    for question in declared()["awx_setup_lab_questions"]:
        value_type = variables()[question["variable"]][1]
        assert isinstance(value_type, Whole) == (question["type"] == "integer"), question
        if isinstance(value_type, Whole):
            assert (question["min"], question["max"]) == (value_type.low, value_type.high)


def test_the_nodes_of_the_workflow_follow_each_other() -> None:
    nodes = declared()["awx_setup_workflow"]
    names = {node["identifier"] for node in nodes}
    assert {name for node in nodes for name in node["success"]} <= names
    assert {node["template"] for node in nodes} <= {*TEMPLATES}


def lab_of(answers: dict[str, Any]) -> Any:
    given = awx_surveys.variables_of(questions_of("site"), answers)
    spec, found = with_variables(SHIPPED, given)
    assert found == []
    return spec


def test_without_answers_it_is_the_lab_of_the_inventory() -> None:
    assert lab_of({}) == SHIPPED


@pytest.mark.parametrize(
    ("answers", "name", "workers", "disks"),
    [
        ({"lab_spec_name": "   "}, "rehearsal", 1, 1),
        ({"lab_spec_nodes_workers_count": 2}, "rehearsal", 2, 1),
        ({"lab_spec_nodes_workers_count": 0, "lab_spec_name": "a-b\n"}, "a-b", 0, 1),
        ({"lab_spec_nodes_workers_disks": "1GiB\r\n\r\n2GiB\r\n"}, "rehearsal", 1, 2),
    ],
)
def test_odd_answers_make_a_lab(answers: dict[str, Any], name: str, workers: int, disks: int) -> None:
    made = lab_model(lab_of(answers))
    assert made["name"] == name
    assert [len(node["disks"]) for node in made["nodes"] if node["role"] == "worker"] == [disks] * workers


@pytest.mark.parametrize(
    "answers",
    [
        {"lab_spec_nodes_workers_count": "2"},
        {"lab_spec_nodes_workers_count": 2.5},
        {"lab_spec_nodes_workers_count": 251},
        {"lab_spec_name": "a" * 55},
        {"lab_spec_name": 5},
        {"lab_lock_take_over": True},
    ],
)
def test_awx_refuses_other_answers(answers: dict[str, Any]) -> None:
    with pytest.raises(awx_surveys.SurveyError):
        awx_surveys.variables_of(questions_of("site"), answers)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"type": "number"}, "unknown type"),
        ({"required": "yes"}, "required must be a bool"),
        ({"type": "integer", "default": "2"}, "another type"),
        ({"min": "0"}, "min must be"),
        ({"type": "multiplechoice", "choices": "a\nb", "default": "c"}, "one of the choices"),
        ({"type": "multiplechoice", "choices": []}, "no choices"),
        ({"variable": "twice"}, "asked for twice"),
    ],
)
def test_the_rules_find_what_awx_refuses(change: dict[str, Any], said: str) -> None:
    question = {"type": "text", "question_name": "Name", "variable": "name", "required": False, "default": ""}
    twice = [{**question, "variable": "twice"}] if "variable" in change else []
    survey = {"name": "", "description": "", "spec": [*twice, {**question, **change}]}
    assert said in (awx_surveys.fault_of(survey) or "")
