# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installation leaves on its host, and its removal: complete also after one that was killed anywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import apparmor, bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import wipe as blank
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal.wipe import Nodes, Traces
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import (
    INSTALLS,
    KNOWN_OF_CLUSTER,
    KNOWN_OF_INSTALL,
    KNOWN_OF_RUNS,
    RUNS,
    Paths,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe import disk_users, infra
from ansible_collections.nometal.ipi.plugins.module_utils._observe.vm_users import things_of_labs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

BMC_HOME = Path("/var/lib/nometal/bmc")
LABS = Path("/var/lib/nometal/labs")
STOPPING_SECONDS = 120
LOOKS, SETTLE_SECONDS = 10, 0.5
"""What the cluster told its nodes' BMCs just before it was switched off may take a moment."""


@dataclass(frozen=True)
class Lab:
    """Whose installation it is, as the lab model has it."""

    paths: Paths
    bridges: Collection[str] = ()
    nodes: Sequence[Mapping[str, Any]] = ()
    """Those that are not named are left as they are."""
    bmc_home: Path = BMC_HOME


@dataclass(frozen=True)
class Leftovers:
    """Of the bootstrap VM."""

    domains: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """NVRAM that outlives its domain."""

    def __bool__(self) -> bool:
        return any((self.domains, self.pools, self.directories, self.logs, self.files))


@dataclass(frozen=True)
class Remains:
    """Of the whole installation."""

    running: bool
    leftovers: Leftovers
    nodes: tuple[Traces, ...]
    files: tuple[str, ...]
    apparmor_rule: bool = False


def names(connection: Any, paths: Paths, bridges: Collection[str] = ()) -> list[str]:
    """Of its bootstrap VM: by the installer's notes, or else by its name and the bridges into which it is plugged."""
    noted = infra.ids_of(paths)
    if noted or connection is None:
        return sorted(map(infra.bootstrap_of, noted))
    return _claim(paths, bridges).ours(bootstrap.all_named(connection))


def unproven(connection: Any, paths: Paths, bridges: Collection[str] = ()) -> list[str]:
    """What only has such a name, and stays, each with what is known of it."""
    if infra.ids_of(paths) or connection is None:
        return []
    labs = {*(path.name for parent in (INSTALLS, LABS) for path in _directories(parent)), *things_of_labs(connection)}
    rivals = infra.rivals_of(paths.lab, labs - {paths.lab})
    names_alike = _claim(paths, bridges).unproven(bootstrap.all_named(connection))
    return [infra.kept(name, paths.lab, rivals) for name in names_alike]


def _claim(paths: Paths, bridges: Collection[str]) -> infra.Claim:
    others = [Paths(path.name) for path in _directories(INSTALLS) if path.name != paths.lab]
    noted = frozenset(infra.bootstrap_of(known) for other in others for known in infra.ids_of(other))
    return infra.Claim(cluster=paths.lab, bridges=frozenset(bridges), others=noted)


def find(connection: Any, paths: Paths, bridges: Collection[str] = ()) -> Leftovers:
    own = names(connection, paths, bridges)
    return Leftovers(
        domains=tuple(name for name in bootstrap.domains(connection) if name in own),
        pools=tuple(name for name in bootstrap.pools(connection) if name in own),
        directories=tuple(map(str, bootstrap.directories(own))),
        logs=tuple(map(str, bootstrap.logs(own))),
        files=tuple(map(str, bootstrap.nvram(own))),
    )


def plan(current: Remains | None, _desired: None = None) -> Sequence[Step]:
    """What tells whose things are whose, the installer's notes, goes last."""
    if current is None:
        return []
    left = current.leftovers
    return [
        *([Step("stop", "installer")] if current.running else []),
        *(Step("undefine", name) for name in left.domains),
        *blank.plan(current.nodes),
        *(Step("undefine pool", name) for name in left.pools),
        *([Step("withdraw", "AppArmor rule")] if current.apparmor_rule else []),
        *(Step("remove", path) for path in (*left.files, *left.directories, *left.logs, *current.files)),
    ]


class RemovalPort:
    """One lab's installation on its host. Without a connection to libvirt, what is in files is all that there is."""

    def __init__(self, connection: Any, lab: Lab, *, records: bool = True) -> None:
        """Records: all that the host keeps of the installation, bundles included, not only what the installer made."""
        paths = lab.paths
        self._connection = connection
        self._lab = lab
        self._nodes = Nodes(connection, paths.lab, lab.nodes, lab.bmc_home)
        made = (paths.assets, paths.temporary, paths.output, paths.run)
        self._paths = (paths.directory, paths.events.parent) if records else made
        self._records = records
        self._was_running = False
        self._done: set[str] = set()
        self.bootstrap_vms: tuple[str, ...] = ()
        """What they are called, once it was read."""
        self.kept: list[str] = []
        """What was not the installation's and stays, each with the reason."""
        self.unproven: list[str] = []
        """And what only may be, once it was read."""

    def refuse_users(self) -> None:
        """Say, before anything is changed, who depends on disks that would be wiped or removed."""
        if not self._connection:  # then none is
            return
        boot = find(self._connection, self._lab.paths, self._lab.bridges)
        images = [
            str(file) for path in map(Path, boot.directories) if path != bootstrap.POOLS for file in path.glob("*")
        ]
        users = [*self._nodes.users(), *disk_users.told(self._connection, images, boot.domains)]
        if users:
            raise OperatorError(
                f"Nothing of the cluster of lab {self._lab.paths.lab} was removed, for others depend on its disks: "
                f"{'; '.join(users)}. Remove those first, or give them other disks."
            )

    def end_installer(self) -> None:
        """Until it has ended, it makes what is to be removed; so this comes before reading, except in check mode."""
        self._was_running = run.stop(self._lab.paths, seconds=STOPPING_SECONDS)

    def read(self) -> Remains:
        lab = self._lab
        left = find(self._connection, lab.paths, lab.bridges)
        self.bootstrap_vms = left.domains
        self.unproven = unproven(self._connection, lab.paths, lab.bridges)
        return Remains(
            running=self._was_running or run.read(lab.paths).running,
            leftovers=left,
            nodes=self._nodes.look() if self._connection else (),
            files=tuple(str(path) for path in self._paths if self._is_left(path)),
            apparmor_rule=self._records and apparmor.is_allowed(lab.paths),
        )

    def apply(self, step: Step) -> None:
        actions: dict[str, Callable[[str], None]] = {
            "stop": lambda _what: self.end_installer(),
            "undefine": self._undefine,
            "undefine pool": lambda name: bootstrap.remove_pool(self._connection, name),
            "withdraw": lambda _what: apparmor.withdraw(self._lab.paths),
            "remove": lambda path: self._remove(Path(path)),
            "switch off": self._nodes.switch_off,
            "blank": self._nodes.blank,
            "eject medium of": self._nodes.eject,
            "clear boot override of": self._nodes.clear_override,
            "rotate console of": self._nodes.rotate_console,
        }
        actions[step.verb](step.target)
        self._done.add(step.verb)

    def finish(self) -> None:
        """A cluster that was being switched off may have had a node switched on meanwhile."""
        for look in range(LOOKS if "switch off" in self._done else 0):
            wait.CLOCK.sleep(SETTLE_SECONDS)
            again = blank.plan(self._nodes.look())
            for step in again:
                self.apply(step)
            if not again:
                break
            if look == LOOKS - 1:
                raise OperatorError(
                    f"Something switches nodes of lab {self._lab.paths.lab} on again and again "
                    f"({', '.join(map(str, again))}): stop whatever manages them, then run this again."
                )
        files.remove(self._lab.paths.claimed)
        for directory in (RUNS, RUNS.parent) if "remove" in self._done else ():
            files.remove_empty(directory)

    def stays(self) -> list[str]:
        """What others have in the directories of the installation."""
        paths = self._lab.paths
        return [
            *removal.foreign(paths.directory, KNOWN_OF_INSTALL),
            *removal.foreign(paths.events.parent, KNOWN_OF_RUNS),
        ]

    def _is_left(self, path: Path) -> bool:
        paths = self._lab.paths
        if path == paths.directory:
            return paths.is_in_use
        known = {paths.events.parent: KNOWN_OF_RUNS, paths.assets: KNOWN_OF_CLUSTER}
        return removal.has_known(path, known[path]) if path in known else path.exists()

    def _undefine(self, name: str) -> None:
        """Without the installer's notes, its domain is all that says whose its other things are."""
        paths = self._lab.paths
        if not infra.ids_of(paths):
            ids = [bootstrap_vm[: -len(infra.SUFFIX)] for bootstrap_vm in self.bootstrap_vms]
            files.write_whole(paths.claimed, json.dumps({"infraIDs": ids}) + "\n", 0o600)
        bootstrap.remove_domain(self._connection, name)

    def _remove(self, path: Path) -> None:
        """The directory is the lock of who removes it, so that it goes last, empty."""
        paths = self._lab.paths
        if path == paths.directory:
            self.kept += removal.remove_entries(path, KNOWN_OF_INSTALL)
        elif path == paths.events.parent:
            self.kept += removal.remove_known(path, KNOWN_OF_RUNS)
        elif path == paths.assets:
            self.kept += removal.remove_known(path, KNOWN_OF_CLUSTER)
        else:
            self.kept += bootstrap.remove_path(path)


def remove(  # noqa: PLR0913 - few callers, and names say what is what
    connection: Any,
    paths: Paths,
    nodes: Sequence[Mapping[str, Any]] = (),
    bmc_home: Path = BMC_HOME,
    bridges: Collection[str] = (),
    *,
    records: bool = True,
) -> list[str]:
    """Returns what was done. Without records, bundles and what the next installation goes on with stay."""
    port = RemovalPort(connection, Lab(paths, bridges, nodes, bmc_home), records=records)
    port.refuse_users()
    port.end_installer()
    steps = plan(port.read())
    for step in steps:
        port.apply(step)
    port.finish()
    return [str(step) for step in steps]


def _directories(parent: Path) -> list[Path]:
    return [path for path in parent.iterdir() if path.is_dir()] if parent.is_dir() else []
