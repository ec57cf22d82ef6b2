"""Run modules as Ansible's wrapper does on a host: as `__main__`, with `ansible.module_utils` and this collection.

The interpreter that runs this is the modules'. What to run comes in by stdin, as arguments may be secret: one task, or
with `--serve` one on each line. Each of those runs in a process of its own, in which all imports are made already.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import runpy
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any

PR_SET_PDEATHSIG = 1


def main() -> None:
    if sys.argv[1:] == ["--serve"]:
        for line in sys.stdin:
            serve(json.loads(line))
    else:
        task = json.load(sys.stdin)
        give_packages(task)
        run(task)


def serve(task: dict[str, Any]) -> None:
    """Answer with what the module has printed to either stream."""
    give_packages(task)
    with suppress(Exception):  # it will say itself what is wrong
        importlib.import_module(task["module"])
    sys.modules.pop(task["module"], None)  # what it imports stays
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        server, child = os.getpid(), os.fork()
        if not child:
            end_with(server)
            run_apart(task, output, errors)
        os.waitpid(child, 0)
        sys.stdout.write(json.dumps([read(output), read(errors)]) + "\n")
        sys.stdout.flush()


def end_with(server: int) -> None:
    """A module that is left would go on changing what the next test has."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # it was gone before the kernel knew whom to watch
        os._exit(1)


def run_apart(task: dict[str, Any], output: IO[str], errors: IO[str]) -> None:
    with Path(os.devnull).open() as nothing:
        for descriptor, file in enumerate((nothing, output, errors)):
            os.dup2(file.fileno(), descriptor)
    run(task)
    sys.exit()


def read(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def run(task: dict[str, Any]) -> None:
    give_arguments(task["arguments"])
    runpy.run_module(task["module"], run_name="__main__", alter_sys=True)


def give_packages(task: dict[str, Any]) -> None:
    if "ansible" not in sys.modules:
        sys.path[0] = task["collections"]  # in place of this program's directory, whose modules are not the host's
        give_package("ansible", task["ansible"], [])
        give_package("ansible.module_utils", task["ansible"], [f"{task['ansible']}/module_utils"])


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
