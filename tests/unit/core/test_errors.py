"""What the operating system refuses reaches the operator with its path and with what to do, from every module."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    OperatorError,
    names_its_path,
    operator_errors,
    words_of,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory

MODULES = Path(__file__).parents[3] / "plugins" / "modules"
# They run on the controller; or fail with words of their own only.
WITHOUT = {"derive_lab", "follow", "rehearsal_page", "show_table"}


class Module:
    def __init__(self) -> None:
        self.said = ""

    def fail_json(self, msg: str) -> None:
        self.said = msg


def said_of(error: BaseException) -> str:
    def fail() -> None:
        raise error

    module = Module()
    with operator_errors(module):
        fail()
    return module.said


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "Free some space there"),
        (errno.EDQUOT, "Free some space there"),
        (errno.EROFS, "mounted read-only"),
        (errno.EACCES, "become: true"),
        (errno.EPERM, "lsattr"),
        (errno.ENOTDIR, "of another kind"),
    ],
)
def test_it_names_the_path_and_what_to_do(number: int, advice: str) -> None:
    said = said_of(OSError(number, os.strerror(number), "/var/lib/nometal/x"))
    assert said.startswith(f"/var/lib/nometal/x: {os.strerror(number)}. ")
    assert advice in said


def test_of_two_paths_both_are_named() -> None:
    assert words_of(OSError(errno.EXDEV, "Invalid cross-device link", "/a", None, "/b")).startswith("/a and /b: Inv")


def test_without_a_path_it_says_how_to_find_what_is_full() -> None:
    assert "df -h" in said_of(OSError(errno.ENOSPC, "No space left on device"))
    assert said_of(OSError("the kernel did not list its routes")) == "the kernel did not list its routes."


def test_what_is_meant_for_the_operator_stays_as_it_is() -> None:
    assert said_of(OperatorError("Give it another name.")) == "Give it another name."


def test_a_bug_stays_a_bug() -> None:
    with pytest.raises(KeyError):
        said_of(KeyError("x"))


def test_a_file_that_does_not_fit_is_named() -> None:
    """What is written fails in the open file, and then names none by itself."""

    @names_its_path(lambda path, *_: path)
    def write(_path: Path, text: str) -> None:
        with Path("/dev/full").open("w", encoding="ascii") as file:
            file.write(text)

    with pytest.raises(OSError, match=r"host\.json") as caught:
        write(Path("/var/lib/nometal/host.json"), "text")
    assert words_of(caught.value).startswith("/var/lib/nometal/host.json: No space left on device. Free some")


@pytest.mark.parametrize("writes", [files.write_whole, HostMemory.note])
def test_whatever_writes_names_its_file(writes: Any) -> None:
    assert hasattr(writes, "__wrapped__")


@pytest.mark.parametrize("module", sorted(path.stem for path in MODULES.glob("*.py")))
def test_every_module_goes_by_it(module: str) -> None:
    text = (MODULES / f"{module}.py").read_text(encoding="utf-8")
    main = text.partition("def main() -> None:")[2]
    assert ("    run_module(" in main) != (module in WITHOUT)
