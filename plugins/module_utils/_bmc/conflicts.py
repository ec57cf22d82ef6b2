# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of this host stands in the way of a lab's BMC service, in words for its operator. Nothing is changed here."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import ssl
import stat
import subprocess
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import service, supervised
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs, Port
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_addresses
from ansible_collections.nometal.ipi.plugins.module_utils._observe.ports import measure_ports

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab, Node

GROUP = "libvirt"


def of_host(lab: Lab, served: Iterable[Port], *, check_mode: bool) -> Iterator[str]:
    """Check mode also runs on hosts where earlier stages have made nothing yet. Served: what is held by this lab."""
    yield from _about_home(lab)
    yield from _about_ca_file(lab)
    known = set(served)
    yield from _about_ports(lab, [port for port in ports_of(lab) if port not in known])
    if not check_mode:
        yield from _about_user(lab)
        yield from _about_addresses(lab)


def of_vms(connection: Any, lab: Lab, *, check_mode: bool) -> Iterator[str]:
    domains = connection.listAllDomains()
    names = {domain.name(): domain for domain in domains}
    uuids = {domain.UUIDString(): domain for domain in domains}
    missing = [node.name for node in lab.nodes if node.uuid not in uuids and node.name not in names]
    if missing and not check_mode:
        yield f"VMs are missing: {', '.join(missing)}. Run playbooks/nodes.yml."
    for node in lab.nodes:
        yield from _about_vm(lab, node, uuids.get(node.uuid), names.get(node.name))


def of_media(connection: Any, lab: Lab) -> Iterator[str]:
    """By IPMI there are no virtual media: their pool goes, and no VM may lose its disc with it."""
    if lab.listen or not Path(lab.pool.path).is_dir():
        return
    for domain in connection.listAllDomains():
        name, now = domain.name(), " --live" if domain.isActive() else ""
        for drive in sorted(set(_drives_with_media(domain, lab.pool.path))):
            eject = f"virsh change-media {name} {drive} --eject --force --config{now}"
            yield f"VM {name} has a disc in its drive, which goes with Redfish: eject it by its BMC, or with `{eject}`."


def require_what_roles_make(lab: Lab) -> None:
    try:
        for user in (lab.user, lab.broker_user):
            pwd.getpwnam(user)
            grp.getgrnam(user)
    except KeyError:
        raise NotThereYetError(
            f"User {user}, or the group of the same name, is missing: role nometal.ipi.bmc_emulation makes them."
        ) from None
    if service.software_of(lab) is None:
        raise NotThereYetError(
            f"The BMC software is missing in {lab.software}: role nometal.ipi.bmc_emulation installs it."
        )


def ports_of(lab: Lab) -> Iterator[Port]:
    yield from (Port(endpoint.address, endpoint.port, "tcp") for endpoint in lab.listen)
    for _node, place in lab.by_ipmi:
        yield from (Port(endpoint.address, endpoint.port, "udp") for endpoint in lab.places(place))


def _about_vm(lab: Lab, node: Node, by_uuid: Any, by_name: Any) -> Iterator[str]:
    if by_uuid is None and by_name is None:
        return
    if by_uuid is None:
        yield f"VM {node.name} has the UUID {by_name.UUIDString()}, not {node.uuid}: name both as they are."
    elif by_uuid.name() != node.name:
        yield f"UUID {node.uuid} is VM {by_uuid.name()}'s, not {node.name}'s: name both as they are."
    else:
        owner = xml.mark_of(xml.parsed(by_uuid.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE))).owner
        if owner and owner != lab.name:
            yield f"VM {node.name} is lab {owner}'s, which commands it: lab {lab.name} needs a VM with another name."
        elif not owner:
            yield f"VM {node.name} was not made by nometal.ipi: only VMs that playbooks/nodes.yml has made get BMCs."


def _drives_with_media(domain: Any, directory: str) -> Iterator[str]:
    for flags in (libvirt.VIR_DOMAIN_XML_INACTIVE, 0):
        for source in xml.parsed(domain.XMLDesc(flags)).iterfind("devices/disk/source"):
            if str(Path(source.get("file", "")).parent) == directory:
                yield source.getparent().find("target").get("dev")


def _about_home(lab: Lab) -> Iterator[str]:
    """What is there of it; whoever may change a directory above could put another in its place."""
    for directory in [lab.home, *lab.home.parents][:-1]:
        try:
            status = directory.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield f"home: {directory} must be a directory."
        elif status.st_uid or status.st_mode & stat.S_IWOTH or (status.st_gid and status.st_mode & stat.S_IWGRP):
            yield f"home: {directory} must be a directory that only root can change."
        elif not status.st_mode & stat.S_IXOTH:
            yield f"home: {directory} is closed to user {lab.user}, who is to run the service; `chmod o+x` opens it."


def _about_ca_file(lab: Lab) -> Iterator[str]:
    path = lab.media.ca_file
    if path is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except FileNotFoundError:
        yield f"media.ca_file: must be a file with certificates in PEM; there is no file {path} on this host."
    except OSError:  # ssl.SSLError is one
        yield f"media.ca_file: {path} must hold one or more certificates in PEM."
    else:
        if not _can_read(lab.user, path):
            yield f"media.ca_file: {path} cannot be read by user {lab.user}; `chmod o+r` lets it, and o+x above it."


def _can_read(user: str, path: str) -> bool:
    try:
        entry = pwd.getpwnam(user)
    except KeyError:  # is yet to be made
        return True
    groups = os.getgrouplist(user, entry.pw_gid)
    test = subprocess.run(
        ["/usr/bin/test", "-r", path], check=False, user=entry.pw_uid, group=entry.pw_gid, extra_groups=groups
    )
    return test.returncode == 0


def _about_user(lab: Lab) -> Iterator[str]:
    try:
        service, broker = pwd.getpwnam(lab.user), pwd.getpwnam(lab.broker_user)
        group = grp.getgrnam(GROUP)
    except KeyError:  # their roles make them, and this is said elsewhere
        return
    for key, entry in {"user": service, "broker_user": broker}.items():
        if entry.pw_uid == 0:
            yield f"{key}: {entry.pw_name} must be a system user without privileges: it is root by another name."
    if service.pw_uid and group.gr_gid in os.getgrouplist(lab.user, service.pw_gid):
        yield (
            f"user: {lab.user} must not be in the group {GROUP}, which is as good as being root; "
            f"`gpasswd --delete {lab.user} {GROUP}` removes it."
        )
    # polkit asks who is in the group, and not what the process has; without the bus there is no polkit.
    may_use = group.gr_gid in os.getgrouplist(lab.broker_user, broker.pw_gid)
    if broker.pw_uid and not may_use and supervised.SYSTEM_BUS.exists():
        yield (
            f"broker_user: {lab.broker_user} may not use libvirt; "
            f"`usermod --append --groups {GROUP} {lab.broker_user}` lets it."
        )


def _about_addresses(lab: Lab) -> Iterator[str]:
    for address, key in {port.address: _key_of(lab, port) for port in ports_of(lab)}.items():
        if not _is_here(address):
            yield f"{key}: no link of this host has {address}; playbooks/network.yml gives it the lab's addresses."


def _key_of(lab: Lab, port: Port) -> str:
    if port.protocol == "tcp":
        return "listen"
    return "ipmi_addresses" if port.address in lab.ipmi_addresses else "nodes[].bmc.host"


def _is_here(address: str) -> bool:
    if ":" in address:  # none can be bound to while its link is down, and it is there all the same
        return ip_address(address) in {found.interface.ip for found in read_addresses()}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.bind((address, 0))
        return True
    return False


def _about_ports(lab: Lab, wanted: Sequence[Port]) -> Iterator[str]:
    try:
        busy = measure_ports(Needs(ports=tuple(wanted)))
    except OSError:  # as where there is no IPv6; that the address is missing is said elsewhere
        return
    for taken in busy:
        others = [holder for holder in taken.holders if not _is_of(lab, holder.pid)]
        if others or not taken.holders:
            who = ", ".join(map(str, others)) or "a process that cannot be seen"
            key = "listen" if taken.port.protocol == "tcp" else "nodes[].bmc.port"
            yield f"{key}: {taken.port} is in use by {who}; stop that, or take another port."


def _is_of(lab: Lab, pid: int) -> bool:
    """Whether it is the lab's service, or one that the service has started."""
    with suppress(OSError):  # it has ended meanwhile
        while pid > 1:
            if str(lab.config) in _text_of(pid, "cmdline").split("\0"):
                return True
            pid = int(_text_of(pid, "status").split("PPid:")[1].split()[0])
    return False


def _text_of(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
