# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's own Python, with the part of its library that the agent uses, all compiled."""

from __future__ import annotations

import importlib.util
import marshal
import sys
import sysconfig
from modulefinder import ModuleFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import write_tree
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.tree import libraries_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.tree import Tree

PYTHON = "/usr/bin/python3"
HOME = "/rehearsal"
SOURCES = "/rehearsal/sources"  # where tracebacks find the agent's text
PACKAGE, START = "agent", "main"
HEADER = bytes(12)  # of compiled code: no flags, no time, no size
INIT = f"""\
#!{PYTHON} -sSBXutf8
import sys
sys.path[0] = "{HOME}"
import runpy
runpy.run_module("{PACKAGE}.{START}", run_name="__main__", alter_sys=True)
"""
# What Python itself and its C code load by name.
BY_NAME = (
    *("encodings.ascii", "encodings.utf_8", "encodings.latin_1", "encodings.idna"),
    *("_strptime", "runpy", "traceback", "warnings"),
)
# What nothing in a guest uses, and much hangs on.
NEVER = (
    *("asyncio", "distutils", "doctest", "lzma", "multiprocessing", "pdb"),
    *("pydoc", "statistics", "test", "tkinter", "unittest"),
)
# Not in any list of libraries: glibc loads it when a thread ends.
LOADED_LATE = "libgcc_s.so.1"


def put_python(tree: Tree, sources: Mapping[str, str], scratch: Path) -> None:
    for name, text in sources.items():
        _refuse_what_python_refuses(name, text)
    write_tree(scratch / PACKAGE, sources)
    modules = _closure(scratch, [_module_name(name) for name in sources])
    interpreter = str(Path(sys.executable).resolve())
    tree.take(interpreter, *(file for file, code in modules if not code))
    if interpreter != PYTHON:
        tree.link(PYTHON, interpreter)
    for file, code in modules:
        if code:
            _put_module(tree, Path(file), scratch)
    _take_what_loads_late(tree)
    tree.directory(sysconfig.get_config_var("DESTSHARED"))  # Python complains without it
    tree.file("/init", INIT.encode(), 0o755)


def _refuse_what_python_refuses(name: str, text: str) -> None:
    try:
        compile(text, Path(name).name, "exec")
    except SyntaxError as error:
        raise OperatorError(f"sources: {error.filename}, line {error.lineno}: {error.msg}.") from error


def _module_name(file: str) -> str:
    return ".".join([PACKAGE, *Path(file).with_suffix("").parts]).removesuffix(".__init__")


def _closure(scratch: Path, names: Iterable[str]) -> list[tuple[str, bool]]:
    """The files of all modules, and whether they are Python's own code."""
    library = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), sysconfig.get_config_var("DESTSHARED")]
    finder = ModuleFinder([str(scratch), *library], excludes=NEVER)
    start = scratch / "start.py"
    write_tree(scratch, {start.name: "".join(f"import {name}\n" for name in (*names, *BY_NAME))})
    finder.run_script(str(start))
    _refuse_gaps(finder)
    found: list[Any] = list(finder.modules.values())
    files = {module.__file__: bool(module.__code__) for module in found if module.__file__}
    del files[str(start)]
    return sorted(files.items())


def _refuse_gaps(finder: ModuleFinder) -> None:
    """What the agent itself names must be there; Python's own library is full of modules of other systems."""
    for name, importers in finder.badmodules.items():
        whole = name.partition(".")[0]
        if whole not in finder.modules and any(importer.partition(".")[0] == PACKAGE for importer in importers):
            raise OperatorError(f"sources: the agent imports {name}, which {sys.executable} lacks.")


def _put_module(tree: Tree, file: Path, scratch: Path) -> None:
    """Beside no source, Python takes compiled code as it is. Only the agent's own text is there, for tracebacks."""
    if scratch in file.parents:
        place, shown, optimize = Path(HOME) / file.relative_to(scratch), Path(SOURCES) / file.relative_to(scratch), 0
        tree.file(str(shown), file.read_bytes())
    else:
        place, shown, optimize = file, file, 2
    code = compile(file.read_bytes(), str(shown), "exec", dont_inherit=True, optimize=optimize)
    tree.file(str(place.with_suffix(".pyc")), importlib.util.MAGIC_NUMBER + HEADER + marshal.dumps(code))


def _take_what_loads_late(tree: Tree) -> None:
    libc = next(path for path in libraries_of([sys.executable]) if "/libc.so" in path)
    late = Path(libc).with_name(LOADED_LATE)
    if late.exists():
        tree.take(str(late))
