# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known on the host of a lab's installation, as far as it decides what there is to do."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._install import (
    bootstrap,
    decision,
    leftovers,
    log,
    run,
    story,
)
from ansible_collections.nometal.ipi.plugins.module_utils._install.facts import Facts
from ansible_collections.nometal.ipi.plugins.module_utils._install.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import NotThereYetError

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._install.place import Place
    from ansible_collections.nometal.ipi.plugins.module_utils._install.run import Run
    from ansible_collections.nometal.ipi.plugins.module_utils._install.story import Story

AFTER_INFRASTRUCTURE = {Stage.API, Stage.BOOTSTRAP, Stage.ETCD}
"""The control plane's stage is not one of them: up to 4.15, Terraform provisions it."""
RELEASE = re.compile(r"(\d+)\.(\d+)\.")


@dataclass(frozen=True)
class Wanted:
    """What the operator asks for."""

    cluster: str
    bridges: tuple[str, ...]
    version: str
    config_digest: str
    restart: bool
    libvirt_uri: str


def look(place: Place, wanted: Wanted) -> Facts:
    last = run.read(place)
    facts = _facts(place, last, _story(place), wanted)
    if not wanted.restart and decision.decide(facts).kind in (decision.ATTACH, decision.DONE):
        return facts  # whatever libvirt would say
    try:
        there, running = _bootstrap(place, wanted)
    except NotThereYetError:
        if facts.infrastructure:
            raise
        return facts
    return replace(facts, bootstrap_there=there, bootstrap_running=running)


def release_of(version: str) -> tuple[int, int] | None:
    found = RELEASE.match(version)
    return (int(found[1]), int(found[2])) if found else None


def _facts(place: Place, last: Run, told: Story, wanted: Wanted) -> Facts:
    stages = {span.stage for span in told.spans}
    return Facts(
        restart=wanted.restart,
        ran=last.there,
        running=last.running,
        orphan=last.orphan,
        commands=last.commands,
        current=last.current,
        exit_code=last.exit_code,
        signal=last.signal,
        rebooted=last.there and last.boot_id != run.boot_id(),
        infrastructure=Stage.INFRASTRUCTURE in stages,
        waiting=bool(stages & AFTER_INFRASTRUCTURE),
        bootstrapped=told.bootstrap_complete,
        bootstrap_destroyed=told.bootstrap_destroyed,
        complete=told.complete,
        has_metadata=place.metadata.exists(),
        release=release_of(last.version),
        config_changed=bool(last.config_digest) and last.config_digest != wanted.config_digest,
        version=last.version,
        version_wanted=wanted.version if release_of(wanted.version) else "",
    )


def _story(place: Place) -> Story:
    with suppress(FileNotFoundError):
        return story.told(log.entries(place.log.read_text(encoding="utf-8", errors="replace")))
    return story.told(())


def _bootstrap(place: Place, wanted: Wanted) -> tuple[bool, bool]:
    """Whether the bootstrap VM is there, and whether it runs."""
    with connect(wanted.libvirt_uri) as connection:
        names = leftovers.names(connection, place, wanted.cluster, wanted.bridges)
        there = set(names) & set(bootstrap.domains(connection))
        return bool(there), any(connection.lookupByName(name).isActive() for name in there)
