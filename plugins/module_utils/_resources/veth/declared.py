# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a veth pair by itself, on whatever host."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import (
    LARGEST_MTU,
    SMALLEST_MTU,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import interface_name, is_lab_name
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import Plug, Wiring

if TYPE_CHECKING:
    from collections.abc import Iterator


PAIR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def wiring_from(params: dict[str, Any]) -> Wiring:
    wiring = Wiring(
        name=params["name"],
        a=Plug(key="a", **params["a"]),
        b=Plug(key="b", **params["b"]),
        mtu=params["mtu"],
        shared=params["shared"],
        owner=params.get("owner") or "",
    )
    refuse_nonsense(wiring)
    return wiring


def refuse_bad_owner(owner: str | None) -> None:
    if owner is not None and not is_lab_name(owner):
        raise OperatorError(f"owner: {owner!r} is not the name of a lab: lower case letters, digits, inner hyphens.")


def refuse_nonsense(wiring: Wiring) -> None:
    """What is wrong by itself, on whatever host."""
    if not PAIR_NAME.fullmatch(wiring.name):
        raise OperatorError(
            f"name: {wiring.name!r} is no name for a pair: letters, digits, dot, hyphen and underscore, 64 at most."
        )
    if not SMALLEST_MTU <= wiring.mtu <= LARGEST_MTU:
        raise OperatorError(f"mtu: {wiring.mtu} is not between {SMALLEST_MTU} and {LARGEST_MTU}.")
    named: dict[str, str] = {}
    for key, name in _keys_and_names(wiring):
        _refuse_bad_name(key, name)
        if name in named:
            loop = key == "b.bridge" and named[name] == "a.bridge"
            remedy = (
                ": that would be a loop. Choose another bridge for one of them." if loop else ". Choose another name."
            )
            raise OperatorError(f"{key}: {name} is the same as {named[name]}{remedy}")
        named[name] = key


def _keys_and_names(wiring: Wiring) -> Iterator[tuple[str, str]]:
    for plug in wiring.plugs:
        yield f"{plug.key}.name", plug.name
        if plug.bridge is not None:
            yield f"{plug.key}.bridge", plug.bridge


def _refuse_bad_name(key: str, name: str) -> None:
    try:
        interface_name(name)
    except ValueError as error:
        raise OperatorError(f"{key}: {error}.") from error
