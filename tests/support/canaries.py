"""Things of other people in every place that the collection may touch. Each is one row: how to plant it, how it is.

`before` has those that are there when the lab comes, `inside` those that somebody puts into what the lab has made, and
`users` those that depend on it: the teardown refuses, naming them, until `remove` has been run. `alike` has those with
the names of what a rehearsal would make, which would be refused: the teardown leaves them.
The lab is the one that ships, named rehearsal; names that begin like its own are not its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from support.stranger import NIC, VM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.lab_host import LabHost

LAB = "rehearsal"
POOL = f"/var/lib/libvirt/images/nometal-{LAB}"
DISK = f"{POOL}/{LAB}-worker-0-0.qcow2"
SATA_DISK = (
    "<disk type='file'><driver name='qemu' type='qcow2'/><source file='{}'/><target dev='sda' bus='sata'/></disk>"
)
NETWORK = "<network><name>{name}</name><bridge name='{bridge}'/><ip address='{address}' prefix='24'/></network>"
# Where the collection has files of its own, and where others have theirs beside it.
FILES = [
    *("/var/lib/nometal/theirs.txt", "/var/lib/nometal/labs/theirs.txt", "/var/lib/nometal/bmc/theirs.txt"),
    *("/var/lib/nometal/resolver/theirs.txt", "/var/lib/nometal/install/theirs.txt"),
    *("/var/lib/nometal/rehearsal/theirs.txt", "/var/lib/nometal/deep/er/theirs.txt"),
    *("/opt/nometal/theirs.txt", "/opt/nometal/deep/theirs.txt", "/var/cache/nometal/theirs.iso"),
    *("/run/nometal/theirs.txt", "/run/nometal-resolver/theirs.txt"),
    *("/etc/libvirt/hooks/network.d/theirs", "/etc/libvirt/hooks/nometal.d/theirs.sh", "/etc/libvirt/hooks/qemu"),
    *("/etc/systemd/system/nometal-bmc-others.service", f"/etc/systemd/system/nometal-bmc2-{LAB}.service"),
    *(
        "/etc/systemd/system/libvirtd.service.d/theirs.conf",
        f"/etc/systemd/system/nometal-bmc-{LAB}.service.d/own.conf",
    ),
    *("/etc/systemd/network/nometal-theirs.network", "/etc/systemd/resolved.conf.d/theirs.conf"),
    *("/etc/NetworkManager/conf.d/nometal-theirs.conf", "/etc/NetworkManager/dnsmasq.d/nometal-theirs.conf"),
    *("/etc/sysctl.d/theirs.conf", "/etc/sysctl.d/99-nometal-theirs.conf", "/etc/modules-load.d/theirs.conf"),
    *("/etc/firewalld/services/theirs.xml", "/etc/nftables.d/theirs.conf", "/etc/apparmor.d/local/theirs"),
    *(f"/var/log/libvirt/qemu/{LAB}-worker-00.log", f"/var/log/libvirt/qemu/{LAB}-worker-00-console.log"),
    *(f"/var/lib/libvirt/qemu/nvram/{LAB}-worker-00_VARS.fd", f"/var/log/swtpm/libvirt/qemu/{LAB}-worker-00-swtpm.log"),
    *(f"/var/lib/libvirt/images/{LAB}-worker-0-0.qcow2", f"/var/lib/libvirt/images/nometal-{LAB}2/theirs.img"),
    *(f"/var/lib/libvirt/dnsmasq/nm-{LAB}2.status", f"/var/lib/libvirt/openshift-images/{LAB}2/theirs.img"),
]
# Directories of theirs that are reported as a whole.
WHOLE = {
    "/var/lib/nometal/install/theirs.txt": "/var/lib/nometal/install",
    "/var/lib/nometal/rehearsal/theirs.txt": "/var/lib/nometal/rehearsal",
    "/var/lib/nometal/deep/er/theirs.txt": "/var/lib/nometal/deep",
    "/opt/nometal/deep/theirs.txt": "/opt/nometal/deep",
}
# Of these the host's programs want to read more than a line.
TEXTS = {
    "/etc/libvirt/hooks/qemu": "#!/bin/sh\nexit 0\n",
    "/etc/libvirt/hooks/network.d/theirs": "#!/bin/sh\nexit 0\n",
    "/etc/libvirt/hooks/nometal.d/theirs.sh": "#!/bin/sh\nexit 0\n",
    "/etc/firewalld/services/theirs.xml": "<service><short>theirs</short></service>\n",
}


@dataclass(frozen=True)
class Canary:
    """Shell to plant it, and shell that shows how it is. `named`: what the teardown's report or refusal says of it."""

    name: str
    plant: str
    state: str
    named: str = ""
    remove: str = ""


def file(path: str, *, named: bool = False) -> Canary:
    text = TEXTS.get(path, "# theirs\n")
    mode = "0755" if text.startswith("#!") else "0640"
    plant = f"mkdir -p $(dirname {path}); printf '{text}' >{path}; chmod {mode} {path}; chown nobody {path}"
    return Canary(
        f"file {path}", plant, f"stat -c '%A %U:%G %Y' {path}; cat {path}", WHOLE.get(path, path) if named else ""
    )


def mount(at: str, how: str, *, named: bool = False) -> Canary:
    state = f"grep ' {at} ' /proc/self/mounts; ls -lR --time-style=+%s {at}; cat {at}/deep/theirs.txt"
    plant = f"mkdir -p {at}; {how} {at}; mkdir -p {at}/deep; echo theirs >{at}/deep/theirs.txt"
    return Canary(f"mount {at}", plant, state, at if named else "")


def tmpfs(at: str, *, named: bool = False) -> Canary:
    return mount(at, "mount -t tmpfs -o size=1M theirs", named=named)


def bind(at: str, *, named: bool = False) -> Canary:
    source = "/srv/theirs" + at.replace("/", "-")
    return mount(at, f"mkdir -p {source}; mount --bind {source}", named=named)


def vm(name: str, devices: str = "", *, uses: bool = False) -> Canary:
    xml = VM.format(name=name, devices=devices).replace("\n", "")
    define = f'echo "{xml}" | virsh -q define /dev/stdin'
    return Canary(
        f"VM {name}",
        define,
        f"virsh domstate {name}; virsh dumpxml --inactive {name}",
        name if uses else "",
        f"virsh undefine {name}",
    )


def network(name: str, bridge: str, address: str) -> Canary:
    xml = NETWORK.format(name=name, bridge=bridge, address=address)
    make = f'echo "{xml}" | virsh -q net-define /dev/stdin; virsh -q net-autostart {name}; virsh -q net-start {name}'
    state = f"virsh net-info {name}; virsh net-dumpxml --inactive {name}; cat /sys/class/net/{bridge}/address"
    return Canary(f"network {name}", make, state)


def pool(name: str, path: str) -> Canary:
    make = (
        f"mkdir -p {path}; virsh -q pool-define-as {name} dir --target {path}; virsh -q pool-autostart {name};"
        f"virsh -q pool-start {name}; virsh -q vol-create-as {name} theirs.qcow2 1M --format qcow2"
    )
    shown = f"virsh pool-dumpxml {name} | grep -v '<\\(capacity\\|allocation\\|available\\)'"
    return Canary(f"pool {name}", make, f"virsh pool-info {name} | head -n 5; {shown}; virsh vol-list {name}")


def link(name: str, add: str) -> Canary:
    state = f"ip -o link show dev {name}; ip -br address show dev {name}"
    return Canary(f"link {name}", f"ip link add {name} {add}; ip link set {name} up", state)


def tables(program: str) -> Canary:
    """A chain with a name like the lab's own, and a call of it."""
    chain = f"nm-{LAB}2-in"
    plant = f"{program} -N {chain}; {program} -A {chain} -p udp --dport 9 -j ACCEPT; {program} -I INPUT -j {chain}"
    return Canary(f"rules of {program}", plant, f"{program} -S {chain}; {program} -S INPUT | grep {chain}")


def before() -> list[Canary]:
    ours = ("/var/lib/nometal", "/opt/nometal", "/var/cache/nometal", "/etc/libvirt/hooks/nometal.d")
    other_table = f"table inet nometal-{LAB}2"
    nft = f"nft 'add {other_table}; add chain inet nometal-{LAB}2 guard {{ type filter hook input priority -150; }}; "
    return [
        *(file(path, named=path.startswith(ours)) for path in FILES),
        tmpfs("/var/lib/nometal/tmpfs", named=True),
        bind("/opt/nometal/bind", named=True),
        bind("/var/cache/nometal/bind", named=True),
        *(vm(name) for name in (f"{LAB}-worker-00", f"{LAB}2-worker-0", f"{LAB}-theirs", f"my-{LAB}-abcde-bootstrap")),
        network(f"nometal-{LAB}2", f"nm-{LAB}2", "192.168.200.1"),
        pool(f"nometal-{LAB}2", "/srv/pool2"),
        pool(f"nometal-{LAB}-media2", "/srv/media2"),
        link("theirs0", "type bridge"),
        link("baremetal2", "type bridge"),
        link(f"nmn-{LAB}2", f"type veth peer name nmb-{LAB}2"),
        Canary("nft table", f"{nft} add rule inet nometal-{LAB}2 guard udp dport 9 accept'", f"nft list {other_table}"),
        *(tables(program) for program in ("iptables", "ip6tables", "iptables-legacy", "ip6tables-legacy")),
        Canary("members", "usermod -aG libvirt nobody; usermod -aG kvm nobody", "id nobody"),
        Canary("forwarding", "sysctl -qw net.ipv4.ip_forward=1", "sysctl net.ipv4.ip_forward"),
        Canary("resolv.conf", "echo nameserver 192.0.2.53 >/etc/resolv.conf", "grep 192.0.2.53 /etc/resolv.conf"),
        Canary("hosts", "echo 192.0.2.9 theirs >>/etc/hosts", "cat /etc/hosts"),
        Canary(
            "running unit",
            "systemd-run --quiet --unit=nometal-bmc-theirs sleep infinity",
            "systemctl show --property=ActiveState,MainPID nometal-bmc-theirs",
        ),
    ]


def inside() -> list[Canary]:
    homes = (f"/var/lib/nometal/labs/{LAB}", f"/var/lib/nometal/bmc/{LAB}", POOL, "/opt/nometal/bmc")
    port = "ip link add theirs1 type veth peer name theirs2; ip link set theirs1 master baremetal up"
    ours = "-i baremetal -p tcp --dport 9 -j ACCEPT"
    return [
        *(file(f"{home}/theirs.txt", named=True) for home in homes),
        file(f"/var/lib/libvirt/images/nometal-{LAB}-media/theirs.iso"),
        file(f"/var/lib/nometal/bmc/{LAB}/state/theirs.txt", named=True),
        file("/opt/nometal/bmc/release-notes/theirs.txt"),
        file("/var/cache/nometal/rehearsal/image-notes/theirs.txt"),
        *(tmpfs(f"{home}/mounted", named=True) for home in homes),
        bind(f"{POOL}/bind", named=True),
        Canary(
            "volume in the lab's pool",
            f"virsh -q vol-create-as nometal-{LAB} theirs.qcow2 1M --format qcow2",
            f"stat -c '%A %U:%G %s %Y' {POOL}/theirs.qcow2",
            f"{POOL}/theirs.qcow2",
        ),
        Canary("port of the lab's bridge", port, "readlink -f /sys/class/net/theirs1/master"),
        Canary("rule for the lab's bridge", f"iptables -A FORWARD {ours}", f"iptables -S FORWARD | grep -e '{ours}'"),
    ]


def alike() -> list[Canary]:
    name = f"{LAB}-rehearsal-bootstrap"
    return [replace(vm(name), named=f"VM {name}"), replace(pool(name, "/srv/bootstrap"), named=f"storage pool {name}")]


def users() -> list[Canary]:
    """Of what the lab has made. Later ones use earlier ones."""
    overlay = "/srv/theirs-overlay.qcow2"
    return [
        Canary(
            "overlay of a lab's disk",
            f"qemu-img create -q -f qcow2 -F qcow2 -b {DISK} {overlay}",
            f"stat -c '%A %U:%G %s' {overlay}; qemu-img info --output=json {DISK} >/dev/null && echo has its base",
            remove=f"rm {overlay}",
        ),
        vm("theirs-on-an-overlay", devices=SATA_DISK.format(overlay), uses=True),
        vm("theirs-in-the-pool", devices=SATA_DISK.format(f"{POOL}/mine.qcow2"), uses=True),
        vm("theirs-in-the-network", devices=NIC.format(kind="network", source=f"network='nometal-{LAB}'"), uses=True),
    ]


def plant(host: LabHost, canaries: Sequence[Canary]) -> dict[str, str]:
    """Plant them all; returns how each is now."""
    for canary in canaries:
        host.run(f"set -e\n{canary.plant}")
    return states(host, canaries)


def states(host: LabHost, canaries: Sequence[Canary]) -> dict[str, str]:
    script = "".join(f"echo '\1'\n{{ {canary.state}\n}} 2>&1\n" for canary in canaries)
    shown = host.run(f"{script}true", timeout=60).stdout.split("\1\n")[1:]
    return dict(zip((canary.name for canary in canaries), shown))
