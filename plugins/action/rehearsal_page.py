# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of M(nometal.ipi.rehearsal_page): it runs on the controller, where Jinja is; the managed host needs none."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import PurePosixPath
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report.page import page

ARGUMENTS = {"report": {"type": "path", "required": True}}


class ActionModule(ActionBase):
    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        report = self.validate_argument_spec(ARGUMENTS)[1]["report"]
        place = str(PurePosixPath(report).with_suffix(".html"))
        # Not in this result, which Ansible prints: consoles may be long.
        read = self._execute_module("ansible.legacy.slurp", {"src": report}, task_vars=task_vars)
        if read.get("failed"):
            if self._task.check_mode:
                return {"changed": True, "page": place}  # there is none before the lab is rehearsed
            return {"failed": True, "msg": f"There is no report that can be read: {read.get('msg')}. Rehearse the lab."}
        try:
            text = page(json.loads(b64decode(read["content"])))
        except ValueError as error:
            return {"failed": True, "msg": f"{report} must be the JSON of a report: {error}. Rehearse the lab again."}
        written = self._written(text, place, task_vars)
        return written if written.get("failed") else {"changed": written["changed"], "page": place}

    def _written(self, text: str, place: str, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        shell = self._connection._shell  # noqa: SLF001
        draft = shell.join_path(shell.tmpdir, "page.html")
        self._transfer_data(draft, text)
        self._fixup_perms2((shell.tmpdir, draft))
        arguments = {"src": draft, "dest": place, "mode": "0644"}  # as the report beside it
        return dict(self._execute_module("ansible.legacy.copy", arguments, task_vars=task_vars))
