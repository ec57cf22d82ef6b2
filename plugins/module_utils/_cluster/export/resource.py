# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that tell other installers of the nodes of a lab."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.secrets import checked_pull_secret
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export import (
    agent,
    cluster_instance,
    inventory,
    ironic,
    metal3,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import Rack, no_cluster, nothing_missing
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import job_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, private_files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.private_files import (
    PrivateFile,
    PrivateFiles,
    PrivateFilesPort,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import BMC_CA, KNOWN_OF_EXPORT, export_of, paths_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import NEWEST, OLDEST, release_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release


class Format(NamedTuple):
    names: tuple[str, ...]
    """Of its files."""
    contents: Callable[[Rack], dict[str, str]]
    missing: Callable[[Mapping[str, Any]], str] = nothing_missing
    """Why it is left out for a lab; empty if it is not."""


FORMATS = {
    "metal3": Format((metal3.FILE,), metal3.files),
    "ironic": Format((ironic.FILE,), ironic.files),
    "agent": Format((agent.AGENT_CONFIG, agent.INSTALL_CONFIG), agent.files, no_cluster),
    "cluster-instance": Format((cluster_instance.FILE,), cluster_instance.files, cluster_instance.missing),
    "inventory": Format((inventory.FILE,), inventory.files),
}


class LabExport(Resource[PrivateFiles, PrivateFilesPort]):
    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        self._lab: Mapping[str, Any] = params["lab"]
        self._home = Path(params["bmc_home"])
        self._directory = Path(params["directory"] or export_of(self._lab["name"]))
        if not self._directory.is_absolute():
            raise OperatorError(f"directory: must be an absolute path (got {self._directory}).")
        self._release = self._release_of(params["version"])
        self._missing = {name: missing for name, each in FORMATS.items() if (missing := each.missing(self._lab))}
        self._left_out = list(self._missing)
        asked = params["formats"]
        refused = [name for name in asked if name in self._left_out]
        if refused:
            raise OperatorError(f"formats: {', '.join(refused)} must be left out: {self._why(refused)}.")
        self._formats = [name for name in FORMATS if name in (asked or FORMATS) and name not in self._left_out]

    def _why(self, left_out: Sequence[str]) -> str:
        return "; ".join(dict.fromkeys(self._missing[name] for name in left_out))

    def _release_of(self, version: str) -> Release:
        """By default that of the lab, of whose builds not all have one."""
        installed = (self._lab["install"] or {}).get("version", "")
        release = release_of(version or installed)
        if version and (release is None or release < OLDEST):
            raise OperatorError(f"version: {must_be('a release such as 4.20', version)}.")
        return release or NEWEST

    def desired(self) -> PrivateFiles:
        names = [name for each in self._formats for name in FORMATS[each].names]
        return private_files.desired([self._directory / name for name in [*names, *self._ca_names()]])

    @contextmanager
    def open(self) -> Iterator[PrivateFilesPort]:
        rack = self._rack()
        if rack.without_login:
            raise NotThereYetError(
                f"The BMCs of {', '.join(rack.without_login)} have no login: playbooks/bmc.yml makes one for each node."
            )
        texts = {name: text for each in self._formats for name, text in FORMATS[each].contents(rack).items()}
        for name in self._ca_names():
            texts[name] = self._certificate()
        wanted = [PrivateFile(self._directory / name, text) for name, text in texts.items()]
        yield PrivateFilesPort(wanted, self._known())

    def _known(self) -> list[Path]:
        """Of this run or former ones, whose secrets do not stay. In another directory, such a file may be another's."""
        is_ours = self._directory == export_of(self._lab["name"]) and not self.params["formats"]
        known = removal.matching(self._directory, KNOWN_OF_EXPORT) if is_ours else []
        return [path for path in known if not _is_directory(path)]

    def _rack(self) -> Rack:
        params, name = self.params, self._lab["name"]
        return Rack(
            lab=self._lab,
            logins=job_secrets.logins_of(credentials.file_of(self._home, name), name),
            release=self._release,
            ca_file=params["ca_file"],
            namespace=params["namespace"],
            image_set=params["cluster_image_set"],
            pull_secret=_pull_secret(params["pull_secret"]),
            ssh_key=params["ssh_key"].strip(),
        )

    def _ca_names(self) -> list[str]:
        return [BMC_CA] if self._lab["bmc"]["tls"] else []

    def _certificate(self) -> str:
        file = credentials.ca_of(self._home, self._lab["name"])
        text = files.text_of(file)
        if text is None:
            raise NotThereYetError(f"{file} is missing: playbooks/bmc.yml makes it.")
        return text

    def conflicts(self) -> list[str]:
        there = self._directory
        return [f"{there} is there and is not a directory: choose another."] if _is_something_else(there) else []

    def plan(self, current: PrivateFiles | None, desired: PrivateFiles) -> Sequence[Step]:
        return private_files.plan(current, desired)

    def warnings(self) -> list[str]:
        name = self._lab["name"]
        is_running = "metal3" in self._formats and paths_of(name).kubeconfig.exists()
        return [metal3.warning(self._directory, name)] if is_running else []

    def result(self) -> dict[str, Any]:
        return {
            "directory": str(self._directory),
            "files": [Path(path).name for path in self.desired().contents],
            "left_out": self._left_out if not self.params["formats"] else [],
            "left_out_because": self._why(self._left_out) if not self.params["formats"] else "",
        }


def _pull_secret(given: Any) -> str:
    return "" if given in ("", None) else checked_pull_secret(job_secrets.pull_secret_of(given))


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_something_else(path: Path) -> bool:
    return path.exists() and not path.is_dir()
