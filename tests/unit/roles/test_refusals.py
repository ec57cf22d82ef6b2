"""What a stage would refuse can be asked before the first change: of every stage, every module, and in check mode."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ansible_collections.nometal.ipi.plugins.modules.refusals import RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PREFIX = "nometal.ipi."
STAGES = {
    "host": "host_prep",
    "network": "lab_network",
    "nodes": "node_vms",
    "bmc": "bmc_emulation",
    "rehearse": "rehearsal",
    "install": "ipi_install",
}
BESIDE_STAGES = ("spec", "doctor", "preflight", "shrink", "grow", "release")
NOT_ASKED = {
    "brought_packages": "notes what is there",
    "bmc_info": "only looks",
    "cluster_access": "comes when the cluster is installed",
    "cluster_info": "only looks",
    "cluster_removal": "comes when the cluster is installed",
    "cluster_watch": "only looks; refusals.yml looks at its patience",
    "follow": "only looks",
    "lab_status": "only looks",
    "host_forwarding": "notes what is there",
    "host_doctor": "is asked before all",
    "host_info": "only looks",
    "host_memory": "notes what other tasks are about to change; host_forwarding, which is asked, reads the same file",
    "install_bundle": "only looks",
    "installer_bridges": "judges what its own stage has made",
    "registry_logins": "asks registries, which takes a while and needs a network",
    "libvirt_service": "refuses nothing",
    "rehearsal_page": "shows what its own stage has found",
    "show_table": "shows what its own stage has found",
    "router_advertisements": "refuses nothing",
}
# By function: what is refused in a real run only, and why that comes too early in check mode.
NOT_IN_CHECK_MODE = {
    ("faults.py", "conflicts"): "the task before tells the service of new nodes",
    ("resource.py", "_carry_out"): "what is missing is installed by stage host",
    ("install_bundle.py", "run"): "that its directory cannot be written is known when it is written",
    ("site.py", "links_found"): "what is missing is installed by stage host",
    ("cleanup.py", "_alone"): "it refuses nothing, but yields to what it surrounds",
    ("resource.py", "_others"): "what is missing is installed by stage host",
    ("resource.py", "_make_alone"): "in check mode all of it is in check mode",
    ("port.py", "_act"): "the same has just been done",
    ("conflicts.py", "refuse_conflicts"): "bridges of libvirt networks are made by the task before",
    ("conflicts.py", "of_host"): "the user is made by the task before, the addresses by stage network",
    ("conflicts.py", "of_vms"): "VMs are made by stage nodes",
}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def modules_in(path: Path) -> set[str]:
    return {key[len(PREFIX) :] for task in tasks_in(load(path)) for key in task if key.startswith(PREFIX)}


def tasks_in(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        yield task
        yield from tasks_in(task.get("block", []))


def asked_by(role: str) -> set[str]:
    tasks = ROOT / "roles" / role / "tasks"
    [asking] = [task[f"{PREFIX}refusals"] for task in load(tasks / "refusals.yml") if "nometal.ipi.refusals" in task]
    files, ask = asking.get("tasks", []), asking.get("ask", {})
    if isinstance(files, str):  # a template of the same files
        files = [path.name for path in tasks.glob("*.yml") if f"'{path.name}'" in files]
    named = {key[len(PREFIX) :] for key in ask} if isinstance(ask, dict) else modules_named_in(ask)
    return named | {module for name in files for module in modules_in(tasks / name)}


def modules_named_in(template: str) -> set[str]:
    return {word.strip("'\"{}:,")[len(PREFIX) :] for word in template.split() if PREFIX in word}


def test_preflight_asks_every_stage() -> None:
    plays = load(ROOT / "playbooks" / "stages" / "preflight.yml")
    steps = [task for play in plays for task in play.get("tasks", [])]
    roles = [step.get("ansible.builtin.import_role") or step.get("ansible.builtin.include_role") for step in steps]
    asked = [role["name"][len(PREFIX) :] for role in roles if role and role["tasks_from"] == "refusals"]
    assert asked == list(STAGES.values())
    stages = [Path(play["ansible.builtin.import_playbook"]).stem for play in load(ROOT / "playbooks" / "site.yml")]
    assert [stage for stage in stages if stage not in BESIDE_STAGES] == list(STAGES)


@pytest.mark.parametrize("role", STAGES.values())
def test_every_module_that_may_refuse_is_asked(role: str) -> None:
    tasks = [path for path in (ROOT / "roles" / role / "tasks").rglob("*.yml") if "teardown" not in str(path)]
    used = {module for path in tasks for module in modules_in(path)} - {"refusals", *NOT_ASKED}
    ways_to_remove = {"labs_info"}  # in files that only teardown includes
    assert used - ways_to_remove - asked_by(role) == set()


@pytest.mark.parametrize("role", ["host_prep", "lab_network", "node_vms", "bmc_emulation"])
def test_a_stage_changes_nothing_that_preflight_has_not_asked(role: str) -> None:
    # What preflight.yml finds unchanged is not looked at again in the same run.
    look = {"host_info", "host_doctor", "cluster_info", "installer_bridges", "registry_logins", "labs_info", "refusals"}
    look |= {"show_table"}
    announced = {"host_memory", "brought_packages"}  # with what `changes` of refusals.yml tells
    tasks = [path for path in (ROOT / "roles" / role / "tasks").rglob("*.yml") if "teardown" not in str(path)]
    used = {module for path in tasks for module in modules_in(path)} - look - announced
    assert used == asked_by(role) & {*RUNS}


def test_no_refusal_is_left_to_the_real_run() -> None:
    found = {
        (path.name, function.name)
        for path in sorted((ROOT / "plugins").rglob("*.py"))
        if "_agent" not in path.parts
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef) and refuses_in_a_real_run_only(function)
    }
    assert found == set(NOT_IN_CHECK_MODE)


def refuses_in_a_real_run_only(function: ast.FunctionDef) -> bool:
    return any(
        is_about_check_mode(test) and any(map(refuses, body))
        for node in ast.walk(function)
        for test, body in [*conditional_parts(node), *parts_after_a_return(node)]
    )


def conditional_parts(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.stmt]]]:
    if isinstance(node, ast.If):
        yield node.test, node.body
    elif isinstance(node, ast.For) and isinstance(node.iter, ast.IfExp):  # for plug in [] if foreseeing else those():
        yield node.iter.test, node.body


def parts_after_a_return(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.stmt]]]:
    """What follows `if check_mode: return`."""
    for block in (getattr(node, name, []) for name in ("body", "orelse", "finalbody")):
        for at, statement in enumerate(block if isinstance(block, list) else []):
            if isinstance(statement, ast.If) and any(isinstance(each, ast.Return) for each in statement.body):
                yield statement.test, block[at + 1 :]


def is_about_check_mode(test: ast.expr) -> bool:
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(test)}
    return bool(names & {"check_mode", "foreseeing"})


def refuses(statement: ast.stmt) -> bool:
    """It raises, yields what is wrong, or calls what does."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.Raise, ast.Yield, ast.YieldFrom)):
            return True
        called = getattr(node, "func", None)
        name = getattr(called, "id", getattr(called, "attr", ""))
        if name.startswith(("refuse", "_refuse", "require", "run", "reconcile")):
            return True
    return False
