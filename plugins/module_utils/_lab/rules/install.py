# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that only a real installation has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import show_key
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problem, inside
from ansible_collections.nometal.ipi.plugins.module_utils._core.secrecy import is_secret_key, is_secret_text
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import RELEASE_PATTERN, size
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import pinned
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.draft import Draft
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.roster import CONTROL_PLANE, SPARE, Node
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec

OLDEST = (4, 9)
LEAST_MEMORY = {CONTROL_PLANE: "8GiB"}
LEAST_MEMORY_OF_OTHERS = "4GiB"
LEAST_DISK = "20GiB"
LEAST_VCPUS = 2

FIRST_BASELINE = (4, 11)
INDISPENSABLE = (("baremetal", (4, 11)), ("MachineAPI", (4, 14)), ("Ingress", (4, 16)))
"""Capabilities that this kind of installation is made with, and since when they can be left out at all."""


def releases(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    own = pinned.release(spec)
    if own is None:
        return
    if own < OLDEST:
        yield Problem("install.version", f"is {_text(own)}; {_text(OLDEST)} or later is right")
        return
    if spec.install and spec.install.distribution == "okd" and not spec.install.source:
        yield from _no_channel_of_okd(spec.install.version)
    for since, path, what in _wants(spec):
        if own < since:
            right = f"lab_spec.install.version of {_text(since)} or later is right"
            yield Problem(path, f"{what}, which {_text(own)} cannot; {right}")


def _no_channel_of_okd(version: str) -> Iterator[Problem]:
    if not re.fullmatch(RELEASE_PATTERN, version):
        right = "a release such as 4.20.0-okd-scos.10 is right, or a source that has channels"
        yield Problem("install.version", f"is {version}, a channel, and OKD's releases page has none; {right}")


def _wants(spec: LabSpec) -> Iterator[tuple[tuple[int, int], str, str]]:
    vips = spec.machine_network.vips
    if spec.nodes.arbiters.count:
        yield (4, 20), "nodes.arbiters.count", "asks for an arbiter"
    if spec.nodes.control_plane.fencing:
        yield (4, 20), "nodes.control_plane.fencing", "asks for fencing"
    if spec.bootstrap.address == "static":
        yield (4, 11), "bootstrap.address", "is static"
    for name, item in (("api", vips.api), ("ingress", vips.ingress)):
        if item and len(item) > 1:
            yield pinned.DUAL_STACK_VIPS_SINCE, f"machine_network.vips.{name}", "has two addresses"
    for name, override in spec.nodes.overrides.items():
        if override.network_config:
            yield (4, 10), f"nodes.overrides.{name}.network_config", "configures the node's network"
    if spec.install and spec.install.capabilities:
        yield FIRST_BASELINE, "install.capabilities", "chooses capabilities"
    if spec.install and spec.install.cpu_partitioning:
        yield (4, 13), "install.cpu_partitioning", "asks for CPU partitioning"


def capabilities(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    own, release = spec.install.capabilities if spec.install else None, pinned.release(spec)
    if own is None or release is None or release < FIRST_BASELINE:
        return
    named = re.fullmatch(r"v([0-9]+)\.([0-9]+)", own.baseline)
    if named and not FIRST_BASELINE <= (int(named[1]), int(named[2])) <= release:
        right = f"None, vCurrent, or v{_text(FIRST_BASELINE)} to v{_text(release)} is right"
        yield Problem("install.capabilities.baseline", f"is {own.baseline}, which {_text(release)} has not; {right}")
    lacking = [name for name, since in INDISPENSABLE if since <= release and name not in own.additional]
    if own.baseline == "None" and lacking:
        wrong = f"lacks {', '.join(lacking)}, which the installation cannot do without"
        yield Problem("install.capabilities.additional", f"{wrong}; add it, or take another baseline than None")


def proxy(lab: Draft) -> Iterator[Problem]:
    own = lab.spec.install and lab.spec.install.proxy
    if own and not (own.http or own.https):
        yield Problem("install.proxy", "names no proxy; http or https is right, or both")


def fencing(lab: Draft) -> Iterator[Problem]:
    """The nodes' fence agents speak nothing but TLS; the rehearsal does without them."""
    spec = lab.spec
    if spec.install and spec.nodes.control_plane.fencing and spec.bmc.tls is False:
        yield Problem("bmc.tls", "is false, and nodes fence each other by TLS; true is right")


def sizes(lab: Draft) -> Iterator[Problem]:
    """Refuse what cannot work: the rehearsal's tiny nodes would fail an hour into the installation."""
    spec = lab.spec
    if spec.install is None:
        return
    reported: set[str] = set()
    for node in lab.nodes:
        for problem in _too_small(node):
            if node.role != SPARE and problem.path not in reported:
                reported.add(problem.path)
                yield problem


def _too_small(node: Node) -> Iterator[Problem]:
    memory = LEAST_MEMORY.get(node.role, LEAST_MEMORY_OF_OTHERS)
    why = f"too little for OpenShift on {node.name}"
    if node.memory < size(memory):
        yield Problem(_key(node, "memory"), f"is {why}; {memory} or more is right")
    if node.vcpus < LEAST_VCPUS:
        yield Problem(_key(node, "vcpus"), f"is {why}; {LEAST_VCPUS} or more are right")
    if max(disk.size for disk in node.disks) < size(LEAST_DISK):
        yield Problem(_key(node, "disks"), f"is {why}; a disk of {LEAST_DISK} or more is right")


def _key(node: Node, name: str) -> str:
    overridden = getattr(node.override, name) is not None
    group = {CONTROL_PLANE: "control_plane"}.get(node.role, f"{node.role}s")
    return f"{node.path}.{name}" if overridden else f"nodes.{group}.{name}"


def secrets(lab: Draft) -> Iterator[Problem]:
    """The model can be pasted into a bug report, so nothing secret may enter it."""
    spec = lab.spec
    if spec.install:
        yield from _secrets(asdict(spec.install), "install")
    for name, override in spec.nodes.overrides.items():
        yield from _secrets(override.network_config or {}, f"nodes.overrides.{name}.network_config")


def _secrets(value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, dict):
        for name, item in value.items():
            if is_secret_key(name):
                yield Problem(
                    inside(path, show_key(name)), "is a secret, and lab_spec holds none; give it by a vaulted variable"
                )
            else:
                yield from _secrets(item, inside(path, show_key(name)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _secrets(item, f"{path}[{index}]")
    elif isinstance(value, str) and is_secret_text(value):
        yield Problem(
            path, "holds a secret (a key or a password), and lab_spec holds none; a vaulted variable is right"
        )


def _text(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]}"
