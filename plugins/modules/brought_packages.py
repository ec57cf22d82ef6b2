#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: brought_packages
short_description: Which packages came with the labs and are not needed by others
version_added: 0.1.0
description:
  - Goes by the notes that role nometal.ipi.host_prep takes before it installs packages. What was installed then, and
    what was installed by others since, is never listed.
  - A package is needed if one that did not come with the labs depends on it. It is needed as well if one that was
    installed by others since recommends it, or suggests it where the package manager keeps packages for that.
  - It removes nothing.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.read_only
  - nometal.ipi.host_memory
"""

EXAMPLES = r"""
- name: Ask which packages may go
  nometal.ipi.brought_packages:
  register: brought
"""

RETURN = r"""
purge:
  description: Packages that may go with their configuration.
  returned: success
  type: list
  elements: str
  sample: [libvirt-daemon-system, xorriso]
remove:
  description: Packages that may go, but whose configuration was edited, or was there before the labs.
  returned: success
  type: list
  elements: str
  sample: [dnsmasq-base]
kept:
  description: Packages that came with the labs and are needed, each with the reason.
  returned: success
  type: dict
  sample:
    qemu-utils: libguestfs-tools depends on it
edited:
  description: Configuration files of those in RV(remove) that were edited.
  returned: success
  type: list
  elements: str
  sample: [/etc/dnsmasq.conf]
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._observe.package_managers import of_host
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packages import History, needed

if TYPE_CHECKING:
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._observe.package_managers import Apt, Dnf

ARGUMENTS = {
    "memory": {"type": "path", "default": "/var/lib/nometal/host.json"},
}


def packages_to_go(manager: Apt | Dnf, memory: HostMemory) -> dict[str, Any]:
    notes = memory.recall()
    by_name = set(notes.get("missing_packages", {}))
    present = notes.get("present_packages", {})
    before, removed_before = (set(present.get(key, "").split()) for key in ("names", "removed"))
    brought = by_name | set(notes.get("brought_packages", {}))
    history = History(
        brought,
        before,
        # The labs, too, have asked by name for some.
        wanted=manager.asked_for() - by_name,
    )
    installed = manager.installed()
    kept = needed(installed, history, manager.weak())
    # A teardown that was killed may have removed some, and not their configuration.
    there = set(installed) | (manager.remains() - removed_before)
    going = sorted((there & brought) - before - set(kept))
    edited = manager.edited(going)
    remove = (set(edited) | removed_before) & set(installed)
    return {
        "changed": False,
        "purge": [name for name in going if name not in remove and name not in edited],
        "remove": [name for name in going if name in remove],
        "kept": kept,
        "edited": sorted(path for paths in edited.values() for path in paths),
    }


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    return packages_to_go(of_host(), HostMemory(Path(params["memory"])))


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
