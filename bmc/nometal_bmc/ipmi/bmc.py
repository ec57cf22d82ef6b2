# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPMI BMC of one VM: virtualbmc's, with the VM found by its UUID and the boot override of our Redfish BMCs."""

from __future__ import annotations

import logging
import selectors
import socket
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable

import libvirt
from pyghmi.ipmi.private import session as pyghmi_session
from virtualbmc.vbmc import IPMI_COMMAND_NODE_BUSY, IPMI_INVALID_DATA, VirtualBMC

from nometal_bmc.answers import Refused
from nometal_bmc.config.settings import System
from nometal_bmc.ipmi.session import NodeSession
from nometal_bmc.vms import boot, firmware, power
from nometal_bmc.vms.domains import Domains
from nometal_bmc.vms.watch import Watch

if TYPE_CHECKING:
    from nometal_bmc.config.settings import Config, Ipmi

LOG = logging.getLogger(__name__)
MAX_SESSIONS = 128
LONGEST_PACKET = 3000
RETRY_SECONDS = 0.5
RMCP_PLUS, OPEN_SESSION = 6, 0x10
RMCP_PLUS_HEADER = 16

BOOT_FLAGS = 5
VALID, PERSISTENT, EFI = 0b1000_0000, 0b0100_0000, 0b0010_0000
SELECTORS = {"None": 0, "Pxe": 1, "Hdd": 2, "Cd": 5}
TARGETS = {selector: target for target, selector in SELECTORS.items()}
PARAMETER_UNKNOWN = 0x80
TOO_SHORT = 0xC7
NOT_NOW = 0xD5


@dataclass(frozen=True)
class OneSystem:
    """A configuration for Domains in which no other VM exists."""

    config: Config


class Declined(Exception):  # noqa: N818 - reads as a sentence: raise Declined(0xCC)
    """A request that is answered with a completion code of IPMI. Nothing was changed."""

    def __init__(self, code: int) -> None:
        super().__init__(f"completion code {code:#x}")
        self.code = code


class NodeBmc(VirtualBMC):
    """A node's BMC at one address. One process has those of one node: pyghmi keeps all sessions in a class.

    Changes of a VM never meet: requests are answered one after the other, the watch takes the VM's lock, and there is
    nobody else: a lab with IPMI has no Redfish beside it.
    """

    def __init__(self, domains: Domains, node: Ipmi, address: str, libvirt_uri: str) -> None:
        # Without pyghmi's thread, which would take in a flood faster than it can be answered: see Node.listen().
        pyghmi_session.iothread, pyghmi_session.iothreadready = "none", True
        self._system = node.uuid
        self._domains = domains
        self.node = node.name
        super().__init__(node.username, node.password, node.port, address, node.name, libvirt_uri)
        self.uuid = uuid.UUID(node.uuid)
        self.port = address  # by which pyghmi tells the sessions of a client apart: here they have all one port

    @property
    def domain_name(self) -> str:
        """Of the VM that has our UUID now, for virtualbmc, which looks VMs up by name."""
        return str(self._domains.domain(self._system).name())

    @domain_name.setter
    def domain_name(self, name: str) -> None:
        """Virtualbmc sets what it was given."""

    def take_packet(self) -> None:
        packet, peer = self.serversocket.recvfrom(LONGEST_PACKET, socket.MSG_DONTWAIT)
        handler = pyghmi_session.Session.bmc_handlers.get(peer, {}).get(self.port, self)
        handler.pktqueue.append((packet, peer, self.serversocket))
        try:
            handler.process_pktqueue()
        except Exception as error:  # pyghmi trusts what comes; nothing that comes may end us
            LOG.debug("A packet from %s is no IPMI: %r", peer[0], error)

    def sessionless_data(self, data: bytearray, peer: tuple[Any, ...]) -> None:
        if data[4] == RMCP_PLUS and data[5] == OPEN_SESSION:
            self._make_room()
            NodeSession(self.authdata, self.kg, peer, self.serversocket, data[RMCP_PLUS_HEADER:], self.uuid, self)
        else:
            super().sessionless_data(data, peer)

    def _make_room(self) -> None:
        handlers = [handler for of_peer in pyghmi_session.Session.bmc_handlers.values() for handler in of_peer.values()]
        sessions = [handler for handler in handlers if isinstance(handler, NodeSession)]
        if len(sessions) >= MAX_SESSIONS:
            min(sessions, key=lambda session: session.worth).close_server_session()

    def control_chassis(self, request: dict[str, Any], session: NodeSession) -> None:
        if request["data"]:
            super().control_chassis(request, session)
        else:
            session.send_ipmi_response(code=TOO_SHORT)

    def get_system_guid(self) -> uuid.UUID:
        return self.uuid

    def get_chassis_status(self, session: NodeSession) -> None:
        code, active = self._outcome(lambda: self._domains.active(self._system))
        session.send_ipmi_response(code=code, data=[] if code else [int(active), 0, 0])

    def power_on(self) -> int:
        return self._outcome(lambda: power.power_on(self._domains, self._system))[0]

    def power_cycle(self) -> int:
        return self._outcome(self._cycle)[0]

    # libvirt's own reset keeps the boot order that the VM was started with.
    power_reset = power_cycle

    def _cycle(self) -> None:
        if not self._domains.active(self._system):
            raise Declined(NOT_NOW)
        power.power_cycle(self._domains, self._system)

    def get_system_boot_options(self, request: dict[str, Any], session: NodeSession) -> None:
        code, data = self._outcome(lambda: self._boot_options(request["data"]))
        session.send_ipmi_response(code=code, data=data or [])

    def set_system_boot_options(self, request: dict[str, Any], session: NodeSession) -> None:
        if request["data"][:1] == bytes([BOOT_FLAGS]):
            code, _data = self._outcome(lambda: self._set_boot_flags(request["data"]))
            session.send_ipmi_response(code=code)
        else:
            super().set_system_boot_options(request, session)

    def _boot_options(self, data: bytearray) -> list[int]:
        if data[0] != BOOT_FLAGS:
            raise Declined(PARAMETER_UNKNOWN)
        root, live = self._domains.read_both(self._system)
        override = boot.get(root)
        flags = 0 if override.enabled == "Disabled" else VALID
        flags |= PERSISTENT if override.enabled == "Continuous" else 0
        flags |= EFI if firmware.mode(firmware.shown(root, live)) == "UEFI" else 0
        return [1, BOOT_FLAGS, flags, SELECTORS.get(override.target, 0) << 2, 0, 0, 0]

    def _set_boot_flags(self, data: bytearray) -> None:
        """The flag for EFI is not looked at: clients leave it out, and a VM's firmware stays what it is."""
        flags, target = data[1], TARGETS.get(data[2] >> 2 & 0b1111)
        if target is None:
            raise Declined(IPMI_INVALID_DATA)
        override = boot.NONE
        if target != "None" and flags & VALID:
            override = boot.Override(target, "Continuous" if flags & PERSISTENT else "Once")
        boot.set_override(self._domains, self._system, override)

    def _outcome(self, action: Callable[[], Any]) -> tuple[int, Any]:
        """The completion code and what the action has returned."""
        try:
            return 0, action()
        except Declined as declined:
            return declined.code, None
        except IndexError:
            return TOO_SHORT, None
        except (Refused, libvirt.libvirtError) as error:
            LOG.error("VM %s: %s", self._system, error)  # noqa: TRY400 - the text says it all
            return IPMI_COMMAND_NODE_BUSY, None


class Node:
    """A node's BMC at all its addresses."""

    def __init__(self, config: Config, node: Ipmi) -> None:
        self._node = node
        self._libvirt_uri = config.libvirt_uri
        self._domains = Domains(OneSystem(replace(config, systems=(System(node.uuid, node.name),))))
        Watch(self._domains).start()
        self._waiting = dict.fromkeys(node.addresses, "")
        """The addresses where it cannot listen (yet), and why."""

    def listen(self) -> None:
        """Serve for ever, a packet at a time: what comes faster waits in the socket's buffer, or is lost there."""
        with selectors.DefaultSelector() as selector:
            while True:
                self._open(selector)
                for key, _events in selector.select(RETRY_SECONDS if self._waiting else None):
                    with suppress(BlockingIOError):  # the kernel has found the packet to be damaged
                        key.data.take_packet()

    def _open(self, selector: selectors.BaseSelector) -> None:
        name, port = self._node.name, self._node.port
        for address, told in list(self._waiting.items()):
            try:
                bmc = NodeBmc(self._domains, self._node, address, self._libvirt_uri)
            except OSError as error:
                if str(error) != told:
                    LOG.warning("The BMC of %s cannot listen yet at %s port %s: %s", name, address, port, error)
                self._waiting[address] = str(error)
                continue
            del self._waiting[address]
            selector.register(bmc.serversocket, selectors.EVENT_READ, bmc)
            LOG.info("The BMC of %s listens at %s port %s", name, address, port)


def serve(config: Config, node: Ipmi) -> None:
    """Be the BMC of a node, for ever."""
    libvirt.registerErrorHandler(lambda *_: None, None)  # what goes wrong is logged where it matters
    Node(config, node).listen()
