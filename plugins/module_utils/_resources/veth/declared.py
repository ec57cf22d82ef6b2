# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A veth pair as module veth_pair is given it."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LARGEST_MTU, SMALLEST_MTU, USUAL_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import InvalidDataError, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Section, Text, called, key
from ansible_collections.nometal.ipi.plugins.module_utils._observe import wiring

NAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"


def _pair_name(value: str) -> str:
    if not re.fullmatch(NAME_PATTERN, value):
        raise ValueError(must_be("1 to 64 letters, digits, dots, hyphens and underscores", value))
    return value


NAME = Text("name", _pair_name, "nmn-demo")


@dataclass(frozen=True)
class Plug:
    name: str = key(types.INTERFACE, "Name of the end.", required=True)
    bridge: str | None = key(types.INTERFACE, "The bridge that it goes to.")
    make_bridge: bool = key(YesNo(), "Whether the bridge is made if it is missing.", default=False)


@dataclass(frozen=True)
class NodePlug(Plug):
    make_bridge: bool = key(YesNo(), "Whether the bridge is made if it is missing.", default=True)


@dataclass(frozen=True)
class Declared:
    name: str = key(NAME, "Name of the pair.", required=True)
    a: Plug = key(Section(Plug), "The end at a libvirt network's bridge.", required=True)
    b: NodePlug = key(Section(NodePlug), "The end at the bridge of the nodes.", required=True)
    owner: str | None = called("lab", key(types.CLUSTER_NAME, "The lab whose pair it is."), aliases=("owner",))
    mtu: int = key(Whole(SMALLEST_MTU, LARGEST_MTU), "MTU of both ends.", default=USUAL_MTU)
    shared: bool = key(YesNo(), "Whether others may be on the bridge of the nodes.", default=False)

    def __post_init__(self) -> None:
        named = {self.a.name: "a.name"}
        for at, name in (("a.bridge", self.a.bridge), ("b.name", self.b.name), ("b.bridge", self.b.bridge)):
            if name in named:
                loop = ", or the pair would be a loop" if (at, named[name]) == ("b.bridge", "a.bridge") else ""
                raise InvalidDataError(at, must_be(f"another name than {named[name]}{loop}", name))
            if name is not None:
                named[name] = at

    @property
    def wiring(self) -> wiring.Wiring:
        a, b = (wiring.Plug(at, **vars(plug)) for at, plug in (("a", self.a), ("b", self.b)))
        return wiring.Wiring(self.name, a, b, self.mtu, self.shared, self.owner or "")


@dataclass(frozen=True)
class Removed:
    """All pairs of a lab, to be gone."""

    owner: str = called(
        "lab", key(types.CLUSTER_NAME, "The lab whose pairs they are.", required=True), aliases=("owner",)
    )
