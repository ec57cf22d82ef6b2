# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The optional parts of OpenShift: which there are in a release, and which an installation requires."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, must_be, nearest
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import NEWEST, Release, release_text

SINCE: dict[str, Release] = {
    "baremetal": (4, 11),
    "marketplace": (4, 11),
    "openshift-samples": (4, 11),
    "Console": (4, 12),
    "CSISnapshot": (4, 12),
    "Insights": (4, 12),
    "Storage": (4, 12),
    "NodeTuning": (4, 13),
    "Build": (4, 14),
    "DeploymentConfig": (4, 14),
    "ImageRegistry": (4, 14),
    "MachineAPI": (4, 14),
    "CloudCredential": (4, 15),
    "OperatorLifecycleManager": (4, 15),
    "CloudControllerManager": (4, 16),
    "Ingress": (4, 16),
    "OperatorLifecycleManagerV1": (4, 18),
}
"""The release in which each became optional, and whose set has it first. Before that, it is always installed."""
FIRST_SET, LAST_SET = (4, 11), (4, 18)
REQUIRED = ("baremetal", "MachineAPI", "Ingress")
"""Without the first two, the nodes would not be provisioned; the installer itself insists on the last."""
MARKETPLACE, ITS_MANAGER = "marketplace", "OperatorLifecycleManager"


def problems(baseline: str, additional: Sequence[str], release: Release) -> Iterator[Finding]:
    """Their subjects are `baseline`, `additional` or `additional[0]`."""
    is_known = release <= NEWEST
    last = min(release, LAST_SET) if is_known else release
    named = re.fullmatch(r"v([0-9]+)\.([0-9]+)", baseline)
    limit = (int(named[1]), int(named[2])) if named else {"None": (0, 0), "vCurrent": release}.get(baseline)
    if limit is None or (named and not FIRST_SET <= limit <= last):
        sets = f"v{release_text(FIRST_SET)} to v{release_text(last)}"
        right = f"None, vCurrent, or {sets} for release {release_text(release)}"
        yield Finding("install.baseline", "baseline", must_be(right, baseline))
        return
    known = [name for name, since in SINCE.items() if since <= release]
    for number, name in enumerate(additional):
        if name not in known and is_known:
            yield Finding("install.capability", f"additional[{number}]", _unknown(name, known, release))
    enabled = {*additional, *(name for name in known if SINCE[name] <= limit)}
    lacking = [name for name in REQUIRED if name in known and name not in enabled]
    if lacking:
        message = f"must include {', '.join(lacking)}, which the installation requires and {baseline} does not have"
        yield Finding("install.capabilities-required", "additional", message)
    if ITS_MANAGER in known and MARKETPLACE in enabled and ITS_MANAGER not in enabled:
        message = f"must include {ITS_MANAGER}, which {MARKETPLACE} requires"
        yield Finding("install.capabilities-marketplace", "additional", message)


def _unknown(name: str, known: Sequence[str], release: Release) -> str:
    here = release_text(release)
    if name in SINCE:
        return f"not optional in release {here}: leave it out {got(name)}"
    close = nearest(name, known)
    advice = f"did you mean {close}?" if close else f"its capabilities are {', '.join(known)}"
    return f"unknown capability in release {here}; {advice} {got(name)}"
