# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest
from support import golden

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor import (
    compute,
    daemon,
    environment,
    firewall,
    kvm,
    labs,
    networks,
    resolver,
    storage,
)
from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.examination import CHECKS
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB
from ansible_collections.nometal.ipi.plugins.module_utils._lab.claims import Claim
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import (
    Needs,
    Network,
    NetworkAddress,
    Pool,
    Port,
    Vm,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe import libvirt_files
from ansible_collections.nometal.ipi.plugins.module_utils._observe.libvirt_files import LibvirtNetwork, LibvirtObject
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule
from ansible_collections.nometal.ipi.plugins.module_utils._observe.ports import Holder, Taken
from ansible_collections.nometal.ipi.plugins.module_utils._observe.routes import Route

MESSAGES = Path(__file__).with_name("messages.txt")
HEAD = """\
# The wording of the doctor: check and status of each case of test_judgements.py, then code and text of what is found.
# To write it anew, after a change that is meant: NOMETAL_UPDATE_GOLDEN=1 pytest tests/unit/doctor
"""
JUDGES = {check.name: check.judge for check in CHECKS}


def net(text: str) -> Any:
    return ipaddress.ip_network(text)


def other(
    name: str = "other", *subnets: str, bridge: str = "virbr9", uuid: str = "u-other", active: bool = True
) -> Any:
    return LibvirtNetwork(name, uuid, bridge, tuple(map(net, subnets)), active)


RENAMED = dataclasses.replace(other("nometal-old", "192.168.126.0/24", bridge="nm-old"), owner="old")
OWN_NETWORK = other("demo", "192.168.126.0/24", bridge="demo-m", uuid="u-net")
BMC = Port("192.168.126.1", 8000, "tcp")
REHEARSAL = Needs(
    name="demo",
    domain="demo.example.test",
    memory_mib=2048,
    vcpus=4,
    disk_bytes=4 * GIB,
    pool=Pool("nometal-demo", "u-pool", "/var/lib/libvirt/images/nometal-demo"),
    networks=(
        Network(
            "demo",
            "u-net",
            "demo-m",
            tuple(NetworkAddress(net(cidr)) for cidr in ("192.168.126.0/24", "fd00:126::/64")),
        ),
    ),
    vms=(Vm("demo-master-0", "u-vm"),),
    bridges=("baremetal",),
    own_links=("demo-veth",),
    own_processes=("nometal-bmc@demo",),
    ports=(BMC,),
)
LEGACY = "iptables-legacy"
ACCEPTING = Rule("table ip filter, chain INPUT", "tcp dport 22 drop", "input")
DROPPING = Rule("table ip filter, chain FORWARD", "policy drop", "forward")
OLD = Rule("table legacy filter, chain INPUT", "policy DROP", "input")
EARLY = Rule("table inet raw, chain early", "policy drop", "prerouting")
SHARING = dataclasses.replace(REHEARSAL, shared_bridges=("baremetal",))
FORMER_DNSMASQ = (Holder("dnsmasq", 7, "dnsmasq --conf-file=/var/lib/libvirt/dnsmasq/baremetal.conf"),)
FORMER = dataclasses.replace(OWN_NETWORK, name="baremetal", bridge="baremetal")
ELSEWHERE = Needs(pool=Pool(path="/data"))
INSTALL = dataclasses.replace(REHEARSAL, install=True, memory_mib=48 * 1024, vcpus=12, disk_bytes=360 * GIB)
INSTALLED = dataclasses.replace(INSTALL, installed=True)
PREPARED = dataclasses.replace(REHEARSAL, prepared=True)
INSTALL_PREPARED = dataclasses.replace(INSTALL, prepared=True)


def storage_of(
    pool: float, installer: float, *, used: float = 0, own: float = 0, shared: bool = False
) -> storage.Storage:
    return storage.Storage(
        storage.Space("/pool", 1, int(pool * GIB), int(used * GIB)),
        storage.Space("/images", 1 if shared else 2, int(installer * GIB), int(own * GIB)),
    )


def with_checkpoints(found: storage.Storage) -> storage.Storage:
    return dataclasses.replace(found, held=2 * GIB)


NINE = tuple("123456789")


def pool_directory(
    kind: str, entries: tuple[str, ...] = (), pools: tuple[str, ...] = (), leads_to: str = ""
) -> storage.FoundDirectory:
    return storage.FoundDirectory(kind, entries, pools, leads_to)


def routed(*routes: Route, networks_: tuple[LibvirtNetwork, ...] = (OWN_NETWORK,)) -> networks.Subnets:
    return networks.Subnets(routes, networks_)


def bridged(*links: networks.Link, networks_: tuple[LibvirtNetwork, ...] = (OWN_NETWORK,)) -> networks.Bridges:
    return networks.Bridges(links, networks_)


WITH_MODEL = dataclasses.replace(REHEARSAL, model={"name": "demo"})
MEDIA = Claim("storage pool", "nometal-demo-media", "its virtual media", "lab_spec.name")
DISKS = Claim("directory", "/srv/labs/demo", "its disks", "lab_spec.storage_pool.path")


def beside(*theirs: Claim, own: tuple[Claim, ...] = (MEDIA, DISKS), pool: str = "", name: str = "x") -> labs.Labs:
    pools = (libvirt_files.Pool(name, "u-other", pool),) if pool else ()
    return labs.Labs(own, (("other", theirs),) if theirs else (), pools)


def listening(marks: str = "/usr/bin/web", name: str = "web") -> tuple[Taken, ...]:
    return (Taken(BMC, (Holder(name, 7, marks),)),)


def listing(interfaces: daemon.Interfaces) -> daemon.Daemon:
    return daemon.Daemon(True, daemon.ANSWERS, interfaces)


GOOD_RESOLVER = resolver.Resolver("box", (("127.0.0.1", "localhost"), ("127.0.1.1", "box")), False, ("9.9.9.9",), ())


def resolving(**changes: Any) -> resolver.Resolver:
    return dataclasses.replace(GOOD_RESOLVER, **changes)


RUNS = kvm.Trial(True, "vmx", "/usr/bin/qemu", ran=True)
LIES = kvm.Trial(True, "svm", "/usr/bin/qemu", failure="qemu was ended by SIGABRT: error: failed to set MSR")
NO_DEVICE = kvm.Trial(False, "", "/usr/bin/qemu")
NO_QEMU = kvm.Trial(True, "vmx")
OPEN = kvm.DeviceAccess(True, 0o660, "root", "kvm", "libvirt-qemu", user_may=True)
CLOSED = kvm.DeviceAccess(True, 0o600, "root", "root", "libvirt-qemu", user_may=False)
DEBIAN = environment.Distribution("Debian GNU/Linux 12", "debian", (), (12,))
SILENT, ABSENT = daemon.Daemon(True, daemon.SILENT), daemon.Daemon(True, daemon.ABSENT)
FREE_LAN = Route(net("10.0.0.0/24"), "eth0")

# check, what was measured, needs, status, a piece of what the operator reads
CASES: list[tuple[str, Any, Needs, str, str]] = [
    ("root", 0, REHEARSAL, "ok", "root"),
    ("root", 1000, REHEARSAL, "blocker", "become: true"),
    ("architecture", "x86_64", REHEARSAL, "ok", "x86_64"),
    ("architecture", "aarch64", REHEARSAL, "blocker", "aarch64"),
    ("distribution", DEBIAN, REHEARSAL, "ok", "Debian"),
    ("distribution", environment.Distribution("Debian sid", "debian", (), ()), REHEARSAL, "ok", "sid"),
    ("distribution", environment.Distribution("Fedora 43", "fedora", (), (43,)), REHEARSAL, "ok", "Fedora"),
    ("distribution", environment.Distribution("Rocky 9.4", "rocky", ("rhel",), (9, 4)), REHEARSAL, "ok", "Rocky"),
    ("distribution", environment.Distribution("Ubuntu 20.04", "ubuntu", (), (20, 4)), REHEARSAL, "warning", "older"),
    (
        "distribution",
        environment.Distribution("Mint", "linuxmint", ("ubuntu",), (22,)),
        REHEARSAL,
        "warning",
        "Not tested",
    ),
    ("distribution", environment.Distribution("Arch", "arch", (), ()), REHEARSAL, "blocker", "does not know"),
    ("python", environment.Python((3, 9), "/usr/bin/python3", True), PREPARED, "ok", "with libvirt bindings"),
    ("python", environment.Python((3, 11), "/usr/bin/python3", False), REHEARSAL, "ok", "host_prep installs"),
    (
        "python",
        environment.Python((3, 11), "/opt/py/bin/python3", False),
        REHEARSAL,
        "warning",
        "ansible_python_interp",
    ),
    ("python", environment.Python((3, 11), "/opt/py/bin/python3", False), PREPARED, "blocker", "/usr/bin/python3"),
    ("python", environment.Python((3, 8), "/usr/bin/python3", True), REHEARSAL, "blocker", "3.9"),
    ("kvm", RUNS, INSTALL, "ok", "a guest ran"),
    ("kvm", LIES, REHEARSAL, "warning", "TCG"),
    ("kvm", LIES, INSTALL, "blocker", "failed to set MSR"),
    ("kvm", NO_DEVICE, REHEARSAL, "warning", "firmware"),
    ("kvm", NO_DEVICE, INSTALL, "blocker", "no /dev/kvm"),
    ("kvm", dataclasses.replace(NO_DEVICE, cpu_flag="svm"), INSTALL, "blocker", "kvm_amd"),
    ("kvm", NO_QEMU, INSTALL, "warning", "not measured yet"),
    ("kvm", NO_QEMU, PREPARED, "blocker", "qemu is not installed"),
    ("kvm_access", OPEN, INSTALL_PREPARED, "ok", "accessible to libvirt-qemu"),
    ("kvm_access", kvm.DeviceAccess(False), INSTALL, "ok", "no /dev/kvm"),
    ("kvm_access", dataclasses.replace(OPEN, user="", user_may=False), INSTALL, "ok", "0660"),
    ("kvm_access", CLOSED, INSTALL, "warning", "host_prep sets them"),
    ("kvm_access", dataclasses.replace(CLOSED, user=""), REHEARSAL, "warning", "root:root 0600"),
    ("kvm_access", CLOSED, PREPARED, "warning", "not accessible to libvirt-qemu"),
    ("kvm_access", CLOSED, INSTALL_PREPARED, "blocker", "group kvm and mode 0660"),
    ("cpu", 4, INSTALL, "ok", "16 virtual CPUs on 4 CPUs"),
    ("cpu", 3, INSTALL, "warning", "5.3 to 1"),
    ("cpu", 3, INSTALLED, "ok", "12 virtual CPUs on 3 CPUs"),
    ("cpu", 1, REHEARSAL, "ok", "4.0 to 1"),
    ("memory", compute.Memory(64 * 1024, 62 * 1024, 0), INSTALL, "ok", "55296 MiB needed"),
    ("memory", compute.Memory(64 * 1024, 20 * 1024, 42 * 1024), INSTALL, "ok", "VMs hold 43008 MiB"),
    ("memory", compute.Memory(64 * 1024, 56 * 1024, 0), INSTALL, "warning", "Little memory is left for the host"),
    ("memory", compute.Memory(64 * 1024, 50 * 1024, 0), INSTALL, "blocker", "Stop what else runs"),
    ("memory", compute.Memory(50 * 1024, 8 * 1024, 41 * 1024), INSTALLED, "warning", "49152 MiB needed"),
    ("memory", compute.Memory(64 * 1024, 40 * 1024, 0), INSTALLED, "blocker", "Stop what else runs"),
    ("memory", compute.Memory(4096, 3000, 0), REHEARSAL, "ok", "2048 MiB needed"),
    ("memory", compute.Memory(4096, 1500, 0), REHEARSAL, "warning", "1500 MiB free"),
    ("memory", compute.Memory(1024, 900, 0), REHEARSAL, "blocker", "1024 MiB in all"),
    ("pool_directory", pool_directory(storage.ABSENT), REHEARSAL, "ok", "does not exist yet"),
    ("pool_directory", pool_directory(storage.DIRECTORY, pools=("u-other",)), REHEARSAL, "ok", "is empty"),
    (
        "pool_directory",
        pool_directory(storage.DIRECTORY, NINE, pools=("u-pool",)),
        REHEARSAL,
        "ok",
        "belongs to this lab",
    ),
    (
        "pool_directory",
        pool_directory(storage.LINK, pools=("u-other", "u-pool")),
        REHEARSAL,
        "ok",
        "belongs to this lab",
    ),
    ("pool_directory", pool_directory(storage.DIRECTORY, NINE), Needs(), "ok", "no pool requested"),
    (
        "pool_directory",
        pool_directory(storage.DIRECTORY, NINE, pools=("u-other",)),
        PREPARED,
        "blocker",
        "has files of others: 1, 2, 3 and 6 more Empty it, or set lab_spec.storage_pool.path to another directory",
    ),
    (
        "pool_directory",
        pool_directory(storage.DIRECTORY, ("mine",)),
        REHEARSAL,
        "blocker",
        "has files of others: mine Empty",
    ),
    (
        "pool_directory",
        pool_directory(storage.LINK),
        REHEARSAL,
        "blocker",
        "must be a directory (found a symbolic link) Remove it",
    ),
    (
        "pool_directory",
        pool_directory(storage.DIRECTORY, leads_to="/etc/labs"),
        REHEARSAL,
        "blocker",
        "lab_spec.storage_pool.path must be outside /etc, which belongs to the system",
    ),
    (
        "pool_directory",
        pool_directory(storage.OTHER),
        REHEARSAL,
        "blocker",
        "must be a directory (found a file of another type) Remove it",
    ),
    ("pool_space", storage_of(500, 500), INSTALL, "ok", "108.0 GiB needed now, 360.0 GiB in full"),
    ("pool_space", storage_of(375, 375, shared=True), INSTALL, "warning", "bootstrap VM"),
    ("pool_space", storage_of(120, 120), INSTALL, "warning", "may outgrow"),
    ("pool_space", storage_of(120, 120, shared=True), INSTALL, "blocker", "133.0 GiB needed"),
    ("pool_space", storage_of(20, 20, used=350, own=30, shared=True), INSTALL, "ok", "0.0 GiB needed"),
    ("pool_space", storage_of(5, 5, used=110, shared=True), INSTALLED, "warning", "0.0 GiB needed now"),
    ("pool_space", storage_of(100, 500), INSTALL, "blocker", "Free some space"),
    ("pool_space", storage_of(4, 4), REHEARSAL, "ok", "1.0 GiB needed"),
    (
        "pool_space",
        with_checkpoints(storage_of(9, 9, used=2)),
        REHEARSAL,
        "ok",
        "4.0 GiB in full, 2.0 GiB of it for checkpoints",
    ),
    ("pool_space", with_checkpoints(storage_of(3, 3, used=2)), REHEARSAL, "warning", "remove checkpoints"),
    ("pool_space", storage_of(2, 2), REHEARSAL, "warning", "may outgrow"),
    ("pool_space", storage_of(0.5, 0.5), REHEARSAL, "blocker", "0.5 GiB free in /pool"),
    ("installer_space", storage_of(0, 0), REHEARSAL, "ok", "no installation"),
    ("installer_space", storage_of(400, 400, shared=True), INSTALL, "ok", "the pool's file system"),
    ("installer_space", storage_of(400, 5, own=31), INSTALL, "ok", "36.0 GiB free"),
    ("installer_space", storage_of(400, 30), INSTALL, "warning", "35.0 GiB"),
    ("installer_space", storage_of(400, 10), INSTALLED, "ok", "the cluster is installed"),
    ("installer_space", storage_of(400, 10), INSTALL, "blocker", "stores its bootstrap VM there only"),
    ("fsync", storage.SyncLatency("/pool", (0.5,) * 99 + (9.0,)), INSTALL, "ok", "p99 9.00 ms over 100"),
    ("fsync", storage.SyncLatency("/pool", (0.5,) * 98 + (11.0,) * 2), INSTALL, "warning", "less than 10 ms"),
    ("fsync", storage.SyncLatency("/pool", (1600.0,)), REHEARSAL, "warning", "slow-disk profile"),
    ("libvirt", daemon.Daemon(True, daemon.ANSWERS), INSTALL_PREPARED, "ok", "/var/run/libvirt/libvirt-sock"),
    ("libvirt", daemon.Daemon(False, daemon.ABSENT), INSTALL, "ok", "host_prep installs"),
    ("libvirt", daemon.Daemon(False, daemon.ABSENT), PREPARED, "blocker", "not installed"),
    ("libvirt", ABSENT, INSTALL, "warning", "host_prep starts it"),
    ("libvirt", ABSENT, PREPARED, "blocker", "virtproxyd.socket"),
    ("libvirt", daemon.Daemon(True, daemon.REFUSES), REHEARSAL, "warning", "refuses connections"),
    ("libvirt", daemon.Daemon(True, daemon.REFUSES), PREPARED, "blocker", "refuses connections"),
    ("libvirt", SILENT, REHEARSAL, "blocker", "hangs"),
    ("libvirt", daemon.Daemon(True, daemon.FORBIDDEN), REHEARSAL, "blocker", "become"),
    ("libvirt_interfaces", SILENT, INSTALL, "ok", "no daemon"),
    ("libvirt_interfaces", listing(daemon.Interfaces(bindings=False)), INSTALL, "ok", "no libvirt bindings"),
    ("libvirt_interfaces", listing(daemon.Interfaces(True, ("baremetal", "eth0"))), INSTALL, "ok", "baremetal, eth0"),
    ("libvirt_interfaces", listing(daemon.Interfaces(True, failure="no")), INSTALL, "warning", "interfaces: no"),
    (
        "libvirt_interfaces",
        listing(daemon.Interfaces(True, failure="no")),
        INSTALL_PREPARED,
        "blocker",
        "virtinterfaced",
    ),
    ("labs", beside(), REHEARSAL, "ok", "no model"),
    ("labs", beside(), WITH_MODEL, "ok", "no other lab"),
    ("labs", beside(Claim("VM", "other-0", "its node 0", "")), WITH_MODEL, "ok", "no conflicts with other"),
    (
        "labs",
        beside(Claim("storage pool", "nometal-demo-media", "its disks", "lab_spec.name")),
        WITH_MODEL,
        "blocker",
        "storage pool nometal-demo-media (its virtual media) by lab other, as its disks Change lab_spec.name, or",
    ),
    (
        "labs",
        beside(Claim("directory", "/srv/labs", "its disks", "")),
        WITH_MODEL,
        "blocker",
        " by lab other, as directory /srv/labs (its disks) Change lab_spec.storage_pool.path, or",
    ),
    ("labs", beside(pool="/srv/labs"), WITH_MODEL, "ok", "no other lab"),
    (
        "labs",
        beside(pool="/srv/labs", name="nometal-old"),
        WITH_MODEL,
        "blocker",
        "by storage pool nometal-old, as /srv/labs",
    ),
    ("labs", beside(pool="/srv/labs/demo/mine"), WITH_MODEL, "blocker", "by storage pool x, as /srv/labs/demo/mine"),
    ("libvirt_names", (LibvirtObject("network", "demo", "u-net"),), REHEARSAL, "ok", "owned by this lab"),
    ("libvirt_names", (LibvirtObject("network", "default", "x"),), REHEARSAL, "ok", "3 requested"),
    ("libvirt_names", (LibvirtObject("network", "demo", "x"),), REHEARSAL, "blocker", "network demo (x)"),
    ("libvirt_names", (LibvirtObject("domain", "demo-master-0", "x"),), REHEARSAL, "blocker", "demo-master-0"),
    ("libvirt_names", (LibvirtObject("pool", "nometal-demo", "x"),), REHEARSAL, "blocker", "pool nometal-demo"),
    ("libvirt_names", (LibvirtObject("pool", "demo", "x"),), REHEARSAL, "ok", "free"),
    ("subnets", routed(FREE_LAN), REHEARSAL, "ok", "192.168.126.0/24, fd00:126::/64"),
    ("subnets", routed(Route(net("192.168.126.0/24"), "demo-m")), REHEARSAL, "ok", "all free"),
    ("subnets", routed(Route(net("192.168.126.0/24"), "eth1")), REHEARSAL, "blocker", "192.168.126.0/24 on eth1"),
    ("subnets", routed(Route(net("192.168.126.64/26"), "tun0", True)), REHEARSAL, "blocker", "on tun0"),
    ("subnets", routed(Route(net("192.168.0.0/16"), "eth1")), REHEARSAL, "blocker", "192.168.0.0/16 on eth1"),
    ("subnets", routed(Route(net("192.168.0.0/16"), "tun0", True)), REHEARSAL, "warning", "is part of the route"),
    ("subnets", routed(Route(net("128.0.0.0/1"), "tun0", True)), REHEARSAL, "ok", "all free"),
    ("subnets", routed(Route(net("192.168.126.9/32"), "lo")), REHEARSAL, "blocker", "192.168.126.9/32 on lo"),
    ("subnets", routed(Route(net("192.168.126.0/24"), "")), REHEARSAL, "blocker", "rejected"),
    ("subnets", routed(Route(net("fd00:126::/48"), "eth1")), REHEARSAL, "blocker", "fd00:126::/48"),
    (
        "subnets",
        routed(networks_=(other("theirs", "192.168.126.0/25"),)),
        REHEARSAL,
        "blocker",
        "used by libvirt network theirs",
    ),
    (
        "subnets",
        routed(networks_=(other("theirs", "192.168.126.0/25", active=False),)),
        REHEARSAL,
        "warning",
        "stopped",
    ),
    ("bridges", bridged(), REHEARSAL, "ok", "demo-m, baremetal: free"),
    ("bridges", bridged(networks.Link("demo-m", True, ("vnet0",))), REHEARSAL, "ok", "owned by this lab"),
    (
        "bridges",
        bridged(networks.Link("baremetal", True, ("demo-veth", "vnet1"), ("vnet1",), joined=True)),
        REHEARSAL,
        "ok",
        "owned by this lab",
    ),
    ("bridges", bridged(networks.Link("baremetal", True)), REHEARSAL, "ok", "free"),
    ("bridges", bridged(networks.Link("baremetal", True, ("eth1",))), REHEARSAL, "blocker", "ports of others (eth1)"),
    ("bridges", bridged(networks.Link("baremetal", True, ("demo-veth", "eth1"))), REHEARSAL, "blocker", "(eth1)"),
    (
        "bridges",
        bridged(networks.Link("baremetal", True, ("eth1",))),
        SHARING,
        "ok",
        "baremetal shares the LAN of eth1",
    ),
    ("bridges", bridged(networks.Link("baremetal", True, ("eth1",), (), True)), REHEARSAL, "blocker", "others (eth1)"),
    (
        "bridges",
        bridged(networks.Link("baremetal", True, ("eth1",), (), True)),
        SHARING,
        "ok",
        "shares the LAN of eth1",
    ),
    # By a veth, something of this host is plugged into the lab's own bridge on purpose.
    (
        "bridges",
        bridged(networks.Link("baremetal", True, ("veth7",), (), True, ("veth7",))),
        REHEARSAL,
        "warning",
        "links of others (veth7)",
    ),
    (
        "bridges",
        bridged(networks.Link("baremetal", True, ("veth7",), (), False, ("veth7",))),
        REHEARSAL,
        "blocker",
        "ports of others (veth7)",
    ),
    ("bridges", bridged(networks.Link("baremetal", True, ("tap0",), ("tap0",))), REHEARSAL, "blocker", "VMs of others"),
    ("bridges", bridged(networks.Link("baremetal", True, ("tap0",), ("tap0",))), SHARING, "ok", "shares the LAN"),
    (
        "bridges",
        bridged(networks.Link("baremetal", True, ("vnet0",), ("vnet0",), joined=True)),
        REHEARSAL,
        "ok",
        "owned by this lab",
    ),
    # The topology was veth, and is to be direct; and the other way round.
    (
        "bridges",
        bridged(networks.Link("demo-m", True, ("demo-veth",), (), True), networks_=()),
        REHEARSAL,
        "ok",
        "owned by this lab",
    ),
    (
        "bridges",
        bridged(networks.Link("demo-m", True, (), (), True), networks_=()),
        REHEARSAL,
        "ok",
        "owned by this lab",
    ),
    (
        "bridges",
        bridged(networks.Link("baremetal", True, ("vnet1",)), networks_=(FORMER,)),
        REHEARSAL,
        "ok",
        "owned by this lab",
    ),
    ("subnets", routed(Route(net("192.168.126.0/24"), "baremetal"), networks_=(FORMER,)), REHEARSAL, "ok", "all free"),
    (
        "bridges",
        bridged(networks.Link("baremetal", True, ("nmb-b", "vnet1"))),
        REHEARSAL,
        "blocker",
        "owned by another lab (nmb-b",
    ),
    ("bridges", bridged(networks.Link("baremetal", False)), REHEARSAL, "blocker", "is not a bridge"),
    (
        "bridges",
        bridged(networks.Link("demo-m", True), networks_=()),
        REHEARSAL,
        "blocker",
        "belongs to no libvirt network",
    ),
    (
        "bridges",
        bridged(networks_=(other(bridge="baremetal"),)),
        REHEARSAL,
        "blocker",
        "belongs to libvirt network other",
    ),
    ("ports", (), REHEARSAL, "ok", "1 requested"),
    ("ports", listening(), REHEARSAL, "blocker", "192.168.126.1:8000/tcp by web (pid 7)"),
    ("ports", (Taken(BMC, ()),), REHEARSAL, "blocker", "an unknown process"),
    ("ports", listening("0::/system.slice/nometal-bmc@demo.service"), REHEARSAL, "ok", "owned by this lab"),
    (
        "ports",
        listening("dnsmasq --conf-file=/var/lib/libvirt/dnsmasq/demo.conf"),
        REHEARSAL,
        "ok",
        "owned by this lab",
    ),
    ("ports", (Taken(BMC, FORMER_DNSMASQ, ("baremetal",)),), REHEARSAL, "ok", "owned by this lab"),
    ("ports", (Taken(BMC, FORMER_DNSMASQ),), REHEARSAL, "blocker", "in use"),
    ("ports", listening("dnsmasq --conf-file=/var/lib/libvirt/dnsmasq/demo2.conf"), REHEARSAL, "blocker", "in use"),
    ("packet_filter", firewall.PacketFilter(), REHEARSAL, "ok", "no rules"),
    ("packet_filter", firewall.PacketFilter((ACCEPTING,)), REHEARSAL, "ok", "nothing refuses"),
    ("packet_filter", firewall.PacketFilter((DROPPING,)), REHEARSAL, "ok", "allows the lab"),
    ("packet_filter", firewall.PacketFilter((OLD,), (LEGACY,)), REHEARSAL, "warning", f"`policy DROP` in {OLD.place}"),
    ("packet_filter", firewall.PacketFilter((), (LEGACY,), (LEGACY,)), REHEARSAL, "warning", "install iptables-legacy"),
    ("packet_filter", firewall.PacketFilter((EARLY,)), REHEARSAL, "warning", "Packets of the lab are dropped there"),
    ("firewalld", firewall.Firewalld(False), REHEARSAL, "ok", "does not run"),
    ("firewalld", firewall.Firewalld(True, "public", ("libvirt", "public")), PREPARED, "ok", "zone libvirt"),
    ("firewalld", firewall.Firewalld(True, "public", ("public",)), REHEARSAL, "ok", "comes with the packages"),
    ("firewalld", firewall.Firewalld(True, "public", ("public",)), PREPARED, "warning", "reload firewalld"),
    ("confinement", environment.Confinement(False, False), REHEARSAL, "ok", "neither"),
    ("confinement", environment.Confinement(True, False), REHEARSAL, "ok", "SELinux on, which the lab supports"),
    (
        "confinement",
        environment.Confinement(False, True),
        ELSEWHERE,
        "warning",
        "AppArmor on, and the pool",
    ),
    (
        "confinement",
        environment.Confinement(True, True),
        ELSEWHERE,
        "warning",
        "SELinux and AppArmor",
    ),
    ("confinement", environment.Confinement(False, False), ELSEWHERE, "ok", "neither"),
    ("clock", environment.Clock(True, False), REHEARSAL, "ok", "synchronised"),
    ("clock", environment.Clock(False, True), REHEARSAL, "ok", "container"),
    ("clock", environment.Clock(False, False), INSTALL, "warning", "chronyd"),
    ("resolver", GOOD_RESOLVER, REHEARSAL, "ok", "9.9.9.9"),
    ("resolver", resolving(hostname="new", hostname_by_nss=True), REHEARSAL, "ok", "new and localhost"),
    ("resolver", resolving(hostname="new"), REHEARSAL, "warning", "own name new"),
    ("resolver", resolving(hosts=(("127.0.1.1", "box"),)), REHEARSAL, "warning", "localhost is not"),
    ("resolver", GOOD_RESOLVER, INSTALL, "warning", "lacks `::1 localhost`"),
    ("resolver", resolving(hosts=(*GOOD_RESOLVER.hosts, ("::1", "localhost"))), INSTALL, "ok", "9.9.9.9"),
    ("resolver", resolving(nameservers=()), REHEARSAL, "warning", "set one in its network configuration"),
    ("resolver", resolving(nameservers=(), hostname="new"), REHEARSAL, "warning", "Fix /etc/hosts"),
    ("resolver", resolving(dead_nameservers=("127.0.0.53",)), REHEARSAL, "warning", "nothing listens"),
    ("resolver", resolving(nameservers=("192.168.126.1",)), REHEARSAL, "warning", "the lab's range"),
    ("resolver", resolving(nameservers=("fe80::1%eth0",)), REHEARSAL, "ok", "fe80::1%eth0"),
    (
        "resolver",
        resolving(hosts=(*GOOD_RESOLVER.hosts, ("192.0.2.1", "api.demo.example.test"))),
        REHEARSAL,
        "warning",
        "shadows the lab's DNS: api.demo.example.test",
    ),
]


@pytest.mark.parametrize(("check", "measured", "needs", "status", "text"), CASES)
def test_judgement(check: str, measured: Any, needs: Needs, status: str, text: str) -> None:
    finding = JUDGES[check](measured, needs)
    assert (finding.severity, text in f"{finding.message} {finding.advice}") == (status, True), finding
    assert bool(finding.advice) == (status != "ok")
    assert finding.code.partition(".")[0] == check
    assert json.loads(json.dumps(finding.to_dict()))["facts"] == finding.facts


def test_messages() -> None:
    cases: dict[str, list[Finding]] = {}
    for check, measured, needs, status, _text in CASES:
        found = dataclasses.replace(JUDGES[check](measured, needs), subject=check)
        cases.setdefault(f"{check}: {status}", []).append(found)
    golden.compare(golden.wording(HEAD, cases), MESSAGES)


@pytest.mark.parametrize(
    ("check", "measured", "needs", "code", "facts"),
    [
        ("root", 1000, REHEARSAL, "root.other-user", {"user": 1000}),
        (
            "memory",
            compute.Memory(64 * 1024, 20 * 1024, 4 * 1024),
            INSTALL,
            "memory.exceeds-free",
            {"needed_mib": 54 * 1024, "free_mib": 24 * 1024, "held_mib": 4 * 1024, "total_mib": 64 * 1024},
        ),
        ("cpu", 3, INSTALL, "cpu.overcommitted", {"vcpus": 16, "cpus": 3}),
        ("ports", listening(), REHEARSAL, "ports.in-use", {"ports": ["192.168.126.1:8000/tcp"]}),
        (
            "libvirt_names",
            (LibvirtObject("pool", "nometal-demo", "x", "old"),),
            REHEARSAL,
            "libvirt_names.taken",
            {"taken": [{"kind": "pool", "name": "nometal-demo", "uuid": "x", "owner": "old"}]},
        ),
        (
            "labs",
            beside(Claim("storage pool", "nometal-demo-media", "its disks", "lab_spec.name")),
            WITH_MODEL,
            "labs.conflict",
            {"labs": ["other"], "keys": ["lab_spec.name"]},
        ),
        (
            "bridges",
            bridged(networks.Link("baremetal", True, ("eth1",))),
            REHEARSAL,
            "bridges.serve-others",
            {"ports": {"baremetal": ["eth1"]}, "vms": {}},
        ),
        ("kvm", NO_DEVICE, REHEARSAL, "kvm.no-device", {"cpu_flag": ""}),
        (
            "fsync",
            storage.SyncLatency("/pool", (1600.0,)),
            REHEARSAL,
            "fsync.slow",
            {"directory": "/pool", "p99_ms": 1600.0},
        ),
    ],
)
def test_facts(check: str, measured: Any, needs: Needs, code: str, facts: dict[str, Any]) -> None:
    finding = JUDGES[check](measured, needs)
    assert (finding.code, finding.facts) == (code, facts)


def test_a_missing_name_server_is_no_matter_of_etc_hosts() -> None:
    finding = JUDGES["resolver"](resolving(nameservers=()), REHEARSAL)
    assert "/etc/hosts" not in f"{finding.message} {finding.advice}"


@pytest.mark.parametrize("check", JUDGES)
def test_every_check_is_judged_both_ways(check: str) -> None:
    statuses = {status for name, _, _, status, _ in CASES if name == check}
    assert "ok" in statuses
    assert statuses - {"ok"}


@pytest.mark.parametrize(
    ("check", "found", "named"),
    [
        ("subnets", lambda: routed(networks_=(RENAMED,)), True),
        ("subnets", lambda: routed(networks_=(other("theirs", "192.168.126.0/24"),)), False),
        ("bridges", lambda: bridged(networks.Link("baremetal", True, ("nmb-old",)), networks_=(RENAMED,)), True),
        ("bridges", lambda: bridged(networks_=(dataclasses.replace(RENAMED, bridge="baremetal"),)), True),
        ("bridges", lambda: bridged(networks.Link("baremetal", True, ("nmb-b",)), networks_=(RENAMED,)), False),
        ("bridges", lambda: bridged(networks_=(other(bridge="baremetal"),)), False),
    ],
)
def test_a_lab_in_the_way_may_be_this_one_by_its_former_name(check: str, found: Any, named: bool) -> None:
    finding = JUDGES[check](found(), REHEARSAL)
    assert finding.severity == "blocker"
    assert ("make teardown NAME=old" in finding.advice) == named
