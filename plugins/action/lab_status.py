# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of M(nometal.ipi.lab_status) on the controller: it shows the screen, with commands as they are run there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status import artifacts
from ansible_collections.nometal.ipi.plugins.plugin_utils.live_display import QUIET_CALLBACKS, callback_name, title
from ansible_collections.nometal.ipi.plugins.plugin_utils.status_page import page as status_page


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        arguments = {**self._task.args, "_controller": controller(task_vars or {})}
        result = dict(self._execute_module("nometal.ipi.lab_status", arguments, task_vars=task_vars))
        picture, page = result.pop("picture", {}), str(arguments.get("page") or "")
        if not result.get("failed") and page and not self._task.check_mode:
            text = status_page.page(result["status"], picture, result["lines"][0])
            Path(page).expanduser().write_text(text, encoding="utf-8")
        output = str(arguments.get("output", "text"))
        if not result.get("failed") and arguments.get("lab") and output != "nothing":
            host = str(arguments.get("host") or (task_vars or {}).get("inventory_hostname", ""))
            data = {artifacts.VARIABLE: {host: artifacts.artifacts(result["status"], result["lines"][0])}}
            result["ansible_stats"] = {"data": data, "per_host": False, "aggregate": True}
        if not result.get("failed") and callback_name() not in QUIET_CALLBACKS:
            text = shown(result, output)
            if text:
                Display().display(f"\n{text}" if title(self._task) else text)
        return result


def shown(result: dict[str, Any], output: str) -> str:
    if output == "json":
        return json.dumps(result["status"], indent=2)
    return "" if output == "nothing" else "\n".join(result["lines"])


def controller(known: dict[str, Any]) -> dict[str, Any]:
    """By which inventory this run goes, and whether it is one of a checkout, which has a Makefile."""
    sources = [str(source) for source in known.get("ansible_inventory_sources") or ["INVENTORY"]]
    inventory = os.path.relpath(sources[0]) if sources[0].startswith("/") else sources[0]
    directory = known.get("playbook_dir")
    # Those of stages are one directory below the playbooks.
    above = list(Path(directory).parents)[:2] if directory else []
    return {"inventory": inventory, "by_make": any((place / "Makefile").exists() for place in above)}
