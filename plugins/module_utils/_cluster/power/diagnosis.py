# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why nodes of an installed cluster do not come up, by the same evidence as of an installation that stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import diagnose, evidence
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.vips import look_for_api
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding


def findings(installation: Installation, suspects: Collection[str]) -> list[Finding]:
    """As of the stage in which the bootstrap VM is gone and the cluster's own API is to answer."""
    names = [str(node["name"]) for node in installation.nodes if node.get("role") == Role.CONTROL_PLANE]
    progress = Progress(control_plane=names, stage=Stage.INITIALIZE, bootstrap_complete=True, bootstrap_destroyed=True)
    return diagnose.findings(progress, evidence.gather(installation), suspects)


def holders(vips: Iterable[str]) -> set[str]:
    """MAC addresses of the host's neighbours that serve the API at these addresses."""
    return {vip.mac for vip in look_for_api(vips).values() if vip.mac and not vip.error}
