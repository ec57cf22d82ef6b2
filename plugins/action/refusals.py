# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of M(nometal.ipi.refusals): it runs on the controller, and has the asked modules run on the managed host."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase

ARGUMENTS = {
    "stage": {"type": "str", "required": True},
    "tasks": {"type": "list", "elements": "str", "default": []},
    "modules": {"type": "list", "elements": "str", "default": []},
    "ask": {"type": "dict", "default": {}},
    "found": {"type": "list", "elements": "str", "default": []},
    "stop": {"type": "bool", "default": False},
}
COLLECTION = "nometal.ipi."


class Question(NamedTuple):
    module: str
    arguments: dict[str, Any]


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        given, variables = self.validate_argument_spec(ARGUMENTS)[1], task_vars or {}
        self._task.check_mode = True  # of all that is executed from here on
        found = [*self._errors_of_variables(variables), *filter(None, given["found"])]
        texts = [*found, *self._refusals(given, variables)]
        refusals = [f"{given['stage']}: {_indented(text)}" for text in dict.fromkeys(texts)]
        if refusals and given["stop"]:
            return {"failed": True, "msg": message(given["stage"], refusals), "refusals": refusals}
        return {"changed": False, "refusals": refusals}

    def _errors_of_variables(self, variables: dict[str, Any]) -> list[str]:
        """What Ansible would refuse of the role's variables, which it looks at only when the stage begins."""
        path = Path(variables.get("role_path", ""), "meta", "argument_specs.yml")
        if not path.exists():
            return []
        declared = self._loader.load_from_file(str(path))["argument_specs"]["main"].get("options", {})
        try:
            given = self._templated({name: variables[name] for name in declared if name in variables}, variables)
        except AnsibleError as error:
            return [str(error)]
        return ArgumentSpecValidator(declared).validate(given).error_messages

    def _refusals(self, given: dict[str, Any], variables: dict[str, Any]) -> Iterator[str]:
        for module, arguments in given["ask"].items():
            yield from self._answer(Question(module, arguments), variables)
        for path in (Path(variables["role_path"], "tasks", name) for name in given["tasks"]):
            for task in self._tasks_in(path):
                module = next((key for key in task if key.startswith(COLLECTION)), "")
                if module and (not given["modules"] or module[len(COLLECTION) :] in given["modules"]):
                    yield from self._answers(task, module, variables)

    def _answers(self, task: dict[str, Any], module: str, variables: dict[str, Any]) -> Iterator[str]:
        try:
            questions = list(self._questions(task, module, variables))
        except AnsibleError as error:  # what the operator gave cannot be templated
            yield f"{task['name']}: {error}"
            return
        for question in questions:
            yield from self._answer(question, variables)

    def _tasks_in(self, path: Path) -> list[dict[str, Any]]:
        load = self._loader.load_from_file
        # Since ansible-core 2.19, only what is said to be trusted is templated. It is as trusted as the role itself.
        trust = {"trusted_as_template": True} if "trusted_as_template" in inspect.signature(load).parameters else {}
        return list(load(str(path), **trust))

    def _questions(self, task: dict[str, Any], module: str, variables: dict[str, Any]) -> Iterator[Question]:
        """As Ansible would run the task now, for each item of its loop."""
        item_name = task.get("loop_control", {}).get("loop_var", "item")
        for item in self._templated(task["loop"], variables) if "loop" in task else [None]:
            known = {**variables, item_name: item, **task.get("vars", {})}
            arguments = self._templated(task[module], known)
            yield Question(module, {key: value for key, value in arguments.items() if value != variables.get("omit")})

    def _templated(self, value: Any, variables: dict[str, Any]) -> Any:
        return self._templar.copy_with_new_env(available_variables=variables).template(value)

    def _answer(self, question: Question, variables: dict[str, Any]) -> Iterator[str]:
        result = self._execute_module(question.module, question.arguments, task_vars=variables)
        if result.get("failed"):
            yield str(result.get("msg") or f"{question.module} failed in check mode")


def _indented(text: str) -> str:
    """One item of a list, though it has several lines."""
    return text.strip().replace("\n", "\n  ")


def message(stage: str, refusals: list[str]) -> str:
    return "\n".join([f"Stage {stage} has changed nothing, because of this:", *(f"- {text}" for text in refusals)])
