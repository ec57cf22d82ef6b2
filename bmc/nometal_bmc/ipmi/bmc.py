# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPMI BMC of one node: what its parts are, and the addresses at which it listens."""

from __future__ import annotations

import logging
import selectors
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nometal_bmc.broker.client import Machines
from nometal_bmc.config.settings import System
from nometal_bmc.events.log import EventLog
from nometal_bmc.ipmi import messages, sdr, suites
from nometal_bmc.ipmi.application import Application
from nometal_bmc.ipmi.boot_options import BootOptions
from nometal_bmc.ipmi.chassis import Chassis
from nometal_bmc.ipmi.commands import Commands, Level, Request
from nometal_bmc.ipmi.faults import FaultyCommands, NoAnswer
from nometal_bmc.ipmi.fru import Fru
from nometal_bmc.ipmi.journal import Journal
from nometal_bmc.ipmi.logins import Logins
from nometal_bmc.ipmi.sel import Sel
from nometal_bmc.ipmi.session import (
    INVALID_SESSION,
    LEVEL_MASK,
    NO_RESOURCES,
    NO_SUITE,
    OPEN_LENGTH,
    UNAUTHORIZED_ROLE,
    NodeSession,
    refusal,
)
from nometal_bmc.ipmi.users import Users
from nometal_bmc.ipmi.vm import Vm
from nometal_bmc.ipmi.work import Work

if TYPE_CHECKING:
    from nometal_bmc.config.settings import Config, Ipmi
    from nometal_bmc.faults.decisions import CurrentFaults

LOG = logging.getLogger(__name__)
MAX_SESSIONS = 128
LONGEST_PACKET = 3000
BUFFER_BYTES = 1 << 24
LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class OneSystem:
    """A configuration in which no other VM exists."""

    config: Config


class Listener:
    """A node's BMC at one address. Packets are answered one after the other, each to its end."""

    def __init__(self, logins: Logins, commands: FaultyCommands, address: str, port: int) -> None:
        self.logins = logins
        self.commands = commands
        self.port = port
        self._sessions: dict[bytes, NodeSession] = {}
        where = socket.getaddrinfo(address, port, 0, socket.SOCK_DGRAM)[0]
        self.socket = socket.socket(where[0], socket.SOCK_DGRAM)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            self.socket.bind(where[4])
        except OSError:
            self.socket.close()
            raise

    def take_packet(self) -> None:
        packet, peer = self.socket.recvfrom(LONGEST_PACKET, socket.MSG_DONTWAIT)
        try:
            self._take(bytearray(packet), peer)
        except NoAnswer as lost:
            for session in list(self._sessions.values()) if lost.sessions_end else ():
                self.forget(session)
        except Exception as error:  # pyghmi trusts what comes; nothing that comes may end us
            LOG.debug("A packet from %s is not IPMI: %r", peer[0], error)

    def forget(self, session: NodeSession) -> None:
        self.logins.failed(session)
        self._sessions.pop(bytes(session.managedsessionid), None)

    def _take(self, packet: bytearray, peer: tuple[Any, ...]) -> None:
        if packet[: len(messages.RMCP)] != messages.RMCP:
            return
        envelope, kind = packet[4], packet[5] & messages.TYPE_MASK
        outside = packet[6:10] == bytes(4)
        if envelope == messages.PLAIN or (
            envelope == messages.RMCP_PLUS and kind == messages.PAYLOAD_MESSAGE and outside
        ):
            self._answer_outside(packet, peer)
        elif envelope == messages.RMCP_PLUS and kind == messages.PAYLOAD_OPEN:
            self._open(bytes(packet[messages.HEADER :]), peer)
        elif envelope == messages.RMCP_PLUS:
            self._take_in_session(packet, kind, peer)

    def _answer_outside(self, packet: bytearray, peer: tuple[Any, ...]) -> None:
        message = messages.read(bytes(packet))
        if message is not None:
            request = Request(message.function, message.command, message.data, Level.NONE, source=str(peer[0]))
            code, data = self.commands.answer(request)
            self.socket.sendto(message.answer(code, data), peer)

    def _open(self, request: bytes, peer: tuple[Any, ...]) -> None:
        if len(request) < OPEN_LENGTH:
            return
        suite = suites.chosen(request[8:])
        status = UNAUTHORIZED_ROLE if request[1] & LEVEL_MASK > Level.ADMINISTRATOR else 0 if suite else NO_SUITE
        status = NO_RESOURCES if self.commands.refuses_session() else status
        if status or suite is None:
            answer = refusal(request[0], status, request[4:8])
            self.socket.sendto(messages.packet(messages.PAYLOAD_OPENED, answer), peer)
            return
        if len(self._sessions) >= MAX_SESSIONS:
            self.forget(min(self._sessions.values(), key=lambda session: session.worth))
        session = NodeSession(self, peer, request, suite)
        self._sessions[bytes(session.managedsessionid)] = session

    def _take_in_session(self, packet: bytearray, kind: int, peer: tuple[Any, ...]) -> None:
        is_login = kind in (messages.PAYLOAD_RAKP_1, messages.PAYLOAD_RAKP_3)
        session = self._sessions.get(bytes(packet[20:24] if is_login else packet[6:10]))
        if session is not None and session.sockaddr == peer:
            session.take(packet)
        elif kind == messages.PAYLOAD_RAKP_1:
            answer = refusal(packet[messages.HEADER], INVALID_SESSION, bytes(4))
            self.socket.sendto(messages.packet(messages.PAYLOAD_RAKP_2, answer), peer)


class Node:
    """A node's BMC at all its addresses."""

    def __init__(self, config: Config, node: Ipmi, faults: CurrentFaults) -> None:
        self._node = node
        domains = Machines(OneSystem(replace(config, systems=(System(node.uuid, node.name),))))
        vm, work = Vm(domains, node.uuid), Work(node.name)
        work.start()
        journal = Journal(EventLog(lambda: config.state / "events"), node)
        parts = (
            Application(uuid.UUID(node.uuid)),
            Chassis(vm, work, journal),
            BootOptions(vm, work, journal),
            Sel(journal),
            Fru(vm, node.name),
            Users(node.username),
        )
        self._logins = Logins(node, journal)
        commands = Commands(node.name, sdr.table(), *(part.table() for part in parts))
        self._commands = FaultyCommands(commands, faults, node.name)
        self._waiting = dict.fromkeys(node.addresses, "")
        """The addresses where it cannot listen (yet), and why."""

    def listen(self) -> None:
        """Serve for ever, a packet at a time: what comes faster waits in the socket's buffer, or is lost there."""
        with selectors.DefaultSelector() as selector:
            while True:
                self._open(selector)
                looks_again = self._logins.give_up() or self._waiting
                for key, _events in selector.select(LOOK_SECONDS if looks_again else None):
                    with suppress(BlockingIOError):  # the kernel has found the packet to be damaged
                        key.data.take_packet()

    def _open(self, selector: selectors.BaseSelector) -> None:
        name, port = self._node.name, self._node.port
        for address, reported in list(self._waiting.items()):
            try:
                listener = Listener(self._logins, self._commands, address, port)
            except OSError as error:
                if str(error) != reported:
                    LOG.warning("The BMC of %s cannot listen yet at %s port %s: %s", name, address, port, error)
                self._waiting[address] = str(error)
                continue
            del self._waiting[address]
            selector.register(listener.socket, selectors.EVENT_READ, listener)
            LOG.info("The BMC of %s listens at %s port %s", name, address, port)


def serve(config: Config, node: Ipmi, faults: CurrentFaults) -> None:
    """Be the BMC of a node, for ever."""
    Node(config, node, faults).listen()
