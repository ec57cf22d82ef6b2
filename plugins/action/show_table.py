# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of M(nometal.ipi.show_table): it runs on the controller."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.nometal.ipi.plugins.plugin_utils.live_display import QUIET_CALLBACKS, callback_name, title

ARGUMENTS = {"lines": {"type": "list", "elements": "str", "required": True}}


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        heading = title(self._task)
        lines = self.validate_argument_spec(ARGUMENTS)[1]["lines"]
        known = task_vars or {}
        if len(known.get("ansible_play_batch", [])) > 1:
            lines = [f"{known['inventory_hostname']}:", *lines]
        if callback_name() not in QUIET_CALLBACKS:
            Display().display("\n".join([heading, *lines] if heading else lines))
        return {"changed": False}
