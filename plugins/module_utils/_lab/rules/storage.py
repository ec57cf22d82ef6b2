# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about where disks are stored."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._lab import pool_path
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY


def pool_directory(lab: ParsedLab) -> Iterator[Finding]:
    path = lab.spec.storage_pool.path or ""
    objection = pool_path.objection(path)
    if objection:
        yield Finding("storage.system-directory", "storage_pool.path", objection)
    media = f"{POOL_DIRECTORY}/{lab.identity.prefix}-media"
    if path == media or path.startswith(f"{media}/"):
        text = must_be(f"outside {media}, where the lab's BMCs store their media, such as /srv/labs/demo", path)
        yield Finding("storage.media-directory", "storage_pool.path", text)
