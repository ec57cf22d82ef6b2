# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until the service answers for every VM."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.client import Client
from ansible_collections.nometal.ipi.plugins.module_utils._redfish.lab import OPERATOR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._redfish.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._redfish.lab import Endpoint, Lab, Node

SYSTEMS = "/redfish/v1/Systems"
PATIENCE = 30.0
PAUSE = 0.2
RELOAD_SECONDS = 1.2
"""A service that runs on takes what has changed within a second; before, it would count new passwords as wrong ones."""
# Get Channel Authentication Capabilities, which an IPMI BMC answers to anybody.
IPMI_QUESTION = bytes.fromhex("0600ff07 00 00000000 00000000 09 20 18 c8 81 00 38 8e 04 b5")
IPMI_SECONDS = 1


def wait_until_it_answers(lab: Lab, logins: Mapping[str, Login], last_words: Callable[[], str], *, each: bool) -> None:
    """Each VM is asked about; or only whether it is on the service's list, which is cheap however many there are."""
    deadline = time.monotonic() + PATIENCE
    ask = _questions(lab, logins, each=each)
    waiting = list(lab.nodes)
    while True:
        troubles = {node: trouble for node, trouble in zip(waiting, ask(waiting)) if trouble}
        waiting = list(troubles)
        if not waiting:
            return
        if time.monotonic() > deadline:
            node, trouble = next(iter(troubles.items()))
            raise OperatorError(
                f"The BMC service of lab {lab.name} does not answer for {_some(waiting)} after {PATIENCE:.0f} seconds. "
                f"Of {node.name}: {trouble}\nIts last words:\n{last_words().strip() or '(none)'}"
            )
        time.sleep(PAUSE)


def _questions(lab: Lab, logins: Mapping[str, Login], *, each: bool) -> Callable[[Sequence[Node]], list[str]]:
    """Returns what asks about nodes, and says for each what is wrong, or nothing."""
    client = client_of(lab, logins)
    ask_redfish = _ask_each if each else _ask_list

    def ask(nodes: Sequence[Node]) -> list[str]:
        redfish = [node for node in nodes if node.ipmi is None]
        troubles = dict(zip(redfish, ask_redfish(client, redfish) if client else []))
        return [_ipmi_trouble(node.ipmi) if node.ipmi else troubles[node] for node in nodes]

    return ask


def _ask_each(client: Client, nodes: Sequence[Node]) -> list[str]:
    return [answer.trouble for answer in client.get_all(f"{SYSTEMS}/{node.uuid}" for node in nodes)]


def _ask_list(client: Client, nodes: Sequence[Node]) -> list[str]:
    answer = client.get(SYSTEMS)
    served = {member["@odata.id"] for member in answer.body.get("Members", [])}
    unserved = answer.trouble or "It is not on the service's list"
    return ["" if f"{SYSTEMS}/{node.uuid}" in served else unserved for node in nodes]


def client_of(lab: Lab, logins: Mapping[str, Login]) -> Client | None:
    return Client(lab.listen[0], lab.ca if lab.tls else None, logins[OPERATOR]) if lab.listen else None


def _ipmi_trouble(place: Endpoint) -> str:
    family = socket.AF_INET6 if ":" in place.address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.settimeout(IPMI_SECONDS)
        try:
            asking.connect((place.address, place.port))
            asking.send(IPMI_QUESTION)
            asking.recv(1024)
        except OSError as error:
            return f"udp {place}: {error}"
    return ""


def _some(nodes: Sequence[Node]) -> str:
    names = [node.name for node in nodes[:3]]
    more = len(nodes) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
