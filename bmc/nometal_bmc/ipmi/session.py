# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pyghmi's side of an IPMI session, where it would keep every session for ever and obey a repeated request again."""

from __future__ import annotations

import logging
import time
from typing import Any

from pyghmi.ipmi.private import constants
from pyghmi.ipmi.private.serversession import ServerSession
from pyghmi.ipmi.private.session import Session

from nometal_bmc.ipmi.wishes import described

LOG = logging.getLogger(__name__)
ACCESS = logging.getLogger("nometal_bmc.access")
UNAUTHORIZED_NAME = 0x0D
"""In an open session request."""


class NodeSession(ServerSession):
    """A session, or the beginning of one, of the client at one address and port."""

    _next_refusal_line = 0.0

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
        of_peer = Session.bmc_handlers.get(self.sockaddr, {})
        of_peer.pop(self.bmc.port, None)
        if not of_peer:
            Session.bmc_handlers.pop(self.sockaddr, None)

    def handle_client_request(self, request: dict[str, Any]) -> None:
        """Obey once; a client that has waited too long for the answer sends the same again, with the same number."""
        self.last_used = time.monotonic()
        asked = (self.seqlun, request["netfn"], request["command"], bytes(request["data"]))
        if asked != self._request:
            self._request, self._answer = asked, None
            started = time.monotonic()
            super().handle_client_request(request)
            self._log(request, time.monotonic() - started)
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
            self._log_refusal("an unknown account")
        else:
            super()._got_rakp1(data)

    def _got_rakp3(self, data: bytearray) -> None:
        """The client proves that it knows the password; pyghmi says nothing if it does not."""
        super()._got_rakp3(data)
        if not self.integrityalgo:
            self._log_refusal(self.username.decode(errors="replace"))

    def _log(self, request: dict[str, Any], seconds: float) -> None:
        wish = described(request["netfn"], request["command"], bytes(request["data"]))
        if wish:
            code = self._answer[1].get("code", 0) if self._answer else None
            outcome = "no answer" if code is None else "done" if code == 0 else f"declined ({code:#04x})"
            who, source = self.username.decode(errors="replace"), self.sockaddr[0]
            ACCESS.info("%s: %s: %s %.0f ms %s from %s", self.bmc.node, wish, outcome, seconds * 1000, who, source)

    def _log_refusal(self, who: str) -> None:
        """Not more than one a second: it costs nothing to send such packets."""
        now = time.monotonic()
        if now >= NodeSession._next_refusal_line:
            NodeSession._next_refusal_line = now + 1
            LOG.warning("Refused a login from %s for %s at the BMC of %s", self.sockaddr[0], who, self.bmc.node)
