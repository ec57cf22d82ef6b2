# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pyghmi's side of an IPMI session, where it would keep every session for ever and obey a repeated request again."""

from __future__ import annotations

import time
from typing import Any

from pyghmi.ipmi.private import constants
from pyghmi.ipmi.private.serversession import ServerSession
from pyghmi.ipmi.private.session import Session

UNAUTHORIZED_NAME = 0x0D
CLIENT_SESSION = slice(4, 8)
"""In an open session request."""


class NodeSession(ServerSession):
    """A session, or the beginning of one, of the client at one address and port."""

    def __init__(self, *args: Any) -> None:
        self.last_used = time.monotonic()
        self._request: tuple[object, ...] | None = None
        self._answer: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        super().__init__(*args)

    @property
    def worth(self) -> tuple[bool, float]:
        """Of two sessions the one to keep is greater: one that is logged in, or else the one used later."""
        return (bool(self.integrityalgo), self.last_used)

    def close_server_session(self) -> None:
        Session.bmc_handlers.pop(self.sockaddr, None)

    def handle_client_request(self, request: dict[str, Any]) -> None:
        """Obey once; a client that has waited too long for the answer sends the same again, with the same number."""
        self.last_used = time.monotonic()
        asked = (self.seqlun, request["netfn"], request["command"], bytes(request["data"]))
        if asked != self._request:
            self._request, self._answer = asked, None
            super().handle_client_request(request)
        elif self._answer is not None:
            args, options = self._answer
            super()._send_ipmi_net_payload(*args, **options)

    def _send_ipmi_net_payload(self, *args: Any, **options: Any) -> None:
        self._answer = (args, options)
        super()._send_ipmi_net_payload(*args, **options)

    def _got_rakp1(self, data: bytearray) -> None:
        """Say that a name is wrong; pyghmi says nothing, and clients try for 20 s."""
        name = bytes(data[28:])
        if self.authdata.get(name.decode(errors="replace")) is None:
            refusal = bytearray([data[0], UNAUTHORIZED_NAME, 0, 0]) + self.clientsessionid
            self.send_payload(refusal, constants.payload_types["rakp2"], retry=False)
        else:
            super()._got_rakp1(data)
