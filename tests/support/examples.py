"""The examples of the documentation: of modules and filters, and on pages for operators those that are tasks."""

from __future__ import annotations

import re
from typing import Any

import yaml
from support import documentation
from support.checkout import ROOT

Task = dict[str, Any]
OURS = "nometal.ipi."


def of_plugins() -> dict[str, list[Task]]:
    """By name of the module or filter; the part of a module that runs on the controller is documented with it."""
    files = [path for kind in ("modules", "filter") for path in sorted((ROOT / "plugins" / kind).glob("*.py"))]
    return {
        path.stem: _tasks("".join(re.findall(r'^EXAMPLES = r"""(.*?)"""', path.read_text(), re.DOTALL | re.MULTILINE)))
        for path in files
    }


def of_pages() -> dict[str, list[Task]]:
    """By the page's path below the checkout."""
    tasks: dict[str, list[Task]] = {}
    for block in documentation.blocks("yaml"):
        tasks.setdefault(block.page, []).extend(_tasks(block.text))
    return {page: found for page, found in tasks.items() if found}


def module(task: Task) -> str:
    return next((key for key in task if "." in key), "")


def _tasks(text: str) -> list[Task]:
    """Also those of a play. A mapping has none: it is variables, or a part of an inventory."""
    given = yaml.safe_load(text)
    items = given if isinstance(given, list) else []
    return [task for item in items for task in item.get("tasks", [item])]
