# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of M(nometal.ipi.derive_lab): it runs on the controller, where lab_spec is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import LabSpecError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

ARGUMENTS = {
    "hypervisors": {"type": "list", "elements": "str", "default": []},
    "hint": {"type": "str", "default": ""},
}
SPEC = "lab_spec"
SELF_REFERENCE = "recursi"  # ion, as Python, Jinja and Ansible's releases say it, in words of their own otherwise


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        given = self.validate_argument_spec(ARGUMENTS)[1]
        try:
            return {"changed": False, "lab": lab_model(self._spec(task_vars or {}), given["hypervisors"])}
        except LabSpecError as error:
            message, found = str(error), [finding.to_dict() for finding in error.findings]
        except (AnsibleError, RecursionError) as error:
            message, found = reason(error), []
        return {"failed": True, "msg": "\n".join(filter(None, [message, given["hint"]])), "findings": found}

    def _spec(self, variables: Mapping[str, Any]) -> Any:
        """With all of its templates filled in, so that what is wrong with one is seen here."""
        return _normalize(self._templar.template(variables[SPEC]))


def reason(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, RecursionError) or SELF_REFERENCE in text:
        return (
            f"{SPEC} refers to itself: a template in it, or in a variable that it uses, needs {SPEC} to be known "
            f"first. Take the templates that name {SPEC} out of it."
        )
    return f"{SPEC} cannot be read: {text}"


def _normalize(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _normalize(item) for key, item in value.items()}
    return [_normalize(item) for item in value] if isinstance(value, (list, tuple)) else value
