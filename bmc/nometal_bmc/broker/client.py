# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's VMs as the service has them: by the broker."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from nometal_bmc.answers import Refused, not_found, unavailable
from nometal_bmc.broker.operations import OPERATIONS
from nometal_bmc.broker.protocol import MOST_ANSWER_BYTES, Torn, receive, send
from nometal_bmc.machine.definition import parse, running
from nometal_bmc.machine.power import RESET_TYPES, SWITCH_ON_IF_OFF

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

    from nometal_bmc.config.settings import Config
    from nometal_bmc.machine.boot import BootWish

__all__ = ["Machines", "NewImage"]

WAIT_SECONDS = 5.0
"""How long a restart of the broker may take before requests are refused."""
MOST_IDLE = 32


class Current(Protocol):
    """Where the configuration is; it may be another one each time."""

    @property
    def config(self) -> Config: ...


class Broker:
    """Connections to it, each for one request at a time; unused ones are kept for the next."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._idle: list[socket.socket] = []
        self._gave_up = -WAIT_SECONDS

    def ask(self, name: str, **arguments: Any) -> Any:
        with self.connection() as connection:
            return converse(connection, name, arguments)[0]

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        """One that is alive. After a failure it is not used again."""
        connection, is_well = self._kept() or self._opened(), False
        try:
            yield connection
            is_well = True
        except Refused as refused:
            is_well = not isinstance(refused, NoAnswer)
            raise
        finally:
            if is_well:
                self._keep(connection)
            else:
                connection.close()

    def _keep(self, connection: socket.socket) -> None:
        if len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _kept(self) -> socket.socket | None:
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if not select.select([connection], [], [], 0)[0]:
                    return connection
                connection.close()  # the broker that it led to has ended
        return None

    def _opened(self) -> socket.socket:
        """Open one; those who come behind one who has waited in vain do not wait again."""
        deadline = time.monotonic() + WAIT_SECONDS
        patient = time.monotonic() - self._gave_up > WAIT_SECONDS
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(self._current.config.broker))
            except OSError as error:
                connection.close()
                if not patient or time.monotonic() > deadline:
                    self._gave_up = time.monotonic() if patient else self._gave_up
                    raise unavailable(f"The broker of the VMs does not answer: {error.strerror}.") from error
            else:
                return connection
            time.sleep(0.1)


class NoAnswer(Refused):
    """The broker has not answered; what becomes of the request is unknown."""

    def __init__(self, why: str) -> None:
        refusal = unavailable(why)
        super().__init__(refusal.status, refusal.message_id, refusal.message, headers=refusal.headers)


def converse(connection: socket.socket, name: str, arguments: dict[str, Any]) -> tuple[Any, int | None]:
    """One request; its result, and the file that came with it."""
    patience = OPERATIONS[name].seconds
    connection.settimeout(patience)
    try:
        send(connection, {"operation": name, "arguments": arguments})
        found = receive(connection, MOST_ANSWER_BYTES, files=True)
        if found is None:
            raise Torn("it has ended")
    except socket.timeout as error:
        text = f"The VM does not answer within {patience:.0f} seconds. ForceOff switches it off."
        raise NoAnswer(text) from error
    except OSError as error:
        raise NoAnswer(f"The broker of the VMs has not answered: {error}.") from error
    answer, descriptor = found
    if "refused" in answer:
        refusal = answer["refused"]
        raise Refused(
            refusal["status"],
            refusal["message_id"],
            refusal["message"],
            prop=refusal["prop"],
            headers=refusal["headers"],
        )
    return answer["result"], descriptor


class NewImage:
    """A file that is to become an image: gone unless it is kept."""

    def __init__(self, connection: socket.socket, descriptor: int) -> None:
        self._connection = connection
        self.descriptor = descriptor

    def keep(self, digest: str) -> None:
        """It is whole, and has this digest."""
        converse(self._connection, "keep_image", {"digest": digest})

    def close(self) -> None:
        os.close(self.descriptor)
        converse(self._connection, "drop_image", {})


class Machines:
    """The VMs that the configuration names; others do not exist."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._broker = Broker(current)
        self._locks: dict[str, threading.Lock] = {}

    @property
    def names(self) -> dict[str, str]:
        """The configured VMs: name by UUID."""
        return self._current.config.names

    def lock(self, uuid: str) -> threading.Lock:
        """What everyone here holds who decides by what others have asked of this VM."""
        return self._locks.setdefault(uuid, threading.Lock())

    def existing(self) -> list[str]:
        """Those that are there."""
        own = self.names
        return [uuid for uuid in self._broker.ask("existing") if uuid in own]

    def active(self, uuid: str) -> bool:
        return bool(self._ask("active", uuid))

    def read(self, uuid: str) -> etree._Element:
        """The persistent definition."""
        return parse(self._ask("definition", uuid)[0])

    def read_live(self, uuid: str) -> etree._Element | None:
        """What is running now, or None if the VM is off."""
        return running(self.read_present(uuid))

    def read_present(self, uuid: str) -> etree._Element:
        """What the machine is made of: of one that runs, without what waits for its next start."""
        return parse(self._ask("present", uuid)[0])

    def read_both(self, uuid: str) -> tuple[etree._Element, etree._Element | None]:
        """The persistent definition, and what is running now."""
        root, present = self._ask("definition_and_present", uuid)
        return parse(root), running(parse(present))

    def read_shown(self, uuid: str) -> tuple[etree._Element, etree._Element | None, bool, str]:
        """The same, whether what is running is paused, and the power restore policy."""
        root, present, paused, policy = self._ask("shown", uuid)
        return parse(root), running(parse(present)) if present else None, bool(paused), str(policy)

    def power_restore(self, uuid: str) -> str:
        """What becomes of it when the host has started: one of POWER_RESTORE."""
        return str(self._ask("power_restore", uuid))

    def set_power_restore(self, uuid: str, policy: str) -> None:
        self._ask("set_power_restore", uuid, policy=policy)

    def happenings(self, epoch: str | None, after: int) -> dict[str, Any]:
        """What has happened to the power of VMs after that: `epoch` and `last` to ask with again, and `events`."""
        found: dict[str, Any] = self._broker.ask("happenings", epoch=epoch, after=after)
        return found

    def capacities(self, uuid: str) -> dict[str, int | None]:
        """The sizes of its disks in bytes, by their names; None if one is not known."""
        found: dict[str, int | None] = self._ask("capacities", uuid)
        return found

    def reset(self, uuid: str, reset_type: str) -> None:
        """Do what a client asks for: one of RESET_TYPES."""
        on = reset_type in SWITCH_ON_IF_OFF and not self.active(uuid)
        self._ask("power_on" if on else RESET_TYPES[reset_type], uuid)

    def check_boot(self, uuid: str, wish: BootWish) -> dict[str, str | None]:
        """`target` and `http_uri` that would come of a wish, or why it is refused. Nothing is changed."""
        found: dict[str, str | None] = self._ask("check_boot", uuid, **vars(wish))
        return found

    def change_boot(self, uuid: str, wish: BootWish) -> None:
        self._ask("change_boot", uuid, **vars(wish))

    def set_secure_boot(self, uuid: str, wanted: bool) -> None:
        self._ask("set_secure_boot", uuid, wanted=wanted)

    def set_clock(self, uuid: str, zone: str | None, ahead: int | None) -> None:
        self._ask("set_clock", uuid, zone=zone, ahead=ahead)

    def set_verify(self, uuid: str, verify: bool) -> None:
        self._ask("set_verify", uuid, verify=verify)

    def insert(self, uuid: str, digest: str, url: str) -> None:
        self._ask("insert", uuid, digest=digest, url=url)

    def eject(self, uuid: str) -> None:
        self._ask("eject", uuid)

    @contextmanager
    def new_image(self) -> Iterator[NewImage]:
        with self._broker.connection() as connection:
            _result, descriptor = converse(connection, "begin_image", {})
            if descriptor is None:
                raise Refused(500, "InternalError", "The broker has sent no file.")
            with closing(NewImage(connection, descriptor)) as image:
                yield image

    def sweep_images(self, keep: list[str]) -> None:
        """Remove every image that no VM holds, but those with these digests."""
        self._broker.ask("sweep_images", keep=keep)

    def _ask(self, name: str, uuid: str, **arguments: Any) -> Any:
        if uuid not in self.names:
            raise not_found(f"System {uuid}")
        return self._broker.ask(name, uuid=uuid, **arguments)
