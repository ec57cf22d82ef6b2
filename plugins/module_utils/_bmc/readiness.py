# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until the service answers for every VM."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import faults
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.client import Client
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import OPERATOR
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.service import fingerprint
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.serving import Serving
from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import Endpoint
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab, Node
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.service import Keeper

ROOT = "/redfish/v1/"
SYSTEMS = f"{ROOT}Systems"
PATIENCE = 30.0
MOST_DEATHS = 10
"""Of a service that ends whenever it was started, nothing better is to be awaited."""
PAUSE = 0.05
MOST_NAMES = 3
RELOAD_SECONDS = 1.2
"""A service that runs on takes what has changed within a second; before, it would count new passwords as wrong ones."""
# Get Channel Authentication Capabilities, which an IPMI BMC answers to anybody.
IPMI_QUESTION = bytes.fromhex("0600ff07 00 00000000 00000000 09 20 18 c8 81 00 38 8e 04 b5")
IPMI_SECONDS = 1


def ensure_it_answers(lab: Lab, logins: Mapping[str, Login], service: Keeper, *, each: bool) -> None:
    """A service that has never answered is not left behind, where it would try for ever and take ports from others."""
    try:
        _wait(lab, _questions(lab, logins, each=each), service)
    except OperatorError as error:
        if Serving(lab).has_answered:
            raise
        service.give_up()
        raise OperatorError(f"{error}\nIt has never answered, so it was stopped, and is not started at boot.") from None
    Serving(lab).note(fingerprint(lab))


def answers(lab: Lab, logins: Mapping[str, Login]) -> bool:
    """Whether it answers for every VM now."""
    return not _questions(lab, logins, each=False)(lab.nodes)


def _wait(lab: Lab, ask: Callable[[Sequence[Node]], dict[str, str]], service: Keeper) -> None:
    """Each VM is asked about; or only whether it is on the service's list, which is cheap however many there are."""
    waiting, deaths = list(lab.nodes), None
    for look in wait.looks(PATIENCE, PAUSE):
        findings = ask(waiting)
        waiting = [node for node in waiting if node.name in findings]
        if not findings:
            return
        seconds, deaths_now = look.seconds, service.deaths()
        deaths = deaths_now if deaths is None else deaths
        if deaths_now - deaths >= MOST_DEATHS:
            break
    name, finding = next(iter(findings.items()))
    last_words = service.last_words().strip() or "(none)"
    raise OperatorError(
        f"The BMC service of lab {lab.name} does not answer for {_some(list(findings))} after {seconds:.0f} "
        f"seconds. Of {name}: {finding}{_about_faults(lab)}\nIts last words:\n{last_words}"
    )


def _questions(lab: Lab, logins: Mapping[str, Login], *, each: bool) -> Callable[[Sequence[Node]], dict[str, str]]:
    """Returns what asks about nodes and, once they are well, at all other doors, and says where what is wrong."""
    client = client_of(lab, logins)
    others = {str(place): _client(lab, place, logins) for place in lab.listen[1 if lab.by_redfish else 0 :]}
    ask_redfish = _ask_each if each else _ask_list

    def ask(nodes: Sequence[Node]) -> dict[str, str]:
        redfish = [node for node in nodes if node.ipmi is None]
        findings = {node.name: _ipmi_finding(lab.places(node.ipmi)) for node in nodes if node.ipmi}
        if client and redfish:
            findings.update(zip((node.name for node in redfish), ask_redfish(client, redfish)))
        if not any(findings.values()):
            findings.update({place: other.get(ROOT).trouble for place, other in others.items()})
        return {name: finding for name, finding in findings.items() if finding}

    return ask


def _ask_each(client: Client, nodes: Sequence[Node]) -> list[str]:
    return [answer.trouble for answer in client.get_all(f"{SYSTEMS}/{node.uuid}" for node in nodes)]


def _ask_list(client: Client, nodes: Sequence[Node]) -> list[str]:
    answer = client.get(SYSTEMS)
    served = {member["@odata.id"] for member in answer.body.get("Members", [])}
    unserved = answer.trouble or "It is not on the service's list"
    return ["" if f"{SYSTEMS}/{node.uuid}" in served else unserved for node in nodes]


def client_of(lab: Lab, logins: Mapping[str, Login]) -> Client | None:
    return _client(lab, lab.listen[0], logins) if lab.listen else None


def _client(lab: Lab, place: Endpoint, logins: Mapping[str, Login]) -> Client:
    return Client(place, lab.ca if lab.tls else None, logins[OPERATOR])


def _ipmi_finding(places: Sequence[Endpoint]) -> str:
    return next(filter(None, map(_ipmi_finding_at, places)), "")


def _ipmi_finding_at(place: Endpoint) -> str:
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


def _about_faults(lab: Lab) -> str:
    """Those of connections concern this account, too."""
    rules = faults.of_lab(lab.directory).rules
    text = "; ".join(map(str, rules))
    return f"\nThe BMCs have faults on purpose, which module bmc_faults removes: {text}" if rules else ""


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
