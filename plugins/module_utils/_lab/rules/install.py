# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for real installations only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, must_be, show_key
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import inside
from ansible_collections.nometal.ipi.plugins.module_utils._core.secrecy import is_secret_key, is_secret_text
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import RELEASE_PATTERN, size, size_text
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import declared
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import Node
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import OLDEST, release_text
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import capabilities as rules_capabilities
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress, Role

LEAST_MEMORY = {Role.CONTROL_PLANE: "8GiB"}
LEAST_MEMORY_OF_OTHERS = "4GiB"
LEAST_INSTALL_DISK = "20GiB"
LEAST_VCPUS = 2
PAIR = 2


def control_plane(lab: ParsedLab) -> Iterator[Finding]:
    """The installer's counts. Other installers have their own."""
    spec = lab.spec
    if spec.install is None:
        return
    count, arbiters = spec.nodes.control_plane.count, spec.nodes.arbiters.count
    if arbiters > 1:
        yield Finding("nodes.arbiters", "nodes.arbiters.count", must_be("0 or 1", arbiters))
    elif count < PAIR or (count == PAIR and not (arbiters or spec.nodes.control_plane.fencing)):
        right = "3 or more, or 2 with nodes.arbiters.count: 1 or nodes.control_plane.fencing: true"
        yield Finding("nodes.control-plane-count", "nodes.control_plane.count", must_be(right, count))
    elif count > PAIR and arbiters:
        text = must_be(f"0 with {count} control plane nodes: an arbiter is for exactly 2", arbiters)
        yield Finding("nodes.arbiter-unused", "nodes.arbiters.count", text)
    elif count > PAIR and spec.nodes.control_plane.fencing:
        text = must_be(f"false with {count} control plane nodes: fencing is for exactly 2", True)
        yield Finding("nodes.fencing-unused", "nodes.control_plane.fencing", text)
    elif arbiters and spec.nodes.control_plane.fencing:
        text = must_be("false with an arbiter: use one of the two", True)
        yield Finding("nodes.fencing-and-arbiter", "nodes.control_plane.fencing", text)


def releases(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    own = declared.release(spec)
    if own is None:
        return
    if own < OLDEST:
        text = must_be(f"{release_text(OLDEST)} or later", release_text(own))
        yield Finding("install.release-too-old", "install.version", text)
        return
    if spec.install and spec.install.distribution == "okd" and not spec.install.source:
        yield from _okd_channel(spec.install.version)
    for since, path, what in _features(spec):
        if own < since:
            needed = f"lab_spec.install.version must be {release_text(since)} or later"
            text = f"{what} not available in release {release_text(own)}: {needed}"
            yield Finding("install.not-in-release", path, text)


def _okd_channel(version: str) -> Iterator[Finding]:
    if not re.fullmatch(RELEASE_PATTERN, version):
        right = "a release of OKD, such as 4.20.0-okd-scos.10: channels need an install.source that has them"
        yield Finding("install.okd-channel", "install.version", must_be(right, version))


def _features(spec: LabSpec) -> Iterator[tuple[tuple[int, int], str, str]]:
    vips = spec.machine_network.vips
    if spec.nodes.arbiters.count:
        yield (4, 19), "nodes.arbiters.count", "an arbiter is"
    if spec.nodes.control_plane.fencing:
        yield (4, 19), "nodes.control_plane.fencing", "fencing is"
    if spec.bootstrap.address == BootstrapAddress.STATIC:
        yield (4, 11), "bootstrap.address", "a static address is"
    for name, item in (("api", vips.api), ("ingress", vips.ingress)):
        if item and len(item) > 1:
            yield declared.DUAL_STACK_VIPS_SINCE, f"machine_network.vips.{name}", "two addresses are"
    for name, override in spec.nodes.overrides.items():
        if override.network_config:
            yield (4, 10), f"nodes.overrides.{name}.network_config", "network configuration of nodes is"
    if spec.install and spec.install.capabilities:
        yield rules_capabilities.FIRST_SET, "install.capabilities", "a choice of capabilities is"
    if spec.install and spec.install.cpu_partitioning:
        yield (4, 13), "install.cpu_partitioning", "CPU partitioning is"


def capabilities(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    own, release = spec.install.capabilities if spec.install else None, declared.release(spec)
    if own is None or release is None or release < rules_capabilities.FIRST_SET:
        return
    for finding in rules_capabilities.problems(own.baseline, own.additional, release):
        yield replace(finding, subject=f"install.capabilities.{finding.subject}")


def proxy(lab: ParsedLab) -> Iterator[Finding]:
    own = lab.spec.install and lab.spec.install.proxy
    if own and not (own.http or own.https):
        yield Finding("install.no-proxy", "install.proxy", "must have http, https or both")


def fencing(lab: ParsedLab) -> Iterator[Finding]:
    """The nodes' fence agents need TLS; the rehearsal has none."""
    spec = lab.spec
    if spec.install and spec.nodes.control_plane.fencing and spec.bmc.tls is False:
        yield Finding("install.fencing-needs-tls", "bmc.tls", must_be("true: nodes fence each other by TLS", False))


def sizes(lab: ParsedLab) -> Iterator[Finding]:
    """Nodes as small as the rehearsal's would fail an hour into the installation."""
    spec = lab.spec
    if spec.install is None:
        return
    reported: set[str] = set()
    for node in lab.nodes:
        for problem in _too_small(node):
            if node.role != Role.SPARE and problem.subject not in reported:
                reported.add(problem.subject)
                yield problem


def _too_small(node: Node) -> Iterator[Finding]:
    memory, disk = LEAST_MEMORY.get(node.role, LEAST_MEMORY_OF_OTHERS), max(disk.size for disk in node.disks)
    why = f"for OpenShift on {node.name}"
    if node.memory < size(memory):
        yield Finding(
            "install.memory", _key(node, "memory"), must_be(f"{memory} or more {why}", size_text(node.memory))
        )
    if node.vcpus < LEAST_VCPUS:
        yield Finding("install.vcpus", _key(node, "vcpus"), must_be(f"{LEAST_VCPUS} or more {why}", node.vcpus))
    if disk < size(LEAST_INSTALL_DISK):
        text = f"must have one of {LEAST_INSTALL_DISK} or more {why} {got(size_text(disk))}"
        yield Finding("install.disk", _key(node, "disks"), text)


def _key(node: Node, name: str) -> str:
    overridden = getattr(node.override, name) is not None
    group = {Role.CONTROL_PLANE: "control_plane"}.get(node.role, f"{node.role}s")
    return f"{node.path}.{name}" if overridden else f"nodes.{group}.{name}"


def secrets(lab: ParsedLab) -> Iterator[Finding]:
    """The model may be pasted into a bug report, so it must not hold a secret."""
    spec = lab.spec
    if spec.install:
        yield from _secrets(asdict(spec.install), "install")
    for name, override in spec.nodes.overrides.items():
        yield from _secrets(override.network_config or {}, f"nodes.overrides.{name}.network_config")


def _secrets(value: Any, path: str) -> Iterator[Finding]:
    if isinstance(value, dict):
        for name, item in value.items():
            if is_secret_key(name):
                text = "must not be in lab_spec, which holds no secrets: use a vaulted variable"
                yield Finding("install.secret", inside(path, show_key(name)), text)
            else:
                yield from _secrets(item, inside(path, show_key(name)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _secrets(item, f"{path}[{index}]")
    elif isinstance(value, str) and is_secret_text(value):
        text = "must not contain a secret (a key or a password), since lab_spec holds none: use a vaulted variable"
        yield Finding("install.secret", path, text)
