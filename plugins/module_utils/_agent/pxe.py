# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The provisioning network's DHCP and boot server, as the installer's bootstrap VM has one: dnsmasq.

What it takes lies in the medium as an archive: programs, boot loaders, and scripts with a place for the letter.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import links, machine

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIUM = "/mnt"
"""The boot loaders find the kernel below it."""
ARCHIVE = Path(MEDIUM, "bootstrap.tar.gz")
DNSMASQ = "/extras/dnsmasq"
SERVED = Path("/extras/tftp")
SCRIPTS = (SERVED / "boot.ipxe", SERVED / "grub/grub.cfg")
LETTER = "@LETTER@"
IPXE, UEFI = "175", "7"
"""How clients say what they are: iPXE by an option of its own, UEFI on x86-64 by its architecture."""


def serve(device: str, link: str, network: Mapping[str, Any], letter: Mapping[str, Any], port: int) -> None:
    machine.mount(device, "iso9660", MEDIUM, machine.READ_ONLY)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall("/")  # noqa: S202 - our own, and this is a guest
    text = json.dumps(letter).encode().hex()
    for script in SCRIPTS:
        script.write_text(script.read_text(encoding="utf-8").replace(LETTER, text), encoding="utf-8")
    links.start(link)
    links.add_address(link, network["address"], network["prefix"])
    subprocess.Popen([DNSMASQ, *_settings(link, network, port)])


def _settings(link: str, network: Mapping[str, Any], port: int) -> list[str]:
    address = f"[{network['address']}]" if ":" in network["address"] else network["address"]
    return [
        *("--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--group=root", "--pid-file=", "--port=0"),
        *(f"--interface={link}", "--bind-interfaces", "--dhcp-leasefile=/run/leases", "--no-ping"),
        f"--dhcp-range={network['start']},{network['end']},{network['prefix_or_mask']}",
        "--dhcp-option=3",  # no way out by this network
        "--dhcp-option=encap:175,176,1b",  # iPXE would wait seconds for other boot servers
        *("--enable-tftp", f"--tftp-root={SERVED}"),
        *(f"--dhcp-match=set:ipxe,{IPXE}", f"--dhcp-match=set:uefi,option:client-arch,{UEFI}"),
        f"--dhcp-boot=tag:ipxe,http://{address}:{port}/boot.ipxe",
        "--dhcp-boot=tag:uefi,tag:!ipxe,uefi.efi",
        "--dhcp-boot=tag:!uefi,tag:!ipxe,bios.0",
    ]
