# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on a VM's screen, as libvirt sees it."""

from __future__ import annotations

from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml

MOST_BYTES = 64 * 1024**2
ENDINGS = {"image/png": "png", "image/x-portable-pixmap": "ppm"}


def take(connection: Any, domain: Any) -> tuple[str, bytes]:
    """The ending that goes with the format, and the picture."""
    if not domain.isActive():
        raise OperatorError("it is switched off")
    if domain_xml.parsed(domain.XMLDesc()).find("devices/video") is None:
        raise OperatorError("it has no screen, for its VM has no video device; its serial console is in the log")
    stream = connection.newStream()
    kind = domain.screenshot(stream, 0)
    picture = bytearray()
    stream.recvAll(_receive, picture)
    stream.finish()
    return ENDINGS.get(kind, "img"), bytes(picture)


def _receive(_stream: Any, data: bytes, picture: bytearray) -> int:
    picture += data[: MOST_BYTES - len(picture)]
    return len(data)
