# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots inside qcow2 images: by qemu-img, or by the QEMU that has the image open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.state import FoundDisk

try:
    import libvirt_qemu
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt_qemu = None

SECTOR = 512
RAW = "raw"
"""What libvirt takes a disk for that declares nothing."""


def look(path: str, declared: str) -> FoundDisk:
    """Also while its VM runs. Declared: the format that it has for its VM. Content is a guest's, and tells none."""
    info = json.loads(run("qemu-img", "info", "--force-share", "--output=json", "-f", declared or RAW, path))
    return FoundDisk(
        path=path,
        format=info["format"],
        size_bytes=info["virtual-size"],
        used_bytes=Path(path).stat().st_blocks * SECTOR,
        snapshots=tuple(snapshot["name"] for snapshot in info.get("snapshots", ())),
    )


def take(path: str, tag: str, domain: Any = None) -> None:
    """Domain: the VM that has it open."""
    if domain is None:
        run("qemu-img", "snapshot", "-c", tag, path)
    else:
        _ask(domain, "blockdev-snapshot-internal-sync", device=_node_of(domain, path), name=tag)


def revert(path: str, tag: str) -> None:
    run("qemu-img", "snapshot", "-a", tag, path)


def remove(path: str, tag: str, domain: Any = None) -> None:
    if domain is None:
        run("qemu-img", "snapshot", "-d", tag, path)
    else:
        _ask(domain, "blockdev-snapshot-delete-internal-sync", device=_node_of(domain, path), name=tag)


def _node_of(domain: Any, path: str) -> str:
    """The name by which QEMU knows the disk."""
    inserted = (drive.get("inserted") or {} for drive in _ask(domain, "query-block"))
    names = [image["node-name"] for image in inserted if image.get("image", {}).get("filename") == path]
    if not names:
        raise OperatorError(
            f"The QEMU of VM {domain.name()} has no disk {path}: switch the VM off and on, then repeat this."
        )
    return str(names[0])


def _ask(domain: Any, command: str, **arguments: str) -> Any:
    text = json.dumps({"execute": command, **({"arguments": arguments} if arguments else {})})
    answer = json.loads(libvirt_qemu.qemuMonitorCommand(domain, text, 0))
    if "error" in answer:
        raise OperatorError(
            f"QEMU of VM {domain.name()} refused {command}: {answer['error'].get('desc', answer['error'])}."
        )
    return answer["return"]
