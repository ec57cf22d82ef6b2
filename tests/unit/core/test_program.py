"""Programs of ours on the host: shipped in one way, and replaced only when they are not as they should be."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import runner
from ansible_collections.nometal.ipi.plugins.module_utils._core import program
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.program import Program

UTILS = Path(__file__).parents[3] / "plugins" / "module_utils"
# The recipe of the rehearsal's image goes by the text of what builds it, and ships none of that.
READ_SOURCES = {"_core/program.py", "_rehearsal/image/recipe.py"}


def states_around_install(own: Program) -> tuple[bool, bool]:
    before = own.is_installed
    own.install()
    return before, own.is_installed


def test_one_that_is_as_it_should_be_stays_and_any_other_is_replaced(tmp_path: Path) -> None:
    installed = Program(tmp_path / "bin/program", program.text_of(runner))
    assert states_around_install(installed) == (False, True)
    assert installed.path.stat().st_mode & 0o777 == 0o755

    before = installed.path.stat().st_ino
    installed.install()
    assert installed.path.stat().st_ino == before
    installed.path.chmod(0o777)
    assert states_around_install(installed) == (False, True)
    installed.path.write_text("half")
    assert states_around_install(installed) == (False, True)

    installed.remove()
    assert list(installed.path.parent.iterdir()) == []


def test_its_text_runs_by_the_hosts_python() -> None:
    text = program.text_of(runner)
    assert text.startswith("#!/usr/bin/python3\n")
    compile(text, "runner.py", "exec")


def test_names_of_sources_lead_nowhere_else() -> None:
    program.refuse_bad_names(["app.py", "front/tls.py", "__init__.py"])
    with pytest.raises(OperatorError, match=r"^sources: \.\./a\.py, b\.txt: names must be"):
        program.refuse_bad_names(["../a.py", "b.txt", "c.py"])


def test_nothing_reads_the_text_of_programs_in_another_way() -> None:
    found = {
        str(path.relative_to(UTILS))
        for path in UTILS.rglob("*.py")
        if any(
            isinstance(node, ast.Attribute) and node.attr in ("getsource", "getsourcelines", "get_data")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    assert found == READ_SOURCES
