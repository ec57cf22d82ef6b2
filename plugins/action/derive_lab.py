# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of M(nometal.ipi.derive_lab): it runs on the controller, where lab_spec is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import ROOT, LabSpecError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.variables import PREFIX, with_variables

ARGUMENTS = {
    "hypervisors": {"type": "list", "elements": "str", "default": []},
    "hint": {"type": "str", "default": ""},
}
SELF_REFERENCE = "recursi"  # ion, as Python, Jinja and Ansible's releases say it, in words of their own otherwise


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        given = self.validate_argument_spec(ARGUMENTS)[1]
        messages: list[str] = []
        found: list[Finding] = []
        try:
            spec, found = self._spec(task_vars or {})
            messages += [str(finding) for finding in found]
            lab = lab_model(spec, given["hypervisors"])
        except LabSpecError as error:
            messages, found = [*messages, str(error)], [*found, *error.findings]
        except (AnsibleError, RecursionError) as error:
            messages = [reason(error)]
        if not messages:
            return {"changed": False, "lab": lab}
        message = "\n".join(filter(None, [*messages, given["hint"]]))
        return {"failed": True, "msg": message, "findings": [finding.to_dict() for finding in found]}

    def _spec(self, variables: Mapping[str, Any]) -> tuple[Any, list[Finding]]:
        """With all of its templates filled in, so that what is wrong with one is seen here."""
        given = {name: variables[name] for name in variables if name == ROOT or name.startswith(PREFIX)}
        filled = {name: _normalize(self._templar.template(value)) for name, value in given.items()}
        return with_variables(filled.pop(ROOT, None), filled)


def reason(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, RecursionError) or SELF_REFERENCE in text:
        return (
            f"{ROOT} refers to itself: a template in it, or in a variable that it uses, needs {ROOT} to be known "
            f"first. Take the templates that name {ROOT} out of it."
        )
    return f"{ROOT} cannot be read: {text}"


def _normalize(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _normalize(item) for key, item in value.items()}
    return [_normalize(item) for item in value] if isinstance(value, (list, tuple)) else value
