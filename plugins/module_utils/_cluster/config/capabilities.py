# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the optional parts of OpenShift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, invalid
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import capabilities

KEYS = {
    "baseline": "capabilities.baselineCapabilitySet",
    "additional": "capabilities.additionalEnabledCapabilities",
}


def problems(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    if "capabilities" not in config or release < capabilities.FIRST_SET:
        return
    baseline, additional = at(config, KEYS["baseline"]), at(config, KEYS["additional"]) or []
    if not isinstance(baseline, str):
        yield invalid(KEYS["baseline"], must_be("None, vCurrent or a release such as v4.18", baseline))
    elif not isinstance(additional, list) or not all(isinstance(name, str) for name in additional):
        yield invalid(KEYS["additional"], must_be("a list of capabilities", additional))
    else:
        for finding in capabilities.problems(baseline, additional, release):
            key, bracket, number = finding.subject.partition("[")
            yield invalid(f"{KEYS[key]}{bracket}{number}", finding.message)
