# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VMs are on, and their power restore policies, in a file that survives a power cut of the host."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Protocol

from nometal_bmc.config.settings import ALWAYS_OFF, ALWAYS_ON, POWER_RESTORE
from nometal_bmc.files import OWNER_ONLY, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nometal_bmc.config.settings import BrokerConfig

__all__ = ["SETTLED_SECONDS", "PowerStates", "boot_id"]

LOG = logging.getLogger(__name__)
FILE = "power.json"
SETTLED_SECONDS = 5.0
"""An end of a VM counts so long after it, unless the BMC was asked for it: a host that shuts down ends its VMs and this
process at once, and those VMs are to be on again."""
ASKED_SECONDS = 600.0
"""So long after the BMC was asked to shut a VM down, its end is taken for what comes of that."""


class Current(Protocol):
    """Where the configuration is; it may be another one each time."""

    @property
    def config(self) -> BrokerConfig: ...


def boot_id() -> str:
    """Another one after each start of the host. systemd gives it, as its confinement hides the kernel's file."""
    given = os.environ.get("HOST_BOOT_ID") or Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    return given.strip().replace("-", "")


class PowerStates:
    """Of the lab's VMs, by their UUIDs. Threads come in at once."""

    def __init__(
        self, current: Current, boot: Callable[[], str] = boot_id, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._current = current
        self._clock = clock
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._ended: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        known = self._load()
        self._policies: dict[str, dict[str, str]] = known["policies"]
        self._on, self._restoring = set(known["on"]), set(known["restoring"])
        self._boot = boot()
        if known["boot"] not in ("", self._boot):
            self._restoring = {uuid for uuid in self._current.config.names if self._is_to_be_on(uuid)}
            self._on = set()
        self._changes, self._written = 1, 0

    def policy(self, uuid: str) -> str:
        """One of POWER_RESTORE: what a client has set, until the configuration says something else than it did then."""
        told = self._current.config.power_restore
        change = self._policies.get(uuid, {})
        return change["policy"] if change.get("replaces") == told else told

    def set_policy(self, uuid: str, policy: str) -> None:
        with self._lock:
            self._policies[uuid] = {"policy": policy, "replaces": self._current.config.power_restore}
            self._changes += 1
        self.save()

    def restoring(self) -> list[str]:
        """Those that are still to be switched on after the host's start, in the configuration's order."""
        return [uuid for uuid in self._current.config.names if uuid in self._restoring]

    def is_restoring(self, uuid: str) -> bool:
        return uuid in self._restoring

    def cancel_restoring(self, uuid: str) -> None:
        """It is to stay off; `save` is left to the caller."""
        with self._lock:
            self._discard(self._restoring, uuid)

    def started(self, uuid: str) -> None:
        """It is on; `save` is left to the caller."""
        with self._lock:
            self._forget(uuid)
            self._discard(self._restoring, uuid)
            if uuid not in self._on:
                self._on.add(uuid)
                self._changes += 1

    def asked_to_end(self, uuid: str) -> None:
        """The BMC was asked to shut it down, which it may do, and when it likes."""
        with self._lock:
            self._asked[uuid] = self._clock()

    def ended(self, uuid: str) -> None:
        """It is off: since the BMC was asked for that, or for reasons that are not known. `settle` keeps it."""
        with self._lock:
            asked = self._asked.pop(uuid, None)
            if asked is not None and self._clock() - asked < ASKED_SECONDS:
                self._discard(self._on, uuid)
            elif uuid in self._on:
                self._ended.setdefault(uuid, self._clock())

    def switched_off(self, uuid: str) -> None:
        """It is off, as it was to be; `save` is left to the caller."""
        with self._lock:
            self._forget(uuid)
            self._discard(self._restoring, uuid)
            self._discard(self._on, uuid)

    def settle(self) -> None:
        """Keep what has changed, with the ends of which enough time has passed. To be called often."""
        now = self._clock()
        with self._lock:
            for uuid in [uuid for uuid, since in self._ended.items() if now - since >= SETTLED_SECONDS]:
                del self._ended[uuid]
                self._discard(self._on, uuid)
        self.save()

    def save(self) -> None:
        """Return when all that has changed is on the disk; who comes meanwhile is served by the next writing."""
        mine = self._changes
        if self._written >= mine:
            return
        with self._writing:
            if self._written < mine:
                self._write()

    def _write(self) -> None:
        with self._lock:
            mine = self._changes
            told = {
                "boot": self._boot,
                "on": self._of_lab(self._on),
                "restoring": self._of_lab(self._restoring),
                "policies": {uuid: self._policies[uuid] for uuid in self._of_lab(self._policies)},
            }
        try:
            write_whole(self._file, json.dumps(told, indent=2).encode(), OWNER_ONLY)
        except OSError as error:  # a disk that is full keeps nobody from switching VMs
            LOG.warning("Which VMs are on cannot be kept for the next start of the host: %s", error)
        self._written = mine

    def _forget(self, uuid: str) -> None:
        self._ended.pop(uuid, None)
        self._asked.pop(uuid, None)

    def _discard(self, uuids: set[str], uuid: str) -> None:
        if uuid in uuids:
            uuids.discard(uuid)
            self._changes += 1

    def _of_lab(self, uuids: set[str] | Mapping[str, Any]) -> list[str]:
        return [uuid for uuid in self._current.config.names if uuid in uuids]

    def _is_to_be_on(self, uuid: str) -> bool:
        policy = self.policy(uuid)
        return policy == ALWAYS_ON or (policy != ALWAYS_OFF and uuid in self._on | self._restoring)

    @property
    def _file(self) -> Path:
        return self._current.config.socket.with_name(FILE)

    def _load(self) -> dict[str, Any]:
        try:
            return _sound(json.loads(self._file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            LOG.warning("%s cannot be read, so all VMs count as off before: %r", self._file, error)
        return {"boot": "", "on": [], "restoring": [], "policies": {}}


def _sound(found: dict[str, Any]) -> dict[str, Any]:
    """Without policies of another release."""
    policies = {uuid: change for uuid, change in found["policies"].items() if change["policy"] in POWER_RESTORE}
    return {
        "boot": str(found["boot"]),
        "on": set(found["on"]),
        "restoring": set(found["restoring"]),
        "policies": policies,
    }
