# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Specifications as nobody would write them, and as somebody might."""

from __future__ import annotations

import copy
import datetime
import ipaddress
from typing import Any

import yaml
from hypothesis import strategies as st
from lab_reference import EXAMPLE

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import OneOrTwo
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import (
    ListOf,
    MapOf,
    Section,
    Text,
    ValueType,
    keys_of,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LAB_SPEC


class Wrapped(str):
    """As Ansible's tagged and unsafe strings are: text that is not quite text."""

    def __str__(self) -> str:
        return self

    def __repr__(self) -> str:
        return self


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**4000, -(10**30), 2**63, 190440, 4.2, float("nan"), float("inf"), -0.0]),
    st.text(max_size=20),
    st.text(max_size=8).map(Wrapped),
    st.sampled_from(
        ["\ud800", "192.168.126.5", "fd00::1", "::", "0.0.0.0/0", "1.2.3.4/33", "16GiB", "{{ x }}", "a" * 999]
    ),
    st.binary(max_size=4),
    st.dates(),
    st.just(datetime.datetime(2026, 11, 18, tzinfo=datetime.timezone.utc)),
    st.just(object()),
)
KEYS = st.one_of(
    st.text(max_size=6),
    st.sampled_from([key.name for key in keys_of(LAB_SPEC.declared)]),
    st.integers(),
    st.none(),
    st.booleans(),
    st.tuples(st.integers()),
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        st.tuples(inner),
        inner.map(lambda item: [[[item]]]),
    ),
    max_leaves=12,
)


def deep(levels: int) -> Any:
    value: Any = "end"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


SAMPLES: dict[str, Any] = {
    "address": ["192.168.126.5", "192.168.126.44", "192.168.126.1", "10.0.0.1", "fd2e:6f44:5dd8::5"],
    "network": ["10.0.0.0/19", "172.22.0.0/24", "192.168.126.0/24", "192.168.126.0/28"],
    "IPv4 network": ["192.168.126.0/24", "192.168.126.0/28", "10.0.0.0/16", "192.168.126.0/29"],
    "IPv6 network": ["fd2e:6f44:5dd8::/64", "fd2e:6f44:5dd8::/120"],
    "size": ["16GiB", "20GiB", "512MiB", "16GB"],
    "MAC address": ["52:54:00:00:00:01", "52:54:00:00:00:02", "53:00:00:00:00:01"],
    "MAC prefix": ["52:54:00", "52:54", "02:00:00"],
    "version": ["stable-4.20", "4.9.3", "4.11.1", "stable-5.0"],
    "name": ["ha", "worker-0", "control-plane-1", "api", "printer", "hypervisor"],
}


def written(value_type: ValueType) -> st.SearchStrategy[Any]:
    """Values that a type may accept, so that the rules behind it are reached in unusual combinations."""
    if isinstance(value_type, Section):
        keys = {key.name: st.one_of(written(key.value_type), st.none()) for key in keys_of(value_type.declared)}
        return st.fixed_dictionaries({}, optional=keys)
    if isinstance(value_type, ListOf):
        return st.lists(written(value_type.item), max_size=3)
    if isinstance(value_type, MapOf):
        return st.dictionaries(written(value_type.name), written(value_type.item), max_size=3)
    return _written_scalar(value_type)


def _written_scalar(value_type: ValueType) -> st.SearchStrategy[Any]:
    if isinstance(value_type, Choice):
        return st.sampled_from(value_type.options)
    if isinstance(value_type, Whole):
        return st.one_of(
            st.integers(value_type.low, min(value_type.high, value_type.low + 6)),
            st.sampled_from([value_type.high, 8000, 1500]),
        )
    if isinstance(value_type, YesNo):
        return st.booleans()
    if isinstance(value_type, OneOrTwo):
        single = st.sampled_from(SAMPLES["address"])
        return st.one_of(single, st.lists(single, max_size=3))
    if isinstance(value_type, Text):
        return st.sampled_from([*SAMPLES.get(value_type.label, []), value_type.example])
    return st.dictionaries(st.text(max_size=4), st.integers(), max_size=2)


WRITTEN = written(LAB_SPEC)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """The reference's example with something in it replaced, removed or added."""
    lab_spec = yaml.safe_load(EXAMPLE)["lab_spec"]
    for _round in range(draw(st.integers(1, 4))):
        _mutate(draw, lab_spec)
    return lab_spec


def _mutate(draw: st.DrawFn, value: Any) -> None:
    while value:
        key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        inner = value[key]
        if isinstance(inner, (dict, list)) and inner and draw(st.booleans()):
            value = inner
            continue
        if draw(st.booleans()):
            value[key] = draw(JUNK)
        elif isinstance(value, dict) and draw(st.booleans()):
            value[draw(KEYS)] = copy.deepcopy(inner)
        else:
            del value[key]
        return


@st.composite
def plausible(draw: st.DrawFn) -> dict[str, Any]:
    """Labs that people might want; most are accepted."""
    families = draw(st.sampled_from([("v4",), ("v6",), ("v4", "v6")]))
    nets = {"v4": draw(_network("10.20.0.0", 20, 27)), "v6": draw(_network("fd00:1::", 64, 121))}
    chosen = [nets[family] for family in families]
    nodes, names = draw(_nodes())
    machine: dict[str, Any] = {{"v4": "cidr", "v6": "cidr_v6"}[family]: str(nets[family]) for family in families}
    pins = iter(draw(st.lists(st.integers(7, 29), min_size=12, max_size=12, unique=True)))
    if draw(st.booleans()):
        machine["vips"] = {name: _pinned(chosen, next(pins)) for name in ("api", "ingress")}
    machine["reservations"] = [
        {"name": f"host-{number}", "mac": f"52:54:00:ff:00:0{number}", "ip": _pinned(chosen, next(pins))}
        for number in range(draw(st.integers(0, 2)))
    ]
    machine["topology"] = draw(st.sampled_from(["veth", "direct"]))
    bootstrap: dict[str, Any] = {"address": draw(st.sampled_from(["pool", "reserved", "static"]))}
    if bootstrap["address"] != "pool" and draw(st.booleans()):
        bootstrap["ip"] = _pinned(chosen[:1], next(pins))
    for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True)):
        nodes["overrides"][name] = {"ip": _pinned(chosen, next(pins))}
    return {
        "name": draw(st.from_regex(r"[a-z]([-a-z0-9]{0,30}[a-z0-9])?", fullmatch=True)),
        "machine_network": machine,
        "bootstrap": bootstrap,
        "nodes": nodes,
        **draw(_control()),
    }


@st.composite
def _network(draw: st.DrawFn, base: str, shortest: int, longest: int) -> Any:
    return ipaddress.ip_network(f"{base}/{draw(st.integers(shortest, longest))}")


def _pinned(networks: list[Any], offset: int) -> Any:
    both = [str(net[offset]) for net in networks]
    return both if len(both) > 1 else both[0]


@st.composite
def _nodes(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    nodes: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"control_plane": {"count": 3}},
                {"control_plane": {"count": 5}},
                {"control_plane": {"count": 2}, "arbiters": {"count": 1}},
                {"control_plane": {"count": 2, "fencing": True}},
                {"control_plane": {"count": 1}, "arbiters": {"count": 2}},
                {"control_plane": {"count": 0}},
            ]
        ).map(copy.deepcopy)
    )
    nodes["workers"] = {"count": draw(st.integers(0 if nodes["control_plane"]["count"] else 1, 9))}
    nodes["spares"] = {"count": draw(st.integers(0, 2))}
    nodes["overrides"] = {}
    named = {"control-plane": nodes["control_plane"]["count"], "worker": nodes["workers"]["count"]}
    role = next(role for role, count in named.items() if count)
    return nodes, [f"{role}-{number}" for number in range(named[role])]


def _control() -> st.SearchStrategy[dict[str, Any]]:
    virtual_media = st.fixed_dictionaries({"bmc": st.just({"protocol": "redfish-virtualmedia"})})
    pxe = st.fixed_dictionaries(
        {
            "bmc": st.fixed_dictionaries({"protocol": st.sampled_from(["redfish", "redfish-virtualmedia"])}),
            "provisioning_network": st.fixed_dictionaries({"mode": st.sampled_from(["managed", "unmanaged"])}),
        }
    )
    return st.one_of(virtual_media, pxe)
