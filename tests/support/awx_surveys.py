"""The rules of AWX for surveys: of the questions when they are saved, and of the answers when a job is launched."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import yaml
from support.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Question = dict[str, Any]
TYPES: dict[str, type] = {
    **dict.fromkeys(("text", "textarea", "password", "multiplechoice", "multiselect"), str),
    "integer": int,
    "float": float,
}
OF_TEXT = ("text", "textarea", "password")
OF_NUMBERS = {"integer": (int,), "float": (int, float)}
NEEDED = {"type": str, "question_name": str, "variable": str, "required": bool}


@cache
def declared() -> dict[str, Any]:
    """What role awx_setup declares."""
    text = (ROOT / "roles/awx_setup/vars/main.yml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text.replace("!unsafe ", "")))


def questions_of(template: str) -> list[Question]:
    """Of a job template of the role, by its key."""
    [named] = [each["questions"] for each in declared()["awx_setup_templates"] if each["key"] == template]
    return list(declared()[named.strip("{} ")])


def fault_of(survey: Any) -> str | None:
    """Why a survey is refused."""
    for field, wanted in (("name", str), ("description", str), ("spec", list)):
        if not isinstance(survey.get(field), wanted):
            return f"field {field} of the survey must be a {wanted.__name__}"
    if not survey["spec"]:
        return "a survey must have a question"
    variables = [question.get("variable") for question in survey["spec"]]
    if len(variables) != len(set(variables)):
        return f"a variable is asked for twice: {variables}"
    return next((fault for question in survey["spec"] for fault in _faults_of_question(question)), None)


def _faults_of_question(question: Question) -> Iterator[str]:
    for field, wanted in NEEDED.items():
        if not isinstance(question.get(field), wanted):
            yield f"{field} must be a {wanted.__name__}: {question}"
            return
    if question["type"] not in TYPES:
        yield f"unknown type of question: {question}"
        return
    default = question.get("default", "")
    if default != "" and not isinstance(default, TYPES[question["type"]]):
        yield f"the default has another type than the question: {question}"
    for limit in ("min", "max"):
        if question.get(limit) is not None and not isinstance(question[limit], int):
            yield f"{limit} must be a whole number: {question}"
    if question["type"] in ("multiplechoice", "multiselect"):
        choices = _choices(question)
        if not choices:
            yield f"there are no choices: {question}"
        if any(choice not in choices for choice in default.splitlines()):
            yield f"the default must be one of the choices: {question}"


def variables_of(questions: Sequence[Question], answers: Mapping[str, Any]) -> dict[str, Any]:
    """With which a job runs: the answers, and defaults that satisfy their question. SurveyError: it does not start."""
    variables = {}
    for question in questions:
        name = question["variable"]
        default = question.get("default")
        if default is not None and not faults_of_answer(question, {name: default}):
            variables[name] = default
    faults = [fault for question in questions for fault in faults_of_answer(question, answers)]
    faults += [f"{name} is not asked for" for name in answers if name not in {each["variable"] for each in questions}]
    if faults:
        raise SurveyError(faults)
    return {**variables, **answers}


class SurveyError(ValueError):
    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))


def faults_of_answer(question: Question, answers: Mapping[str, Any]) -> list[str]:
    name, kind = question["variable"], question["type"]
    if name not in answers:
        return [f"{name} is missing"] if question["required"] else []
    answer = answers[name]
    if kind == "multiplechoice":
        return [] if answer in _choices(question) else [f"{name} is none of the choices"]
    if kind == "multiselect":
        return [] if isinstance(answer, list) and {*answer} <= {*_choices(question)} else [f"{name} is no choice"]
    types = (str,) if kind in OF_TEXT else OF_NUMBERS[kind]
    if isinstance(answer, bool) or not isinstance(answer, types):
        return [f"{name} must be of type {kind}"]
    size = len(answer) if isinstance(answer, str) else answer
    low, high = question.get("min"), question.get("max")
    is_within = (low in ("", None) or size >= int(low)) and (high in ("", None) or size <= int(high))
    return [] if is_within else [f"{name} is too small or too large"]


def _choices(question: Question) -> list[str]:
    choices = question.get("choices", [])
    return choices.splitlines() if isinstance(choices, str) else list(choices)
