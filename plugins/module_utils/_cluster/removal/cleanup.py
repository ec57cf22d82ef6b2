# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of a cluster, and of what nothing uses any more after an installation that has succeeded; and secrets."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import bootstrap, leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import prepare
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run as installer_run
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import INSTALLS, POOLS, Paths, paths_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe import labs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect, connect_if_there

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class Dangling:
    """Pools of bootstrap VMs that are gone, and what lies there without a use."""

    pools: tuple[str, ...]
    paths: tuple[str, ...]


def plan(current: Dangling | None, _desired: None = None) -> Sequence[Step]:
    if current is None:
        return []
    # A pool goes last: as long as it is there, the next run can tell what is still to be removed.
    return [
        *(Step("remove", path) for path in current.paths),
        *(Step("undefine pool", name) for name in current.pools),
    ]


class TidyingPort:
    def __init__(self, connection: Any, lab: leftovers.Lab) -> None:
        self._connection = connection
        self._lab = lab

    def read(self) -> Dangling:
        lab = self._lab
        if installer_run.read(lab.paths).running:
            return Dangling((), ())
        names = leftovers.names(self._connection, lab.paths, lab.bridges)
        pools = [name for name in names if bootstrap.is_dangling(self._connection, name)]
        paths = [path for path in bootstrap.directories(pools) if path != POOLS or pools]
        temporary = [lab.paths.temporary] if lab.paths.temporary.exists() else []
        return Dangling(tuple(pools), tuple(map(str, [*paths, *temporary])))

    def apply(self, step: Step) -> None:
        if step.verb == "remove":
            bootstrap.remove_path(Path(step.target))
        else:
            bootstrap.remove_pool(self._connection, step.target)


class Tidying(Resource["Dangling | None", TidyingPort]):
    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        self._lab = _lab_from(params)

    def desired(self) -> None:
        """None of it."""

    @contextmanager
    def open(self) -> Iterator[TidyingPort]:
        paths = self._lab.paths
        with _connected(paths, self.params["libvirt_uri"]) as connection, _alone(paths, check_mode=self.check_mode):
            yield TidyingPort(connection, self._lab)

    def plan(self, current: Dangling | None, _desired: Dangling | None) -> Sequence[Step]:
        return plan(current)

    def result(self) -> dict[str, Any]:
        return {"vms": [], "kept": []}


class Removal(Resource["leftovers.Remains | None", leftovers.RemovalPort]):
    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        self._lab = _lab_from(params)
        self._vms: list[str] = []
        self._kept: list[str] = []

    def desired(self) -> None:
        """None of it."""

    @contextmanager
    def open(self) -> Iterator[leftovers.RemovalPort]:
        connected = connect_if_there(self.params["libvirt_uri"], self._refuse_without_libvirt)
        with connected as connection, _alone(self._lab.paths, check_mode=self.check_mode):
            port = leftovers.RemovalPort(connection, self._lab)
            port.refuse_users()
            if not self.check_mode:
                port.end_installer()
            yield port
            port.finish()
            self._vms = list(port.bootstrap_vms)
            self._kept = [*(port.kept or port.stays()), *port.unproven]

    def _refuse_without_libvirt(self, error: NotThereYetError) -> None:
        """Unless libvirt has nothing of the cluster's, by its own files: then files are all."""
        paths = self._lab.paths
        if not (paths.directory.exists() or paths.events.parent.exists()):
            raise error
        left = labs.bootstraps_left(paths.lab)
        if left or not self.params["keep_nodes"]:
            what = f"{', '.join(left)} of the cluster" if left else "the nodes"
            raise OperatorError(
                f"{error} Nothing was removed: {what} can be removed by libvirt only, and {paths.directory} tells "
                "what of libvirt's belongs to the cluster."
            ) from error

    def plan(self, current: leftovers.Remains | None, _desired: leftovers.Remains | None) -> Sequence[Step]:
        return leftovers.plan(current)

    def result(self) -> dict[str, Any]:
        return {"vms": self._vms, "kept": self._kept}

    def warnings(self) -> list[str]:
        return removal.warnings(self._kept)


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    resources: dict[str, type[Resource[Any, Any]]] = {"absent": Removal, "tidied": Tidying}
    try:
        return resources[params["state"]].run(params, check_mode=check_mode)
    except NotThereYetError:  # nor was anything ever installed
        return {"changed": False, "steps": [], "diff": {"before": "", "after": ""}, "vms": [], "kept": []}


def _lab_from(params: dict[str, Any]) -> leftovers.Lab:
    return leftovers.Lab(
        paths=paths_of(params["lab"]),
        bridges=params["bridges"],
        nodes=[] if params["keep_nodes"] else params["nodes"],
        bmc_home=Path(params["bmc_home"]),
    )


@contextmanager
def _alone(paths: Paths, *, check_mode: bool) -> Iterator[None]:
    """No installation of this lab begins meanwhile."""
    if check_mode:
        yield
        return
    try:
        with prepare.alone(paths):
            yield
    finally:
        for directory in (INSTALLS, INSTALLS.parent):
            files.remove_empty(directory)


@contextmanager
def _connected(paths: Paths, uri: str) -> Iterator[Any]:
    try:
        with connect(uri) as connection:
            yield connection
    except NotThereYetError as error:
        if not paths.is_in_use:
            raise
        raise OperatorError(
            f"{error} Nothing of the cluster was removed: {paths.directory} tells what of libvirt's belongs to it."
        ) from error
