# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of ours that run on the host by themselves."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import ModuleType

# Root runs them, so nobody else may write them.
RUNNABLE = 0o755
PYTHON = "/usr/bin/python3"
SOURCE_NAME = r"([A-Za-z_]\w*/)*[A-Za-z_]\w*\.py"


@dataclass(frozen=True)
class Program:
    path: Path
    text: str
    mode: int = RUNNABLE

    @property
    def is_installed(self) -> bool:
        return files.text_of(self.path) == self.text and files.has_access(self.path, self.mode)

    def install(self) -> None:
        """Replaced in one go; one that is as it should be stays."""
        if not self.is_installed:
            files.write_whole(self.path, self.text, self.mode)

    def remove(self) -> None:
        files.remove(self.path)


def text_of(module: ModuleType) -> str:
    """It needs nothing but Python's own library, and what is a module here can be used and tested here, too."""
    return f"#!{PYTHON}\n{inspect.getsource(module)}"


def refuse_bad_names(sources: Iterable[str]) -> None:
    """Of what a role ships as a package: the text of its files by their names."""
    strange = [name for name in sources if not re.fullmatch(SOURCE_NAME, name)]
    if strange:
        raise OperatorError(f"sources: {', '.join(strange)}: names must be of Python files, such as front/tls.py.")
