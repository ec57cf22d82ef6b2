"""What every controller is given: the store, the clock, the release, and the machines that it is all about."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol

from support.stand_in.bmc import Bmc
from support.stand_in.controllers import objects
from support.stand_in.controllers.objects import Object
from support.stand_in.kubernetes.errors import NotFound
from support.stand_in.kubernetes.store import Store
from support.stand_in.release import Release


@dataclass(frozen=True)
class Access:
    """How a BMC is reached, and by whom."""

    address: str
    username: str = field(repr=False)
    password: str = field(repr=False)
    verify: bool = True
    authority: str = ""
    """In PEM; empty for what the system trusts."""


class Machinery(Protocol):
    """The machines themselves, by the MAC address that they boot with. What is not there raises BmcFailed."""

    def bmc(self, access: Access) -> Bmc: ...

    def medium(self, host: str) -> str:
        """Where the image is that this host is inspected and written to from."""

    def hardware(self, mac: str, host: str, network: str) -> Object:
        """What a system that has booted there finds; `network` is its nmstate configuration."""

    def write(self, mac: str, hints: Object) -> None:
        """The system, to the disk, while it is off."""

    def wipe(self, mac: str) -> None:
        """The disks, while it is off."""

    def runs(self, mac: str) -> bool:
        """Whether it is on, with the system that was written."""


@dataclass
class Cluster:
    store: Store
    machinery: Machinery
    infra_id: str
    release: Release
    clock: Callable[[], float] = time.time
    step: Callable[[], float] = lambda: 0.2
    """Seconds of the scenario's step; about a minute of a real cluster."""
    poll: Callable[[], float] = lambda: 0
    """Seconds between two looks at the power of a host that nobody has changed."""

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        with suppress(NotFound):
            found: Object = self.store.get(kind, name, namespace)
            return found
        return None

    def change(
        self, kind: str, item: Object, function: Callable[[Object], Any], manager: str, *, subresource: str = ""
    ) -> bool:
        """By a function that changes what it is given. Whether it is still there."""

        def changed(current: Object) -> Object:
            function(current)
            return current

        with suppress(NotFound):
            place = (objects.name(item), objects.namespace(item))
            self.store.change(kind, *place, changed, subresource=subresource, manager=manager)
            return True
        return False

    def tell(self, about: Object, reason: str, message: str, source: str, *, warning: bool = False) -> None:
        """By an Event."""
        new = objects.event(about, self.clock(), reason, message, source=source, warning=warning)
        self.store.create(objects.EVENTS, new, manager=source)

    def is_at_least(self, major: int, minor: int) -> bool:
        return self.release >= (major, minor)
