# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of M(nometal.ipi.refusals) on the controller, which collects questions for the managed host to answer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase

from ansible_collections.nometal.ipi.plugins.modules import refusals as of_host

MODULES = "ansible_collections.nometal.ipi.plugins.modules"
COLLECTION = "nometal.ipi."
GIVEN = {name: option for name, option in of_host.ARGUMENTS.items() if not name.startswith("_")}

Question = dict[str, Any]
"""Of a stage: a module with its arguments, or the answer where that is known already."""
Answer = dict[str, Any]


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        given, variables = self.validate_argument_spec(GIVEN)[1], task_vars or {}
        self._task.check_mode = True  # of all that is executed from here on
        questions = [*given["questions"], *self._questions(given, variables)]
        if given["later"]:  # their arguments may be long, and are not shown with -v
            return {"changed": False, "questions": questions, "_ansible_verbose_override": True}
        result = {"changed": False, **summary(questions, self._answers(questions, variables))}
        if result["refusals"] and given["stop"]:
            return {**result, "failed": True, "msg": message(given["stage"], result["refusals"])}
        return result

    def _questions(self, given: dict[str, Any], variables: dict[str, Any]) -> list[Question]:
        refusals = [*self._errors_of_variables(variables), *filter(None, given["found"])]
        questions: list[Question] = [{"refusal": text} for text in refusals]
        questions += [{"steps": [text]} for text in filter(None, given["changes"])]
        questions += [{"module": module, "arguments": arguments} for module, arguments in given["ask"].items()]
        for path in (Path(variables["role_path"], "tasks", name) for name in given["tasks"]):
            for task in self._tasks_in(path):
                module = next((key for key in task if key.startswith(COLLECTION)), "")
                if module and (not given["modules"] or module[len(COLLECTION) :] in given["modules"]):
                    questions += self._questions_of(task, module, variables)
        return [{**question, "stage": given["stage"]} for question in questions]

    def _errors_of_variables(self, variables: dict[str, Any]) -> list[str]:
        """What Ansible would refuse of the role's variables, which it looks at only when the stage begins."""
        path = Path(variables.get("role_path", "/"), "meta", "argument_specs.yml")
        if not path.exists():  # it is asked outside of a role
            return []
        declared = self._loader.load_from_file(str(path))["argument_specs"]["main"].get("options", {})
        try:
            given = self._templated({name: variables[name] for name in declared if name in variables}, variables)
        except AnsibleError as error:
            return [str(error)]
        return ArgumentSpecValidator(declared).validate(given).error_messages

    def _tasks_in(self, path: Path) -> list[dict[str, Any]]:
        load = self._loader.load_from_file
        # Since ansible-core 2.19, only what is said to be trusted is templated. It is as trusted as the role itself.
        trust = {"trusted_as_template": True} if "trusted_as_template" in inspect.signature(load).parameters else {}
        return list(load(str(path), **trust))

    def _questions_of(self, task: dict[str, Any], module: str, variables: dict[str, Any]) -> list[Question]:
        try:
            return list(self._asked_by(task, module, variables))
        except AnsibleError as error:  # what the operator gave cannot be templated
            return [{"refusal": f"{task['name']}: {error}"}]

    def _asked_by(self, task: dict[str, Any], module: str, variables: dict[str, Any]) -> Iterator[Question]:
        """As Ansible would run the task now, for each item of its loop."""
        item_name = task.get("loop_control", {}).get("loop_var", "item")
        for item in self._templated(task["loop"], variables) if "loop" in task else [None]:
            known = {**variables, item_name: item, **task.get("vars", {})}
            arguments = self._templated(task[module], known) or {}
            given = {key: value for key, value in arguments.items() if value != variables.get("omit")}
            yield {"module": module, "arguments": given}

    def _templated(self, value: Any, variables: dict[str, Any]) -> Any:
        return self._templar.copy_with_new_env(available_variables=variables).template(value)

    def _answers(self, questions: list[Question], variables: dict[str, Any]) -> list[Answer]:
        """In the order of the questions. Most modules answer in one process on the host."""
        asked = [question for question in questions if _name_of(question) in of_host.RUNS]
        answers = iter(self._answers_together(asked, variables) if asked else [])
        return [self._answer(question, answers, variables) for question in questions]

    def _answer(self, question: Question, together: Iterator[Answer], variables: dict[str, Any]) -> Answer:
        if "module" not in question:
            return question
        if _name_of(question) in of_host.RUNS:
            return next(together)
        result = self._execute_module(question["module"], question["arguments"], task_vars=variables)
        if result.get("failed"):
            return {"refusal": str(result.get("msg") or f"{question['module']} failed in check mode")}
        return {}

    def _answers_together(self, questions: list[Question], variables: dict[str, Any]) -> list[Answer]:
        asked = [{**question, **_declaration(_name_of(question))} for question in questions]
        result = self._execute_module("nometal.ipi.refusals", {"_questions": asked}, task_vars=variables)
        if result.get("failed"):
            return [{"refusal": str(result.get("msg"))}, *([{}] * (len(asked) - 1))]
        return list(result["answers"])


def _name_of(question: Question) -> str:
    return str(question.get("module", "")).removeprefix(COLLECTION)


def _declaration(name: str) -> dict[str, Any]:
    module = import_module(f"{MODULES}.{name}")
    return {"spec": module.ARGUMENTS, "rules": getattr(module, "RULES", {})}


def summary(questions: list[Question], answers: list[Answer]) -> dict[str, Any]:
    refusals = [
        f"{question['stage']}: {_indented(answer['refusal'])}"
        for question, answer in zip(questions, answers)
        if answer.get("refusal")
    ]
    steps: dict[str, list[str]] = {}
    for question, answer in zip(questions, answers):
        steps.setdefault(question["stage"], []).extend(answer.get("steps", []))
    changes = [f"{stage}: {', '.join(found)}" for stage, found in steps.items() if found]
    return {"refusals": list(dict.fromkeys(refusals)), "changes": changes}


def _indented(text: str) -> str:
    """One item of a list, though it has several lines."""
    return text.strip().replace("\n", "\n  ")


def message(stage: str, refusals: list[str]) -> str:
    return "\n".join([f"Stage {stage} has changed nothing, because of this:", *(f"- {text}" for text in refusals)])
