# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about how many there are of each kind of node, and about the two that fence each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.keys import knows
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, entries, invalid
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.releases import (
    ARBITER_WITHOUT_PREVIEW,
    FENCING_WITHOUT_PREVIEW,
    PREVIEWS,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release, release_text

FEWEST, PAIR = 3, 2
FENCES = "controlPlane.fencing.credentials"
FENCED_BY = {"hostName": "name", "macAddress": "bootMACAddress"}
"""The key of a host that each key of a credential names."""


def problems(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    misread = [problem for path, name, pool in pools(config) for problem in _pool(path, name, pool)]
    yield from misread or _counts(config, release)
    if len(config["compute"]) > 1:
        yield invalid("compute", f"must have one pool {got(len(config['compute']))}")
    yield from _previews(config, release)
    yield from _fences(config, release)


def pools(config: dict[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Path, name and content of each pool."""
    yield "controlPlane", "master", config["controlPlane"]
    if "arbiter" in config:
        yield "arbiter", "arbiter", config["arbiter"]
    for number, pool in enumerate(config["compute"]):
        yield f"compute[{number}]", "worker", pool


def _pool(path: str, name: str, pool: Mapping[str, Any]) -> Iterator[Finding]:
    """Without replicas, as in a list that was replaced, the installer would use 3."""
    if pool.get("name") != name:
        yield invalid(f"{path}.name", must_be(name, pool.get("name")))
    replicas = pool.get("replicas")
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        yield invalid(f"{path}.replicas", must_be("a whole number", replicas))


def _counts(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    count, arbiters = config["controlPlane"]["replicas"], at(config, "arbiter.replicas") or 0
    pair = knows(release, "arbiter") and (arbiters == 1 or len(entries(config, FENCES)) == PAIR)
    if count < FEWEST and not (count == PAIR and pair):
        right = f"{FEWEST} or more, or {PAIR} with an arbiter or with two fencing credentials"
        yield invalid("controlPlane.replicas", must_be(right, count))
    elif arbiters and count != PAIR:
        right = f"0 with {count} control plane nodes: an arbiter is for exactly {PAIR}"
        yield invalid("arbiter.replicas", must_be(right, arbiters))


def _previews(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    own = config.get("featureSet")
    for what, is_used, since in (
        ("fencing", bool(entries(config, FENCES)), FENCING_WITHOUT_PREVIEW),
        ("an arbiter", "arbiter" in config and knows(release, "arbiter"), ARBITER_WITHOUT_PREVIEW),
    ):
        if is_used and release < since and own not in PREVIEWS:
            right = f"one of {', '.join(PREVIEWS)} with {what}, a technology preview in release {release_text(release)}"
            yield invalid("featureSet", must_be(right, own))


def _fences(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    credentials = entries(config, FENCES) if knows(release, "fencing", "pool") else []
    if credentials and len(credentials) != PAIR:
        yield invalid(FENCES, f"must have {PAIR} items, one for each control plane node {got(len(credentials))}")
    hosts = [host for host in entries(config, f"{PLATFORM}.hosts") if host.get("role") == "master"]
    keys = [key for key in FENCED_BY if knows(release, key, "fencingCredential")]
    for number, credential in enumerate(credentials):
        given = [key for key in keys if key in credential]
        key = given[0] if given else keys[0]
        if len(given) > 1:
            yield invalid(f"{FENCES}[{number}].{given[1]}", f"must not be used with {given[0]}: remove one of the two")
        if credential.get(key) not in [host.get(FENCED_BY[key]) for host in hosts if FENCED_BY[key] in host]:
            right = "the name of a control plane host" if key == "hostName" else "the boot MAC of a control plane host"
            yield invalid(f"{FENCES}[{number}].{key}", must_be(right, credential.get(key)))
        if not isinstance(credential.get("address"), str):
            yield invalid(f"{FENCES}[{number}].address", must_be("the address of its BMC", credential.get("address")))
