# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

try:
    import libvirt
except ImportError:
    libvirt = None

try:
    import lxml
except ImportError:
    lxml = None  # type: ignore[assignment]  # mypy takes the name for the module alone

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Callable

ROLE_HINT = "role nometal.ipi.host_prep installs and starts it"


@contextmanager
def connect(uri: str) -> Iterator[Any]:
    """Open libvirt, and turn its errors inside the block into ones that an operator can act on."""
    missing = missing_bindings()
    if missing:
        raise NotThereYetError(
            f"{sys.executable} has no {' and no '.join(missing)}: {ROLE_HINT}; "
            "if it did, set ansible_python_interpreter to the distribution's own Python, /usr/bin/python3."
        )
    # Otherwise libvirt prints every error on stderr as well, also those that are handled here.
    libvirt.registerErrorHandler(lambda *_error: None, None)
    connection = _open(uri)
    try:
        yield connection
    except libvirt.libvirtError as error:
        raise OperatorError(f"libvirt at {uri} refused: {error.get_error_message()}") from error
    finally:
        connection.close()


@contextmanager
def connect_if_there(uri: str, missing: Callable[[NotThereYetError], None] | None = None) -> Iterator[Any]:
    """None where libvirt does not answer. `missing` gets the reason, and may refuse that."""
    with ExitStack() as stack:
        try:
            connection = stack.enter_context(connect(uri))
        except NotThereYetError as error:
            if missing:
                missing(error)
            connection = None
        yield connection


def missing_bindings() -> list[str]:
    """What this Python lacks to ask libvirt."""
    return [what for what, module in (("libvirt bindings", libvirt), ("lxml", lxml)) if module is None]


def _open(uri: str) -> Any:
    try:
        return libvirt.open(uri)
    except libvirt.libvirtError as error:
        text = error.get_error_message()
        if "No such file or directory" in text or "Connection refused" in text:
            raise NotThereYetError(f"Nothing answers for {uri} ({text}): {ROLE_HINT}.") from error
        raise OperatorError(f"libvirt at {uri} cannot be opened: {text}. Run as root, with `become: true`.") from error


def lists_interfaces(uri: str) -> bool:
    """Whether libvirt lists the host's interfaces, as the installer has it do: its driver for that may be missing."""
    with connect(uri) as connection:
        try:
            connection.listAllInterfaces()
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_SUPPORT:
                return False
            raise
    return True
