# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systems that there are for the account of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flask

from nometal_bmc.answers import not_found

if TYPE_CHECKING:
    from nometal_bmc.broker.client import Machines


class Systems:
    """The lab's VMs."""

    def __init__(self, domains: Machines) -> None:
        self._domains = domains

    @property
    def systems(self) -> list[str]:
        """Those that the account of this request may see."""
        return [uuid for uuid in self._domains.existing() if _visible(uuid)]

    def uuid(self, identity: str) -> str:
        if not _visible(identity):  # names have become UUIDs before they come here
            raise not_found(f"System {identity}")
        self._domains.active(identity)  # it is there, or that is refused
        return identity


def _visible(uuid: str) -> bool:
    own = flask.g.get("systems")
    return own is None or uuid in own
