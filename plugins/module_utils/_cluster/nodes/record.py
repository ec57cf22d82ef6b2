# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts of the lab the cluster has, as it was when all was done; for when it does not answer."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import yaml_text
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths


@dataclass(frozen=True)
class Record:
    hosts: Sequence[str] = ()
    replacing: Mapping[str, str] = field(default_factory=dict)
    """By name, the UIDs of BareMetalHosts that are being replaced; empty of those that were not there."""


def read(paths: Paths) -> Record:
    """At first, as the installer was told."""
    with suppress(OSError, ValueError, TypeError):
        return Record(**json.loads(paths.nodes.read_text(encoding="utf-8")))
    with suppress(OSError, OperatorError, KeyError, TypeError, IndexError):
        [config] = yaml_text.documents_in(paths.config.read_text(encoding="utf-8"), paths.config.name)
        return Record([str(host["name"]) for host in config["platform"]["baremetal"]["hosts"]])
    return Record()


def write(paths: Paths, record: Record) -> None:
    if record != read(paths):
        files.write_whole(paths.nodes, json.dumps(asdict(record)) + "\n", files.OWNER_ALONE)
