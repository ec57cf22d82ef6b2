# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node VMs as they were before an installation: off, with empty disks and drives."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml, vm_host
from ansible_collections.nometal.ipi.plugins.module_utils._observe.node_vms import _info

try:
    import libvirt
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone


def make_blank(path: str) -> None:
    """In place: the file keeps its owner, its mode, the note whose disk it is, and the snapshots of checkpoints."""
    info = _info(path)
    if info["format"] == "raw":
        with Path(path).open("r+b") as file:
            file.truncate(0)
            file.truncate(info["virtual-size"])
    elif info.get("snapshots"):
        zeros = {"driver": "null-co", "size": info["virtual-size"], "read-zeroes": True}
        run("qemu-img", "convert", "-n", "-O", info["format"], f"json:{json.dumps(zeros)}", path)
    else:
        run("qemu-img", "create", "-q", "-f", info["format"], path, str(info["virtual-size"]))


def empty_drive(connection: Any, vm_name: str) -> None:
    """What its BMC does, in place of a BMC that does not."""
    domain = connection.lookupByName(vm_name)
    drive = domain_xml.cdrom_of(domain_xml.parsed(vm_host.saved_xml(domain))).getparent()
    drive.remove(drive.find("source"))
    domain.updateDeviceFlags(etree.tostring(drive, encoding="unicode"), libvirt.VIR_DOMAIN_AFFECT_CONFIG)


def switch_off(connection: Any, vm_name: str) -> None:
    with suppress(libvirt.libvirtError):  # it is off, or goes off by itself meanwhile
        connection.lookupByName(vm_name).destroy()
