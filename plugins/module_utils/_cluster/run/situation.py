# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known on the host of a lab's installation, as far as it decides what there is to do."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import log
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import progress_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import bootstrap, leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal.wipe import Nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import decision, run
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.facts import Facts
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import release_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.run import Run
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

AFTER_INFRASTRUCTURE = {Stage.API, Stage.BOOTSTRAP, Stage.ETCD}
"""The control plane's stage is not one of them: up to 4.15, Terraform provisions it."""


@dataclass(frozen=True)
class Wanted:
    """What the operator asks for."""

    bridges: tuple[str, ...]
    nodes: Sequence[Mapping[str, Any]]
    bmc_home: Path
    version: str
    """A release or a channel; empty if any will do."""
    config_digest: str
    restart: bool
    libvirt_uri: str


def look(paths: Paths, wanted: Wanted) -> Facts:
    last = run.read(paths)
    facts = _facts(paths, last, _progress_of(paths), wanted)
    if decision.decide(facts).kind in (decision.ATTACH, decision.DONE):
        return facts  # whatever libvirt would say
    try:
        with connect(wanted.libvirt_uri) as connection:
            there, running = _bootstrap(connection, paths, wanted)
            facts = replace(facts, bootstrap_there=there, bootstrap_running=running)
            if decision.decide(facts).kind == decision.FRESH and not wanted.restart:
                facts = replace(facts, nodes_in_use=_in_use(connection, paths, wanted))
    except NotThereYetError:
        if facts.infrastructure:
            raise
    return facts


def is_other(version: str, wanted: str) -> bool:
    """Whether it is surely not what is asked for: within its minor release, a channel may have any."""
    if tools_release.is_channel(wanted):
        release = release_of(version)
        return bool(release) and release != tools_release.numbers(wanted)
    is_build = bool(tools_release.BUILD.fullmatch(version)) and tools_release.is_release(wanted)
    return bool(version and wanted) and version != wanted and not is_build


def _facts(paths: Paths, last: Run, told: Progress, wanted: Wanted) -> Facts:
    stages = {span.stage for span in told.spans}
    return Facts(
        restart=wanted.restart,
        ran=last.there,
        running=last.running,
        orphan=last.running and run.is_orphan(paths),
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
        has_metadata=paths.metadata.exists(),
        release=release_of(last.version),
        config_changed=bool(last.config_digest) and last.config_digest != wanted.config_digest,
        version=last.version,
        other_version=wanted.version if is_other(last.version, wanted.version) else "",
    )


def _progress_of(paths: Paths) -> Progress:
    with suppress(FileNotFoundError):
        return progress_of(log.entries(paths.log.read_text(encoding="utf-8", errors="replace")))
    return progress_of(())


def _bootstrap(connection: Any, paths: Paths, wanted: Wanted) -> tuple[bool, bool]:
    """Whether the bootstrap VM is there, and whether it runs."""
    names = leftovers.names(connection, paths, wanted.bridges)
    there = set(names) & set(bootstrap.domains(connection))
    return bool(there), any(connection.lookupByName(name).isActive() for name in there)


def _in_use(connection: Any, paths: Paths, wanted: Wanted) -> tuple[str, ...]:
    own = [node for node in wanted.nodes if node.get("installer", True)]
    found = Nodes(connection, paths.lab, own, wanted.bmc_home).look()
    return tuple(node.vm_name for node in found if node.running or node.written)
