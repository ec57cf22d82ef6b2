# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Made = TypeVar("Made", bound=Callable[..., Any])

FULL = (errno.ENOSPC, errno.EDQUOT)
NOT_ALLOWED = (errno.EACCES, errno.EPERM)
OTHER_KIND = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP)
ADVICE = {
    **dict.fromkeys(FULL, "Free some space there, then run this again"),
    **dict.fromkeys(NOT_ALLOWED, "Run as root, with `become: true`; `lsattr` shows whether it is immutable"),
    **dict.fromkeys(OTHER_KIND, "Something of another kind is at this path, or above it: move that away"),
    errno.EROFS: "Its file system is mounted read-only: mount it for writing, then run this again",
}
WHICH_IS_FULL = "The system does not say for which file: `df -h` and `df -i` show which file system is full"


class OperatorError(Exception):
    """A failure that the operator can act on: the text says what is wrong, where, and what to do."""


class NotThereYetError(OperatorError):
    """What is to be asked does not answer on this host, so for all we can see nothing exists there."""


@contextmanager
def noting(problems: list[str]) -> Iterator[None]:
    """Collect what is refused, so that the next thing is looked at, too. Afterwards: `refuse_all`."""
    try:
        yield
    except OperatorError as error:
        problems.append(str(error))


def refusals_of(*checks: Callable[[], None]) -> list[str]:
    problems: list[str] = []
    for refuse in checks:
        with noting(problems):
            refuse()
    return problems


def refuse_all(problems: Sequence[str]) -> None:
    if problems:
        raise OperatorError("\n".join(problems))


def run_module(argument_spec: dict[str, Any], run: Callable[..., dict[str, Any]], **options: Any) -> None:
    """All of a module's `main()`. Run: a function of its parameters and of check_mode, or that of a Resource."""
    from ansible.module_utils.basic import AnsibleModule  # noqa: PLC0415 - all else here does without Ansible

    module = AnsibleModule(argument_spec=argument_spec, supports_check_mode=True, **options)
    with operator_errors(module):
        result = run(module.params, check_mode=module.check_mode)
    for warning in result.pop("warnings", ()):
        module.warn(warning)
    leave = module.fail_json if result.get("failed") else module.exit_json
    leave(**result)


@contextmanager
def operator_errors(module: Any) -> Iterator[None]:
    """Around all that a module does. What the operating system refuses is the operator's to see to, and no bug."""
    try:
        yield
    except OperatorError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=words_of(error))


def words_of(error: OSError) -> str:
    paths = " and ".join(str(path) for path in (error.filename, error.filename2) if path)
    what = error.strerror or str(error)
    advice = WHICH_IS_FULL if error.errno in FULL and not paths else ADVICE.get(error.errno or 0, "")
    said = f"{paths}: {what}." if paths else f"{what}."
    return f"{said} {advice}." if advice else said


def names_its_path(path_of: Callable[..., Any]) -> Callable[[Made], Made]:
    """For functions that write: what fails in an open file, as when the disk is full, names no path by itself."""

    def decorate(function: Made) -> Made:
        @functools.wraps(function)
        def naming(*args: Any, **named: Any) -> Any:
            try:
                return function(*args, **named)
            except OSError as error:
                error.filename = error.filename or str(path_of(*args))
                raise

        return naming  # type: ignore[return-value]  # mypy does not see that it takes what the function takes

    return decorate
