"""Run a module of the collection with the distribution's Python: by itself, or as Ansible does."""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ansible
from support import kept_code
from support.cache import made_once
from support.checkout import ROOT
from support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.lab_host import LabHost
    from support.private_libvirtd import PrivateLibvirtd

HERE = ["localhost", "--extra-vars", "ansible_python_interpreter=/usr/bin/python3"]
# Where the tests' environment says so, Python would keep nothing of what it has compiled, and compile it for each call.
BY_PYTHON = ["env", "--unset=PYTHONDONTWRITEBYTECODE", "/usr/bin/python3"]
RUNNER = Path(__file__).with_name("module_runner.py")
# Of a result, `ansible` without -v does not print these, or not there.
NOT_PRINTED = ("invocation", "diff", "exception", "warnings", "deprecations")
COLLECTIONS = ROOT / "playbooks" / "collections"
ANSIBLE = Path(ansible.__file__).parent
SECONDS_IN_HOST = 600
_serving: dict[int, subprocess.Popen[str]] = {}


def run_beside(
    libvirtd: PrivateLibvirtd, name: str, arguments: dict[str, Any], *, check_mode: bool = False
) -> dict[str, Any]:
    """Without Ansible, which costs a second of CPU beside the tenth that the module takes."""
    return _as_shown(answer_beside(libvirtd, name, arguments, check_mode=check_mode))


def answer_beside(
    libvirtd: PrivateLibvirtd, name: str, arguments: dict[str, Any], *, check_mode: bool = False
) -> dict[str, Any]:
    """The same, as the module prints it. One process runs them, one after the other."""
    serving = _server(libvirtd)
    assert serving.stdin
    assert serving.stdout
    serving.stdin.write(_task(COLLECTIONS, ANSIBLE, name, arguments, check_mode=check_mode) + "\n")
    serving.stdin.flush()
    if not select.select([serving.stdout], [], [], PATIENCE)[0]:
        serving.kill()
        raise AssertionError(f"{name} has not ended.")
    return _answer(name, *json.loads(serving.stdout.readline() or '["", "it was killed"]'))


def _server(libvirtd: PrivateLibvirtd) -> subprocess.Popen[str]:
    """What runs modules beside a libvirtd, and ends with that."""
    init = libvirtd.sandbox.init
    if init not in _serving or _serving[init].poll() is not None:
        command = libvirtd.command([*BY_PYTHON, str(RUNNER), "--serve"])
        _serving[init] = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    return _serving[init]


def run_by_ansible_beside(
    libvirtd: PrivateLibvirtd, name: str, arguments: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """The same by Ansible, for tests of how it passes arguments, ships the module and shows the result."""
    command = _command(HERE, name, arguments, **options)
    return _result(name, libvirtd.run(command, check=False))


def run_in(
    host: LabHost, name: str, arguments: dict[str, Any], *, check_mode: bool = False, umask: str = "022"
) -> dict[str, Any]:
    """In a lab host that is not bare, without Ansible: five times as fast as by Ansible."""
    library = Path(kept_code.IN_HOST) / _library().name
    task = _task(library / "collections", library / "ansible", name, arguments, check_mode=check_mode)
    program = ["sh", "-c", 'umask "$0"; exec "$@"', umask, *BY_PYTHON, str(library / RUNNER.name)]
    done = host.run(program, check=False, input=task, timeout=SECONDS_IN_HOST)
    return _as_shown(_answer(name, done.stdout, done.stderr))


def run_on(inventory: Path, name: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    """By Ansible, on the host that an inventory calls hypervisor."""
    command = _command(["hypervisor", "--inventory", str(inventory)], name, arguments, **options)
    return _result(name, subprocess.run(command, check=False, text=True, capture_output=True))


def _task(collections: Path, at: Path, name: str, arguments: dict[str, Any], *, check_mode: bool) -> str:
    """What the runner is given. Ansible tells a module more, but nothing that those of this collection ask for."""
    full_name = f"nometal.ipi.{name}"
    told = {"module_name": full_name, "check_mode": check_mode, "diff": True, "version": ansible.__version__}
    task = {
        "module": f"ansible_collections.nometal.ipi.plugins.modules.{name}",
        "collections": str(collections),
        "ansible": str(at),
        "arguments": {**arguments, **{f"_ansible_{key}": value for key, value in told.items()}},
    }
    return json.dumps(task)


@cache
def _library() -> Path:
    """What modules import, where each lab host finds it, with what other hosts have compiled of it."""
    content = [version("ansible-core"), kept_code.digest_of("plugins"), RUNNER.read_text()]
    name = f"library-{kept_code.digest(''.join(content))[:12]}"
    return made_once(kept_code.compiled() / name, name, lambda: _make_library(kept_code.compiled() / name))


def _make_library(path: Path) -> None:
    unfinished = path.with_name(f"{path.name}.making")
    shutil.rmtree(unfinished, ignore_errors=True)
    leave_out = shutil.ignore_patterns("__pycache__")
    collection = unfinished / "collections/ansible_collections/nometal/ipi"
    for plugins in ("modules", "module_utils"):
        shutil.copytree(ROOT / "plugins" / plugins, collection / "plugins" / plugins, ignore=leave_out)
    shutil.copytree(ANSIBLE / "module_utils", unfinished / "ansible/module_utils", ignore=leave_out)
    shutil.copy(RUNNER, unfinished)
    unfinished.rename(path)


def _answer(name: str, output: str, errors: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        raise AssertionError(f"{name} gave no result:\n{output}{errors}") from None
    return answer


def _as_shown(answer: dict[str, Any]) -> dict[str, Any]:
    """What the module has printed, in the form of `_result`."""
    warned = " ".join(" ".join(map(_text, answer.get("warnings", []))).split())
    shown = {"changed": False, "failed": False, **answer}
    for key in NOT_PRINTED:
        shown.pop(key, None)
    return {**shown, "shown_diff": _shown_diff()(answer.get("diff") or []).strip(), "warned": warned}


def _text(warning: Any) -> str:
    return warning["event"]["msg"] if isinstance(warning, dict) else warning  # a string before ansible-core 2.19


@cache
def _shown_diff() -> Callable[[Any], str]:
    from ansible.plugins.callback import CallbackBase  # noqa: PLC0415 - most tests do without it
    from ansible.utils import color  # noqa: PLC0415 - likewise

    color.ANSIBLE_COLOR = False
    return CallbackBase()._get_diff  # noqa: SLF001 - Ansible's own words


def _command(where: Sequence[str], name: str, arguments: dict[str, Any], *, check_mode: bool = False) -> list[str]:
    program = [str(Path(sys.executable).with_name("ansible")), *where, "--playbook-dir", str(ROOT / "playbooks")]
    module = [
        "--module-name",
        f"nometal.ipi.{name}",
        "--diff",
        *(["--args", json.dumps(arguments)] if arguments else []),
    ]
    environment = ["env", "ANSIBLE_CALLBACK_RESULT_FORMAT=json", "ANSIBLE_LOCALHOST_WARNING=false"]
    return [*environment, *program, *module, *(["--check"] if check_mode else [])]


def _result(name: str, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The module's result, whether it failed, the diff as Ansible shows it, and its warnings."""
    above, _, answer = done.stdout.rpartition(" => ")
    shown, _, verdict = above.rpartition("\n")
    if not answer:
        raise AssertionError(f"{name} gave no result:\n{done.stdout}{done.stderr}")
    warned = " ".join(done.stderr.split())
    return {**json.loads(answer), "failed": "FAILED" in verdict, "shown_diff": shown.strip(), "warned": warned}
