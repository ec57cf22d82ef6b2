"""Run one module as Ansible's wrapper does on a host: as `__main__`, with `ansible.module_utils` and this collection.

The interpreter that runs this is the module's. What to run comes in by stdin, as arguments may be secret.
"""

from __future__ import annotations

import json
import runpy
import sys
from types import ModuleType


def main() -> None:
    task = json.load(sys.stdin)
    sys.path[0] = task["collections"]  # in place of this program's directory, whose modules are not the host's
    give_package("ansible", task["ansible"], [])
    give_package("ansible.module_utils", task["ansible"], [f"{task['ansible']}/module_utils"])
    give_arguments(task["arguments"])
    runpy.run_module(task["module"], run_name="__main__", alter_sys=True)


def give_package(name: str, directory: str, path: list[str]) -> None:
    """Nothing else of the test's virtualenv is there: modules find what the distribution has."""
    package = ModuleType(name)
    package.__file__ = f"{directory}/__init__.py"
    package.__path__ = path
    sys.modules[name] = package


def give_arguments(arguments: dict[str, object]) -> None:
    from ansible.module_utils import basic  # noqa: PLC0415 - only now it can be found

    basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()  # noqa: SLF001 - as the wrapper does
    basic._ANSIBLE_PROFILE = "legacy"  # noqa: SLF001 - likewise, since ansible-core 2.19


if __name__ == "__main__":
    main()
