"""On a lab host: code that Python imports from an archive is compiled once, as code in directories is by itself.

Ansible sends each module in an archive of its own. Loaded at every start of Python, so it imports nothing that is not
loaded already until it has something to do.
"""

from __future__ import annotations

import marshal
import os
import sys
import zipimport
from contextlib import suppress

TYPE_CHECKING = False  # without importing typing
if TYPE_CHECKING:
    from types import CodeType

KEPT = "/run/lab-compiled"

_compile = zipimport._compile_source  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way in


def _compile_once(path: str, source: bytes) -> CodeType:
    from hashlib import sha256  # noqa: PLC0415 - see above

    file = f"{KEPT}/{sys.implementation.cache_tag}-{sha256(source).hexdigest()}"
    with suppress(OSError, ValueError, EOFError), open(file, "rb") as kept:  # noqa: PTH123
        found: CodeType = marshal.loads(kept.read())  # noqa: S302 - it is ours
        return found
    code: CodeType = _compile(path, source)
    with suppress(OSError):
        unfinished = f"{file}.{os.getpid()}-{os.urandom(4).hex()}"
        with open(unfinished, "xb") as kept:  # noqa: PTH123
            kept.write(marshal.dumps(code))
        os.replace(unfinished, file)  # noqa: PTH105
    return code


zipimport._compile_source = _compile_once  # type: ignore[attr-defined]  # noqa: SLF001
